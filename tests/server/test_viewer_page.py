"""The viewer in a real browser: looking, walking, neighbours, searches from it, parts of a picture, hostile names."""

from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

import manifind
from images.painted import paint, paint_many
from manifind.model.index_folder import index_folder
from server.live import a_browser, keep, serving
from server.made import SMALL, make_pictures, make_service, make_vectors
from server.pages import a_page, a_phone, along, axe_findings, drag_fingers, fits, middle, until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def browser():
    with a_browser() as one:
        yield one


@pytest.fixture(scope="module")
def service(folder):
    make_pictures(folder / "seen", folder / "seen-photos")
    return make_service(folder / "seen", folder)


@pytest.fixture(scope="module")
def address(service):
    with serving(service, can_edit=True) as one:
        yield one


@pytest.fixture
def page(browser):
    with a_page(browser) as one:
        yield one


def asked(page):
    return parse_qs(urlsplit(page.url).query)


def closed(page):
    """What the address says once the viewer is closed."""
    expect(viewer(page)).to_be_hidden(timeout=20_000)  # the first part of a picture starts a process that describes it
    until(page, "!location.search.includes('show=')")
    return asked(page)


def viewer(page):
    return page.locator("dialog.viewer")


def title(page):
    return page.locator("#viewer-title")


def look_at(page, address, name="north/01.png"):
    """The list of all items, and the viewer opened above it."""
    page.goto(address)
    page.get_by_role("link", name=f"Look at {name}", exact=True).click()
    expect(title(page)).to_have_text(name)
    expect(viewer(page).get_by_role("link", name="Search like this")).to_be_visible()


def test_a_click_opens_the_viewer_with_the_picture_and_all_that_is_known(address, page):
    look_at(page, address)
    assert asked(page) == {"show": ["north/01.png"]}
    until(page, "document.querySelector('.viewer .frame img').naturalWidth === 64")
    table = viewer(page).locator(".facts-table")
    expect(table).to_contain_text("north/01.png")
    expect(table).to_contain_text("width")
    expect(table).not_to_contain_text("sha256")
    keep(page, "viewer")
    page.keyboard.press("Escape")
    assert closed(page) == {}
    assert page.evaluate("document.activeElement.closest('[data-id]').dataset.id") == "north/01.png"


def test_one_step_back_closes_the_viewer_however_far_one_has_walked(address, page):
    look_at(page, address)
    page.keyboard.press("ArrowRight")
    expect(title(page)).to_have_text("north/03.png")
    viewer(page).locator(".near a").first.click()
    until(page, "document.querySelector('#viewer-title').textContent !== 'north/03.png'")
    page.go_back()
    assert closed(page) == {}
    page.go_forward()
    expect(viewer(page)).to_be_visible()
    viewer(page).get_by_role("button", name="Close").click()
    assert closed(page) == {}


def test_an_address_opens_the_viewer_and_closing_leaves_the_list_beneath(address, page):
    page.goto(f"{address}/?name=north&show=north/01.png")
    expect(title(page)).to_have_text("north/01.png")
    viewer(page).get_by_role("button", name="Close").click()
    expect(viewer(page)).to_be_hidden()
    expect(page.locator(".card")).to_have_count(10)
    assert asked(page) == {"name": ["north"]}


def test_arrow_keys_and_buttons_walk_along_the_list_and_stop_at_its_ends(address, page):
    look_at(page, address)
    expect(viewer(page).locator(".place")).to_have_text("1 of 20 items shown")
    assert viewer(page).get_by_role("button", name="Previous").get_attribute("aria-disabled") == "true"
    page.keyboard.press("ArrowLeft")
    expect(title(page)).to_have_text("north/01.png")
    viewer(page).get_by_role("button", name="Next").click()
    expect(title(page)).to_have_text("north/03.png")
    page.keyboard.press("ArrowLeft")
    expect(title(page)).to_have_text("north/01.png")
    for _ in range(25):
        page.keyboard.press("ArrowRight")
    expect(title(page)).to_have_text("south/18.png")
    assert viewer(page).get_by_role("button", name="Next").get_attribute("aria-disabled") == "true"


def test_walking_goes_on_where_the_page_has_not_loaded_yet(browser, folder):
    make_vectors(folder / "long", 120)
    with serving(make_service(folder / "long", folder)) as address, a_page(browser) as page:
        page.goto(f"{address}/?show=0")
        expect(viewer(page).locator(".place")).to_contain_text("1 of ")
        for _ in range(1000):  # what is pressed while a part of the list comes is not made up for
            page.keyboard.press("ArrowRight")
            if title(page).text_content() == "119":
                break
        expect(title(page)).to_have_text("119")
        page.keyboard.press("ArrowRight")
        expect(viewer(page).locator(".place")).to_have_text("120 of 120 items shown")


