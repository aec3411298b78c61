"""The map in a real browser: colours, queries, filters, lasso, pictures; by mouse, by keys alone, by fingers."""

from itertools import pairwise
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from server.live import a_browser, keep, serving
from server.made import make_service, make_vectors
from server.pages import a_page, a_phone, along, axe_findings, drag_fingers, fits, middle, until
from server.test_review import twice

pytestmark = pytest.mark.long


N = 22  # pictures


@pytest.fixture(scope="module")
def browser():
    with a_browser() as one:
        yield one


@pytest.fixture(scope="module")
def address(folder):
    twice(folder)
    with serving(make_service(folder / "c", folder), can_edit=True) as one:
        yield one


@pytest.fixture(scope="module")
def plain(folder):
    """Vectors without pictures, whose names look like markup."""
    make_vectors(folder / "plain", 300)
    with serving(make_service(folder / "plain", folder / "plain-cache")) as one:
        yield one


@pytest.fixture
def page(browser):
    with a_page(browser) as one:
        yield one


def open_map(page, address, more=""):
    page.goto(f"{address}/?view=map{more}")
    page.wait_for_selector(".map canvas", timeout=90_000)
    until(page, "window.manifindMap?.pixels?.some((pixel) => pixel !== 0) ?? false")


def of_map(page, expression):
    return page.evaluate(f"(() => {{ const map = window.manifindMap; return {expression} }})()")


def place_of(page, at):
    """Where a point is on the canvas."""
    x, y = of_map(page, f"map.placeOf({at})")
    return {"x": x, "y": y}


def ids(page):
    return page.evaluate("fetch('api/v1/map/ids').then((answer) => answer.json())")["ids"]


def selected(page):
    return page.locator(".selection-bar .chosen strong")


def test_the_map_shows_every_item_and_a_click_opens_the_viewer(page, address):
    open_map(page, address)
    assert of_map(page, "map.n") == N
    page.wait_for_selector(".map .picture img")
    at = of_map(page, "map.taken[0].at")
    id_ = ids(page)[at]
    page.locator(".map canvas").hover(position=place_of(page, at))
    expect(page.locator(".map .tip")).to_contain_text(id_)
    page.locator(".map canvas").click(position=place_of(page, at))
    expect(page.locator("dialog.viewer")).to_be_visible()
    assert f"show={id_}" in page.url
    page.keyboard.press("Escape")
    expect(page.locator("dialog.viewer")).to_be_hidden()
    assert "view=map" in page.url
    keep(page, "map")


def test_pictures_are_shown_in_place_of_points_where_few_are_in_sight(page, address, plain):
    open_map(page, address)
    page.wait_for_selector(".map .picture img")
    before = page.locator(".map .picture").count()
    page.locator(".map canvas").focus()
    for _ in range(6):
        page.keyboard.press("+")
    until(page, f"document.querySelectorAll('.map .picture').length !== {before}")
    keep(page, "map-closer")
    open_map(page, plain)
    assert page.locator(".map .picture").count() == 0


def test_points_are_coloured_by_a_field_and_left_out_by_its_legend(page, address):
    open_map(page, address)
    page.get_by_label("Colour by").select_option("place")
    page.wait_for_selector(".legend")
    assert "colour=place" in page.url
    assert page.locator(".legend label").all_text_contents() == ["Rome10", "Sydney10", "without2"]
    assert of_map(page, "new Set(map.colours.codes).size") == 3
    rome = of_map(page, "map.colours.codes.indexOf(0)")
    assert of_map(page, f"map.nearest(...map.placeOf({rome}), 2)") >= 0
    page.get_by_label("Rome").uncheck()
    assert of_map(page, f"map.nearest(...map.placeOf({rome}), 2)") == -1
    keep(page, "map-colours")
    page.get_by_label("Colour by").select_option("")
    expect(page.locator(".legend")).to_have_count(0)


def test_dates_and_numbers_are_a_ramp_between_the_first_and_the_last(page, address):
    open_map(page, address, "&colour=taken")
    assert page.locator(".ends span").all_text_contents() == ["2010-01-15", "2012-09-15"]
    open_map(page, address, "&colour=latitude")
    assert page.locator(".ends span").all_text_contents() == ["-33.9", "41.9"]
    expect(page.locator(".legend")).to_contain_text("2 items without")


def test_a_field_that_is_not_there_is_said_and_the_map_shown_all_the_same(browser, address):
    with a_page(browser, expected="404") as page:
        open_map(page, address, "&colour=plcae")
        expect(page.locator("main .problem")).to_contain_text("no item has a value")


def test_a_query_and_its_answers_are_marked_and_listed(page, address):
    open_map(page, address, "&q=id:north/01.png")
    expect(page.get_by_role("heading", name="The first 22 answers")).to_be_visible()
    assert of_map(page, "map.query.length") == 1
    assert of_map(page, "map.answers.length") == 21
    assert of_map(page, "map.answers.includes(map.query[0])") is False
    card = page.locator(".answers .card").nth(2)
    card.locator(".open").focus()
    assert ids(page)[of_map(page, "map.at")] == card.get_attribute("data-id")
    keep(page, "map-query")


