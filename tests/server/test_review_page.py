"""The review in a real browser: duplicates, timeline, places, groups; by mouse, by keys alone, by fingers."""

import pytest
from playwright.sync_api import expect

import manifind
from server.live import a_browser, keep, serving
from server.made import make_service, make_vectors
from server.pages import a_page, a_phone, along, axe_findings, drag_fingers, fits, middle, until
from server.test_review import twice

pytestmark = pytest.mark.long


TABS = ("duplicates", "timeline", "places", "clusters")
NASTY = "<img src=x onerror=alert(1)>\u202e\n'\"&amp;"
READY = ".copies-group, .year, .earth, .cluster, .card, .panel > .head p"


@pytest.fixture(scope="module")
def browser():
    with a_browser() as one:
        yield one


@pytest.fixture(scope="module")
def address(folder):
    twice(folder)
    with serving(make_service(folder / "c", folder)) as one:
        yield one


@pytest.fixture
def changing(tmp_path):
    """A collection of its own, which may be changed."""
    twice(tmp_path)
    with serving(make_service(tmp_path / "c", tmp_path), can_edit=True) as one:
        yield one


@pytest.fixture
def page(browser):
    """Asked for behind the server that it looks at, so that it goes first: a page asks on as long as it is there."""
    with a_page(browser) as one:
        yield one


def review(page, address, tab, more=""):
    page.goto(f"{address}/?view=review&tab={tab}{more}")
    page.wait_for_selector(READY, timeout=60_000)


def groups(page):
    return page.locator(".copies-group")


def first_circle(page):
    """Where the first place is, once all that is in sight is known."""
    page.wait_for_selector(".earth[aria-busy=false]")
    return middle(page.locator(".earth circle").first)


def items(page):
    return page.evaluate("fetch('api/v1/collection').then((answer) => answer.json())")["items"]


def test_the_best_copy_is_kept_the_other_removed_and_undo_brings_it_back(changing, page):
    review(page, changing, "duplicates")
    expect(page.locator(".panel .head")).to_contain_text("4 items in 2 groups; one of each is enough.")
    assert groups(page).locator("h2").all_text_contents() == ["The same: 2 items", "Nearly the same: 2 items"]
    small = groups(page).nth(1)
    expect(small.locator(".kept")).to_have_attribute("data-id", "south/02.png")
    expect(small.locator(".kept")).to_contain_text("Best: 64 x 48, the largest")
    keep(page, "review-duplicates")
    small.get_by_role("button", name="Keep the best, remove the other").click()
    expect(page.get_by_role("status").filter(has_text="emoved")).to_be_visible()
    expect(groups(page)).to_have_count(1)
    assert items(page) == 21
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(groups(page)).to_have_count(2)
    assert items(page) == 22


def test_people_may_choose_otherwise(changing, page):
    review(page, changing, "duplicates")
    small = groups(page).nth(1)
    small.get_by_label("Keep small.png").check()
    expect(small.get_by_role("button", name="All are kept")).to_be_disabled()
    small.get_by_label("Keep south/02.png").uncheck()
    small.get_by_role("button", name="Keep this one, remove the other").click()
    expect(groups(page)).to_have_count(1)
    assert page.evaluate("fetch('api/v1/item?id=small.png').then((answer) => answer.status)") == 200
    assert items(page) == 21


def test_of_a_large_group_the_best_and_some_others_are_shown_first(browser, tmp_path):
    collection, X = make_vectors(tmp_path / "v")
    collection.add(X[[3] * 30])
    with serving(make_service(tmp_path / "v", tmp_path), can_edit=True) as address, a_page(browser) as page:
        review(page, address, "duplicates")
        expect(groups(page).locator(".card")).to_have_count(24)
        expect(groups(page).locator(".card").first).to_contain_text("Best: the first of them")
        groups(page).get_by_role("button", name="Show 7 more items").click()
        expect(groups(page).locator(".card")).to_have_count(31)
        groups(page).get_by_role("button", name="Keep the best, remove the 30 others").click()
        expect(page.get_by_text("Nothing is there twice.")).to_be_visible()
        assert items(page) == 40


def test_at_least_one_copy_stays(changing, page):
    review(page, changing, "duplicates")
    small = groups(page).nth(1)
    small.get_by_label("Keep south/02.png").uncheck()
    expect(small.get_by_role("button", name="Keep at least one")).to_be_disabled()


def test_everything_that_is_proposed_is_done_at_once_when_it_is_confirmed(changing, page):
    review(page, changing, "duplicates")
    page.get_by_role("button", name="Keep the best of all groups…").click()
    dialog = page.get_by_role("dialog", name="Remove 2 items from the collection?")
    expect(dialog).to_contain_text("Of 2 groups, what is marked to be kept stays, and 2 items leave the collection.")
    dialog.get_by_role("button", name="Remove 2 items").click()
    expect(page.get_by_text("Nothing is there twice.")).to_be_visible()
    assert items(page) == 20
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(groups(page)).to_have_count(2)