def test_the_path_is_copied_also_where_the_browser_has_no_clipboard_for_pages(browser, address):
    permitted = {"permissions": ["clipboard-read", "clipboard-write"]}
    with a_page(browser, **permitted) as page:
        look_at(page, address)
        page.get_by_role("button", name="Copy path").click()
        expect(page.get_by_text("Copied north/01.png")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == "north/01.png"
    with a_page(browser, **permitted) as page:
        page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})")
        look_at(page, address, "south/02.png")
        page.get_by_role("button", name="Copy path").click()
        expect(page.get_by_text("Copied south/02.png")).to_be_visible()
        page.evaluate("delete navigator.clipboard")
        assert page.evaluate("navigator.clipboard.readText()") == "south/02.png"


def test_the_file_itself_is_downloaded(address, page, folder):
    look_at(page, address)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download").click()
    assert waiting.value.suggested_filename == "01.png"
    assert waiting.value.path().read_bytes() == (folder / "seen-photos" / "north" / "01.png").read_bytes()


def test_the_nearest_items_stand_below_and_are_those_of_a_search(address, page, service):
    look_at(page, address)
    expect(viewer(page).locator(".near a")).to_have_count(12)
    shown = viewer(page).locator(".near a").evaluate_all("links => links.map(link => link.dataset.show)")
    found = service.collection.search_ids(["north/01.png"], 13).ids[0].tolist()
    assert shown == [id_ for id_ in found if id_ != "north/01.png"]


def test_searches_begin_in_the_viewer(address, page):
    look_at(page, address)
    page.get_by_role("link", name="Search like this").click()
    assert closed(page) == {"q": ["id:north/01.png"]}
    page.get_by_role("link", name="Look at south/02.png").click()
    viewer(page).get_by_role("button", name="More like this").click()
    expect(viewer(page)).to_be_hidden()
    page.get_by_role("link", name="Look at south/04.png").click()
    viewer(page).get_by_role("button", name="Less like this").click()
    assert closed(page) == {"q": ["id:north/01.png", "id:south/02.png", "-id:south/04.png"]}


def test_an_item_is_selected_in_the_viewer(address, page):
    look_at(page, address)
    viewer(page).get_by_label("Select").check()
    page.keyboard.press("Escape")
    expect(page.locator(".selection-bar")).to_contain_text("1 item selected")
    expect(page.get_by_label("Select north/01.png")).to_be_checked()


def crop_of(page):
    (part,) = asked(page)["q"]
    kind, _, value = part.partition(":")
    assert value == "north/01.png"
    return [float(share) for share in kind.removeprefix("id@").split(",")]


def draw(page, start, end):
    """A rectangle from shares of the picture to others, by mouse."""
    box = page.locator(".crop-area").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=5)
    page.mouse.up()


def test_a_part_is_drawn_moved_and_resized_by_pointer_and_searched_for(address, page):
    look_at(page, address)
    page.get_by_role("button", name="Search by a part").click()
    draw(page, (0.05, 0.05), (0.15, 0.2))  # beside the rectangle that is there: a new one
    draw(page, (0.1, 0.1), (0.4, 0.5))  # inside: it moves
    draw(page, (0.45, 0.6), (0.7, 0.9))  # its corner: it grows
    expect(page.locator(".crop-words")).to_have_text("Left 35%, top 45%, width 35%, height 45%")
    keep(page, "crop")
    page.get_by_role("button", name="Search by this part").click()
    closed(page)
    assert crop_of(page) == pytest.approx([0.35, 0.45, 0.35, 0.45], abs=0.01)
    expect(page.locator(".card")).to_have_count(20)


def test_a_part_is_chosen_by_keys_alone(address, page):
    page.goto(address)
    page.locator(".card .open").first.focus()
    page.keyboard.press("Enter")
    expect(viewer(page).get_by_role("button", name="Search by a part")).to_be_visible()
    while page.evaluate("document.activeElement.textContent") != "Search by a part":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".crop-box")).to_be_focused()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowUp", "Shift+ArrowRight", "Shift+ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator(".crop-words")).to_have_text("Left 21%, top 23%, width 52%, height 48%")
    page.keyboard.press("Escape")
    expect(page.locator(".crop-box")).to_have_count(0)
    expect(viewer(page)).to_be_visible()
    page.get_by_role("button", name="Search by a part").press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    closed(page)
    assert crop_of(page) == [0.25, 0.27, 0.5, 0.5]