def test_items_that_do_not_satisfy_the_filter_are_faint_and_out_of_reach(page, address):
    open_map(page, address, "&where=" + quote("place = 'Rome'"))
    expect(page.get_by_text("10 items of 22 satisfy the filter")).to_be_visible()
    other = of_map(page, "map.fitting.indexOf(0)")
    assert of_map(page, f"map.nearest(...map.placeOf({other}), 2)") == -1


def around_everything(page):
    box = page.locator(".map canvas").bounding_box()
    x, y, width, height = box["x"] + 5, box["y"] + 5, box["width"] - 10, box["height"] - 10
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


def drag(page, corners, held=None):
    if held:
        page.keyboard.down(held)
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=4)
    page.mouse.up()
    if held:
        page.keyboard.up(held)


@pytest.mark.parametrize("held", [None, "Shift"])
def test_what_a_line_is_drawn_around_is_selected(page, address, held):
    open_map(page, address)
    if held is None:
        page.get_by_role("button", name="Lasso").click()
    before = of_map(page, "[map.x, map.y]")
    drag(page, around_everything(page), held)
    expect(selected(page)).to_have_text(f"{N} items selected")
    assert of_map(page, "[map.x, map.y]") == before
    until(page, f"window.manifindMap.chosen?.reduce((a, b) => a + b, 0) === {N}")
    expect(page.get_by_role("button", name="Lasso")).to_have_attribute("aria-pressed", "false")
    keep(page, "map-selected")


def test_a_line_around_one_item_selects_it_alone(page, plain):
    open_map(page, plain)
    for _ in range(12):
        page.get_by_role("button", name="Closer").click()
    at = of_map(page, "map.nearest(map.canvas.width / 2, map.canvas.height / 2, 5000)")
    of_map(page, f"map.pan(...map.placeOf({at}).map((v, i) => [map.canvas.width, map.canvas.height][i] / 2 - v))")
    box = page.locator(".map canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    drag(page, [(x - 7, y - 7), (x + 7, y - 7), (x + 7, y + 7), (x - 7, y + 7)], "Shift")
    expect(selected(page)).to_have_text("1 item selected")


def test_keys_alone_look_select_and_draw_a_ring(page, address):
    open_map(page, address)
    canvas = page.locator(".map canvas")
    canvas.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    expect(selected(page)).to_have_text("1 item selected")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.locator("dialog.viewer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog.viewer")).to_be_hidden()
    canvas.focus()
    page.keyboard.press("0")
    page.keyboard.press("l")
    expect(page.locator(".tools [role=status]")).to_contain_text("inside the ring. Arrow keys move")
    for key in ("ArrowRight", "ArrowLeft", *["+"] * 20):
        page.keyboard.press(key)
    expect(page.locator(".tools [role=status]")).to_contain_text(f"{N} items inside")
    keep(page, "map-ring")
    page.keyboard.press("Enter")
    expect(selected(page)).to_have_text(f"{N} items selected")
    page.keyboard.press("l")
    page.keyboard.press("Escape")
    assert of_map(page, "map.lasso.ring") is None
    button = page.get_by_role("button", name="Lasso")
    button.focus()
    page.keyboard.press("Enter")
    assert of_map(page, "map.lasso.ring.r") == 60


def test_fingers_move_pinch_and_draw(browser, address):
    with a_phone(browser) as page:
        open_map(page, address)
        page.locator(".map").scroll_into_view_if_needed()
        x, y = middle(page.locator(".map canvas"))
        drag_fingers(page, along((x, y), (x + 60, y + 40)))
        assert of_map(page, "Math.round(map.x)") > 40
        drag_fingers(page, along((x - 20, y), (x - 120, y)), along((x + 20, y), (x + 120, y)))
        assert of_map(page, "map.zoom") > 3
        page.get_by_role("button", name="The whole map").tap()
        assert of_map(page, "[map.zoom, map.x]") == [1, 0]
        page.get_by_role("button", name="Lasso").tap()
        corners = around_everything(page)
        path = [place for a, b in pairwise(corners) for place in along(a, b)]
        drag_fingers(page, path)
        expect(selected(page)).to_have_text(f"{N} items selected")
        keep(page, "map-phone")
        assert fits(page)


def test_the_map_stays_where_it_was_looked_at(page, address):
    open_map(page, address)
    page.get_by_role("button", name="Closer").click()
    zoom = of_map(page, "map.zoom")
    page.get_by_label("Colour by").select_option("place")
    page.wait_for_selector(".legend")
    assert of_map(page, "map.zoom") == zoom > 1


def test_what_metadata_says_is_text_whatever_it_looks_like(page, plain):
    open_map(page, plain, "&colour=name")
    expect(page.locator(".legend")).to_contain_text("<b>item")
    assert page.locator("main b").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_axe_finds_nothing_light_or_dark_narrow_or_wide(browser, address, scheme, width):
    with a_page(browser, width, color_scheme=scheme) as page:
        for number, more in enumerate(("", "&colour=place", "&colour=taken", "&q=id:north/01.png&colour=path")):
            open_map(page, address, more)
            if "q=" in more:
                page.wait_for_selector(".answers .card")
            assert axe_findings(page) == [], more
            assert fits(page), more
            keep(page, f"map-{scheme}-{width}-{number}")