def test_where_nothing_may_be_changed_duplicates_are_shown_and_it_is_said(page, address):
    review(page, address, "duplicates")
    expect(page.get_by_text("start it with --allow-edit")).to_be_visible()
    expect(groups(page)).to_have_count(2)
    expect(groups(page).get_by_role("button", name="Keep")).to_have_count(0)


def test_keys_alone_go_through_the_tabs_and_resolve_a_group(changing, page):
    review(page, changing, "places")
    page.get_by_role("tab", name="Places").focus()
    for key in ("ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Duplicates")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tab", name="Duplicates")).to_be_focused()
    page.wait_for_selector(".copies-group", timeout=60_000)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "resolve-1":
            break
    page.keyboard.press("Enter")
    expect(groups(page)).to_have_count(1)
    expect(page.locator("#resolve-1")).to_be_focused()


def test_fingers_resolve_a_group(changing, browser):
    with a_phone(browser) as page:
        review(page, changing, "duplicates")
        groups(page).nth(1).get_by_label("Keep small.png").tap()
        groups(page).nth(1).get_by_label("Keep south/02.png").tap()
        keep(page, "review-phone")
        groups(page).nth(1).get_by_role("button", name="Keep this one, remove the other").tap()
        expect(groups(page)).to_have_count(1)
        assert fits(page)


def test_a_month_leads_to_as_many_items_as_it_says(page, address):
    review(page, address, "timeline")
    expect(page.locator(".panel .head")).to_contain_text("22 items with a date")
    assert page.locator(".year h2 a").all_text_contents() == ["2012", "2011", "2010"]
    keep(page, "review-timeline")
    month = page.get_by_role("link", name="April 2010: 3 items")
    month.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(month).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".card")).to_have_count(3)
    expect(page.locator(".clauses")).to_contain_text("taken from 2010-04-01")
    page.go_back()
    page.locator(".year").filter(has_text="2011").get_by_role("link", name="2011", exact=True).click()
    expect(page.locator(".found")).to_have_text("7 items")


def test_december_ends_with_the_year(browser, tmp_path):
    collection, _ = make_vectors(tmp_path / "v")
    dates = ["2010-12-31 23:59:59", "2011-01-01", "2010-12-01 00:00:00"]
    collection.update(range(3), metadata=[{"taken": taken} for taken in dates])
    with serving(make_service(tmp_path / "v", tmp_path)) as address, a_page(browser) as page:
        review(page, address, "timeline")
        expect(page.locator(".panel .head")).to_contain_text("3 items with a date; 37 items without")
        page.get_by_role("link", name="December 2010: 2 items").click()
        expect(page.locator(".card")).to_have_count(2)


def test_a_circle_leads_to_as_many_items_as_it_says(page, address):
    review(page, address, "places")
    expect(page.locator(".panel .head")).to_contain_text("20 items with a place; 2 items without")
    expect(page.get_by_role("heading", name="20 items in 2 places in sight")).to_be_visible()
    assert page.locator(".earth circle").count() == 2
    assert page.locator(".earth text").all_text_contents() == ["10", "10"]
    page.mouse.move(*first_circle(page))
    expect(page.locator(".earth-box .tip")).to_contain_text("10 items near 33.90° S, 151.20° E")
    keep(page, "review-places")
    page.mouse.click(*first_circle(page))
    expect(page.locator(".found")).to_have_text("10 items")
    assert set(page.locator(".card").evaluate_all("(all) => all.map((one) => one.dataset.id.split('/')[0])")) == {
        "south"
    }


def test_the_list_of_places_is_of_those_in_sight_and_leads_to_the_same(page, address):
    review(page, address, "places")
    page.locator(".earth").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "+", "+", "+"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name="10 items in 1 place in sight")).to_be_visible()
    page.get_by_role("link", name="10 items near 33.90° S").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".found")).to_have_text("10 items")
    review(page, address, "places")
    page.get_by_role("button", name="The whole earth").click()
    expect(page.get_by_role("heading", name="20 items in 2 places in sight")).to_be_visible()


def test_close_places_are_told_apart_when_they_are_looked_at_closely(browser, tmp_path):
    collection, _ = make_vectors(tmp_path / "v")
    spots = [(41.9, 12.4), (41.9, 12.4), (41.91, 12.6), (48.8, 2.3)]
    collection.update(range(4), metadata=[{"latitude": north, "longitude": east} for north, east in spots])
    with serving(make_service(tmp_path / "v", tmp_path)) as address, a_page(browser) as page:
        review(page, address, "places")
        expect(page.get_by_role("heading", name="4 items in 2 places in sight")).to_be_visible()
        for _ in range(3):
            page.mouse.move(*first_circle(page))
            page.mouse.wheel(0, -200)
        expect(page.get_by_role("heading", name="3 items in 2 places in sight")).to_be_visible()
        page.get_by_role("link", name="2 items near 41.90° N").click()
        expect(page.locator(".found")).to_have_text("2 items")