@pytest.mark.parametrize("keys", [["ArrowLeft"] * 40, ["Shift+ArrowRight"] * 60, ["Shift+ArrowLeft"] * 60])
def test_a_part_stays_inside_the_picture_and_is_never_nothing(address, page, keys):
    look_at(page, address)
    page.get_by_role("button", name="Search by a part").click()
    for key in keys:
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    closed(page)
    left, top, width, height = crop_of(page)
    assert 0 <= left <= left + width <= 1
    assert 0 <= top <= top + height <= 1
    assert min(width, height) > 0
    expect(page.locator(".card")).to_have_count(20)


@pytest.mark.parametrize("size", [(40, 160), (640, 20), (1600, 2400)])
def test_the_rectangle_lies_on_the_picture_alone_whatever_its_sides(browser, tmp_path, size):
    make_pictures(tmp_path / "c", paint_many(tmp_path / "photos"))
    paint(tmp_path / "photos" / "odd.png", 77)
    with Image.open(tmp_path / "photos" / "odd.png") as image:
        image.resize(size).save(tmp_path / "photos" / "odd.png")
    index_folder(tmp_path / "photos", tmp_path / "c")
    with serving(make_service(tmp_path / "c", tmp_path)) as address, a_page(browser) as page:
        page.goto(f"{address}/?show=odd.png")
        until(page, "document.querySelector('.viewer .frame img')?.naturalWidth > 0")
        page.get_by_role("button", name="Search by a part").click()
        area, stage = page.locator(".crop-area").bounding_box(), page.locator(".stage").bounding_box()
        assert area["width"] / area["height"] == pytest.approx(size[0] / size[1], rel=0.03)
        assert area["width"] <= stage["width"] + 1
        assert area["height"] <= stage["height"] + 1
        assert page.locator(".frame img").bounding_box() == pytest.approx(area, abs=1)


def test_a_click_and_keys_look_closer_and_back(address, page):
    look_at(page, address)
    until(page, "document.querySelector('.viewer .frame img').naturalWidth === 64")
    picture = viewer(page).locator(".frame img")
    width = picture.bounding_box()["width"]
    picture.click()
    assert picture.bounding_box()["width"] == pytest.approx(2.5 * width, rel=0.01)
    page.keyboard.press("ArrowRight")
    expect(title(page)).to_have_text("north/01.png")  # it moves what is seen, not along the list
    page.keyboard.press("0")
    assert picture.bounding_box()["width"] == pytest.approx(width, rel=0.01)
    page.keyboard.press("+")
    assert picture.bounding_box()["width"] > 1.3 * width


def test_everything_is_done_by_touch_on_a_phone(browser, address):
    with a_phone(browser) as page:
        page.goto(address)
        page.get_by_role("link", name="Look at north/01.png").tap()
        until(page, "document.querySelector('.viewer .frame img')?.naturalWidth === 64")
        assert fits(page)
        picture = viewer(page).locator(".frame img")
        x, y = middle(picture)
        drag_fingers(page, along((x + 90, y), (x - 90, y)))
        expect(title(page)).to_have_text("north/03.png")
        drag_fingers(page, along((x - 90, y), (x + 90, y)))
        expect(title(page)).to_have_text("north/01.png")
        until(page, "document.querySelector('.viewer .frame img')?.naturalWidth === 64")
        width = picture.bounding_box()["width"]
        drag_fingers(page, along((x - 20, y), (x - 90, y)), along((x + 20, y), (x + 90, y)))
        until(page, f"document.querySelector('.viewer .frame img').getBoundingClientRect().width > {2 * width}")
        expect(title(page)).to_have_text("north/01.png")
        keep(page, "viewer-phone")
        page.get_by_role("button", name="Search by a part").tap()
        box = page.locator(".crop-area").bounding_box()
        at = [(box["x"] + share * box["width"], box["y"] + share * box["height"]) for share in (0.05, 0.2, 0.8)]
        drag_fingers(page, along(at[0], at[1]))
        drag_fingers(page, along(at[1], at[2]))
        expect(page.locator(".crop-words")).to_have_text("Left 5%, top 5%, width 75%, height 75%")
        keep(page, "crop-phone")
        page.get_by_role("button", name="Search by this part").tap()
        closed(page)
        assert crop_of(page) == pytest.approx([0.05, 0.05, 0.75, 0.75], abs=0.02)


def test_vectors_are_shown_by_their_ids(browser, folder):
    make_vectors(folder / "plain")
    with serving(make_service(folder / "plain", folder)) as address, a_page(browser) as page:
        page.goto(f"{address}/?show=3")
        expect(viewer(page).locator(".frame")).to_have_text("3")
        expect(viewer(page).locator(".facts-table")).to_contain_text("<b>item 3</b>")
        assert viewer(page).locator("b").count() == 0
        assert viewer(page).get_by_role("button", name="Search by a part").count() == 0
        assert viewer(page).get_by_role("button", name="Download").count() == 0
        assert viewer(page).get_by_role("button", name="Album").count() == 0  # nothing may be changed here
        keep(page, "viewer-vectors")


def test_a_picture_whose_file_is_gone_is_said_in_words(browser, tmp_path):
    make_pictures(tmp_path / "c", tmp_path / "photos")
    (tmp_path / "photos" / "north" / "01.png").unlink()
    with serving(make_service(tmp_path / "c", tmp_path)) as address, a_page(browser, expected="404") as page:
        page.goto(f"{address}/?show=north/01.png")
        expect(viewer(page)).to_contain_text("There is no picture of north/01.png")
        expect(viewer(page).locator(".facts-table")).to_be_visible()
        assert viewer(page).get_by_role("button", name="Search by a part").count() == 0


def test_an_item_that_is_none_is_said_in_words_and_the_viewer_closes(browser, address):
    with a_page(browser, expected="404") as page:
        page.goto(f"{address}/?show=nort/03.png")
        expect(viewer(page).get_by_role("alert")).to_contain_text("did you mean 'north/03.png'")
        page.keyboard.press("Escape")
        expect(viewer(page)).to_be_hidden()


HOSTILE = {
    "markup": "<img src=x onerror=alert(1)><b>bold</b>",
    "right to left": "\u202egnp.lamron\u202c \u05e9\u05dc\u05d5\u05dd",
    "newlines": "one\ntwo\r\nthree",
    "quotes": 'it\'s "quoted" \\ & %2F #?',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_ids_fields_tags_and_albums_are_shown_as_text(browser, tmp_path, name):
    text = HOSTILE[name]
    X = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)
    fields = [{"note": text, "tags": [text], "albums": [text]}, *[{"note": "plain"}] * 29]
    model = manifind.GradNet(**{**SMALL, "n_neighbors": 8}, random_state=0)
    model.fit(X).save(tmp_path / "c", [text, *map(str, range(29))], fields)
    with serving(make_service(tmp_path / "c", tmp_path), can_edit=True) as address, a_page(browser) as page:
        page.goto(address)
        page.locator(".card .open").first.click()
        expect(viewer(page).locator(".near a")).to_have_count(12)
        assert title(page).text_content() == viewer(page).locator(".frame").text_content() == text
        cell = viewer(page).locator(".facts-table tr", has_text="note").locator("td")
        assert cell.text_content() == text
        assert viewer(page).locator(".chips bdi").all_text_contents() == [text, text]
        assert viewer(page).locator("b, td img, .chips img, .frame img").count() == 0
        keep(page, f"viewer-{name.replace(' ', '-')}")
        assert asked(page) == {"show": [text]}
        viewer(page).locator(".chips a").first.click()
        expect(viewer(page)).to_be_hidden()
        expect(page.locator(".card")).to_have_count(1)
        assert page.locator("main b").count() == 0


def test_hostile_file_names_are_shown_as_text(browser, tmp_path):
    names = ["<b>a</b>.png", "\u202egnp.txt\u202c.png", "one\ntwo.png"]
    for number in range(20):
        paint(tmp_path / "photos" / (names[number] if number < len(names) else f"{number:02}.png"), number)
    index_folder(tmp_path / "photos", tmp_path / "c", "pixels", SMALL)
    with serving(make_service(tmp_path / "c", tmp_path)) as address, a_page(browser) as page:
        for name in names:
            page.goto(f"{address}/?{urlencode({'show': name})}")
            until(page, "document.querySelector('.viewer .frame img')?.naturalWidth === 64")
            assert title(page).text_content() == name
            assert page.locator("main b, dialog b").count() == 0
            with page.expect_download() as waiting:
                page.get_by_role("button", name="Download").click()
            assert waiting.value.path().read_bytes() == (tmp_path / "photos" / name).read_bytes()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_axe_finds_nothing_in_the_viewer(browser, address, scheme, width):
    with a_page(browser, width, color_scheme=scheme) as page:
        look_at(page, address)
        expect(viewer(page).locator(".near a")).to_have_count(12)
        until(page, "document.querySelector('.viewer .frame img').naturalWidth === 64")
        assert axe_findings(page) == []
        assert fits(page)
        close = viewer(page).get_by_role("button", name="Close").bounding_box()
        assert close["x"] + close["width"] <= page.evaluate("document.documentElement.clientWidth")
        keep(page, f"viewer-{scheme}-{width}")
        page.get_by_role("button", name="Search by a part").click()
        assert axe_findings(page) == []
        assert fits(page)
        keep(page, f"crop-{scheme}-{width}")