def test_fingers_pinch_the_earth_and_tap_a_place(browser, address):
    with a_phone(browser) as page:
        review(page, address, "places")
        page.locator(".earth").scroll_into_view_if_needed()
        x, y = first_circle(page)
        drag_fingers(page, along((x - 15, y - 10), (x - 60, y - 40)), along((x + 15, y + 10), (x + 60, y + 40)))
        expect(page.get_by_role("heading", name="10 items in 1 place in sight")).to_be_visible()
        keep(page, "review-places-phone")
        assert fits(page)
        page.touchscreen.tap(*first_circle(page))
        expect(page.locator(".found")).to_have_text("10 items")


def test_a_group_shows_its_items_under_an_address_of_its_own(page, address):
    review(page, address, "clusters")
    first = page.locator(".clusters li").first
    keep(page, "review-clusters")
    words = first.get_by_role("link").get_attribute("aria-label")
    first.get_by_role("link").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".card")
    assert "cluster=1" in page.url
    assert words.endswith(f": {page.locator('.card').count()} items")
    page.reload()
    page.wait_for_selector(".card")
    page.get_by_role("link", name="All groups").click()
    page.wait_for_selector(".clusters li")
    page.goto(f"{address}/?view=review&tab=clusters&cluster=99")
    expect(page.get_by_text("There is no group 99")).to_be_visible()


def test_a_filter_holds_on_the_timeline_and_on_the_earth(page, address):
    for tab in ("timeline", "places"):
        review(page, address, tab, "&where=place+%3D+'Rome'")
        expect(page.locator(".panel .head")).to_contain_text("10 items with a ")
        expect(page.locator(".clauses")).to_contain_text("place is Rome")


def test_where_there_is_nothing_it_is_said(browser, tmp_path):
    collection, _ = make_vectors(tmp_path / "v")
    collection.update([0], metadata=[{"taken": "yesterday", "latitude": "north"}])
    with serving(make_service(tmp_path / "v", tmp_path)) as address, a_page(browser) as page:
        said = ["Nothing is there twice.", "No item has a date.", "No item has a latitude and a longitude."]
        for tab, words in zip(TABS, said, strict=False):
            page.goto(f"{address}/?view=review&tab={tab}")
            expect(page.locator(".panel")).to_contain_text(words, timeout=60_000)


def test_what_metadata_and_ids_say_is_text_whatever_it_looks_like(browser, tmp_path):
    _, X = make_vectors(tmp_path / "v")
    nasty = [f"{number}{NASTY}" for number in range(2)]
    model = manifind.GradNet(n_neighbors=5, layers=(8, 4), max_steps=2, batch_size=8, random_state=0).fit(X)
    ids = [f"{nasty[row % 2]}/{row}" for row in range(40)]
    fields = [
        {"place": nasty[row % 2], "path": f"{nasty[row % 2]}/{row}", "taken": f"2010-01-01 {NASTY}"}
        for row in range(40)
    ]
    collection = model.save(tmp_path / "nasty", ids, fields)
    collection.add(X[:2], [f"{NASTY}a", f"{NASTY}b"], [{"latitude": 5, "longitude": 5}] * 2)
    with serving(make_service(tmp_path / "nasty", tmp_path), can_edit=True) as address, a_page(browser) as page:
        for tab in TABS:
            review(page, address, tab)
            assert page.locator("main img[src=x]").count() == 0
            assert axe_findings(page) == []
            assert fits(page)
        expect(page.locator("main")).to_contain_text("<img src=x onerror=alert(1)>")
        page.goto(f"{address}/?view=map&colour=place")
        page.wait_for_selector(".legend", timeout=90_000)
        expect(page.locator(".legend")).to_contain_text("<img src=x onerror=alert(1)>")
        assert page.locator("main img[src=x]").count() == 0
        page.goto("about:blank")  # or it would ask on when the server is gone


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_axe_finds_nothing_light_or_dark_narrow_or_wide(browser, address, scheme, width):
    with a_page(browser, width, color_scheme=scheme) as page:
        for tab, more in (*((tab, "") for tab in TABS), ("clusters", "&cluster=1")):
            review(page, address, tab, more)
            until(page, "!document.querySelector('.panel progress')")
            assert axe_findings(page) == [], tab
            assert fits(page), tab
            keep(page, f"review-{scheme}-{width}-{tab}{more.strip('&')}")
