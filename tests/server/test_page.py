"""The page in a real browser: cards, queries, side by side, why, ways back, faults in words, narrow, light and dark."""

import pytest
from playwright.sync_api import expect

from manifind.model.index_folder import index_folder
from server.live import a_browser, keep, serving
from server.made import make_pictures, make_service, make_vectors
from server.pages import a_page, a_phone, axe_findings, fits, until


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


@pytest.fixture(scope="module")
def many(folder):
    """Three hundred items, more than are loaded at once."""
    make_vectors(folder / "many", 300)
    with serving(make_service(folder / "many", folder)) as one:
        yield one


@pytest.fixture
def page(browser):
    with a_page(browser) as one:
        yield one


def names(page):
    return page.locator(".grid .label").all_text_contents()


def results(page):
    page.wait_for_selector(".card .facts")
    return names(page)


def focused(page):
    return page.evaluate("document.activeElement.getAttribute('aria-label')")


def card(page, name):
    return page.locator(".card", has=page.get_by_role("link", name=f"Look at {name}", exact=True))


def test_more_like_this_searches_and_the_back_button_leads_back(page, address):
    page.goto(address)
    page.wait_for_selector(".card img")
    assert len(names(page)) == 20
    page.get_by_role("button", name="More like north/01.png").click()
    assert results(page)[0] == "01.png"
    assert page.url == f"{address}/?q=id:north/01.png"
    keep(page, "search")
    shared = page.url
    page.go_back()
    page.wait_for_selector("h1:has-text('All 20 items')")
    page.goto(shared)
    assert results(page)[0] == "01.png"


@pytest.mark.parametrize("old", ["id=north/01.png", "id=north%2F01.png&method=knn"])
def test_addresses_from_before_still_lead_to_their_query(page, address, old):
    page.goto(f"{address}/?{old}")
    assert results(page)[0] == "01.png"
    expect(page.get_by_role("button", name="k-NN")).to_have_attribute("aria-pressed", str("knn" in old).lower())


def test_a_card_is_a_link_that_opens_the_viewer_or_a_tab_of_its_own(page, address):
    page.goto(address)
    link = page.get_by_role("link", name="Look at north/03.png")
    assert link.get_attribute("href") == "?show=north/03.png"
    with page.context.expect_page() as opened:
        link.click(modifiers=["ControlOrMeta"])
    expect(opened.value.locator("dialog.viewer")).to_be_visible()
    assert page.url == f"{address}/"


def test_the_viewer_opens_and_closes_above_results_that_stay_as_they_are(page, many):
    page.goto(f"{many}/?q=id:7")
    page.wait_for_selector(".card")
    page.evaluate("scrollTo(0, 300)")
    page.evaluate("document.querySelector('.grid').isTheSame = true")
    page.locator(".card .open").nth(20).focus()
    before = page.evaluate("scrollY")
    page.keyboard.press("Enter")
    expect(page.locator("dialog.viewer")).to_be_visible()
    assert "show=" in page.url
    page.go_back()
    expect(page.locator("dialog.viewer")).to_be_hidden()
    page.go_forward()
    expect(page.locator("dialog.viewer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog.viewer")).to_be_hidden()
    page.wait_for_url(f"{many}/?q=id:7")
    assert page.evaluate("document.querySelector('.grid').isTheSame")
    assert page.evaluate("scrollY") == before


@pytest.mark.parametrize("asked", ["", "?q=id:7", "?q=id:7&method=compare"])
def test_back_and_reload_lead_to_the_same_place_in_as_long_a_list(page, many, asked):
    page.goto(f"{many}/{asked}")
    page.wait_for_selector(".card")
    while page.locator(".card").count() < 150:
        n = page.locator(".card").count()
        page.locator(".card .open").last.focus()
        until(page, f"document.querySelectorAll('.card').length > {n}")
    more = page.locator(".card").nth(100).get_by_role("button", name="More like")
    more.focus()
    before, link = page.evaluate("scrollY"), page.locator(".card .open").nth(100).get_attribute("href")
    assert before > 500
    page.keyboard.press("Enter")
    until(page, "scrollY === 0")
    page.go_back()
    until(page, f"scrollY === {before}")
    assert page.locator(".card .open").nth(100).get_attribute("href") == link
    page.reload()
    until(page, f"scrollY === {before}")
    assert page.locator(".card .open").nth(100).get_attribute("href") == link


PLACE = "((name) => [...document.querySelectorAll('.grid .label')].map((one) => one.textContent).indexOf(name))"


def test_more_and_less_like_this_make_one_query_by_keyboard_alone(page, address):
    page.goto(f"{address}/?q=id:north/01.png")
    first = results(page)
    page.locator(".card .open").nth(5).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert focused(page).startswith("More like")
    page.keyboard.press("Tab")
    assert focused(page).startswith("Less like")
    page.keyboard.press("Enter")
    expect(page.locator(".part")).to_have_count(2)
    less = page.locator(".part.less")
    expect(less.locator("bdi")).to_have_text(first[5])
    until(page, f"{PLACE}('{first[5]}') > 8")
    keep(page, "more-and-less")
    less.locator(".turn").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".part.less")).to_have_count(0)
    until(page, f"0 <= {PLACE}('{first[5]}') && {PLACE}('{first[5]}') < 3")
    assert focused(page) == f"Less like {parse(page)[1]}"
    page.get_by_role("button", name=f"Remove {parse(page)[1]} from the query").press("Enter")
    expect(page.locator(".part")).to_have_count(1)
    assert results(page) == first


def parse(page):
    """The values of the parts in the address."""
    return page.evaluate("new URLSearchParams(location.search).getAll('q').map((one) => one.replace(/^-?\\w+:/, ''))")


def test_the_same_query_stands_side_by_side_and_goes_on(page, many):
    page.goto(f"{many}/?q=id:7")
    page.get_by_role("button", name="Side by side").press("Enter")
    page.wait_for_selector(".columns .card")
    assert focused(page) is None
    assert page.evaluate("document.activeElement.textContent") == "Side by side"
    assert page.locator(".columns h2").all_text_contents() == ["Plain neighbours (k-NN)", "GRAD-Net"]
    while page.locator(".columns .card").count() < 600:
        n = page.locator(".card").count()
        page.locator(".card .open").last.focus()
        until(page, f"document.querySelectorAll('.card').length > {n}")
    for column in page.locator(".columns section").all():
        assert len(set(column.locator(".label").all_text_contents())) == 300
    expect(page.locator(".found")).to_have_text(
        "0 of the first 300 results of GRAD-Net are not among the first 300 of k-NN"
    )


def test_the_marks_say_which_method_ranks_an_item_higher(page, many):
    page.goto(f"{many}/?q=id:7&method=compare")
    page.wait_for_selector(".columns .card")
    plain, learned = page.locator(".columns section").all()
    for column, own, other in ((learned, "GRAD-Net", "k-NN"), (plain, "k-NN", "GRAD-Net")):
        for mark in column.locator(".mark").all():
            sign, words = mark.locator("span").all_text_contents()
            higher = {"▲": own, "▼": other}.get(sign[0])
            meant = f"{higher} ranks it {sign[1:]} higher" if higher else f"{own} and {other} give it the same rank"
            assert words == meant
        expect(column.locator("p").first).to_contain_text(f"▲ {own} ranks it higher than {other}")
    assert page.locator(".mark.up").count() > 0
    assert page.locator(".mark.down").count() > 0
    keep(page, "compare")


def test_several_parts_stand_side_by_side_too(page, address):
    page.goto(f"{address}/?q=id:north/01.png&q=-id:south/02.png&method=compare")
    page.wait_for_selector(".columns .card")
    assert page.locator(".columns .card").count() == 40


def test_why_shows_the_path_with_its_weights(page, address):
    page.goto(f"{address}/?q=id:north/01.png")
    second = results(page)[1]
    page.get_by_role("button", name="Why").nth(1).press("Enter")
    page.wait_for_selector(".path figure img")
    captions = page.locator(".path figcaption").all_text_contents()
    assert captions[0] == "01.png"
    assert captions[-1] == second
    assert page.locator(".path meter").count() == len(captions) - 1
    keep(page, "why")
    page.keyboard.press("Escape")
    assert not page.locator("#dialog").is_visible()


def test_why_of_several_parts_is_asked_for_each_of_them(page, address):
    page.goto(f"{address}/?q=id:north/01.png&q=id:south/02.png")
    page.get_by_role("button", name="Why").nth(3).click()
    expect(page.locator(".path figcaption").first).to_have_text("01.png")
    page.get_by_role("button", name="02.png", exact=True).press("Enter")
    expect(page.locator(".path figcaption").first).to_have_text("02.png")


def test_cards_are_walked_and_selected_by_keys_alone(page, address):
    page.goto(address)
    page.locator(".card .open").first.focus()
    page.keyboard.press("ArrowRight")
    assert focused(page) == "Look at north/03.png"
    page.keyboard.press("Space")
    expect(card(page, "north/03.png").get_by_role("checkbox")).to_be_checked()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert page.locator(".card.selected .label").all_text_contents() == ["03.png", "05.png", "07.png"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    assert page.locator(".card.selected").count() == 4
    keep(page, "selected")
    page.keyboard.press("Space")
    page.keyboard.press("End")
    assert focused(page) == "Look at south/18.png"
    page.keyboard.press("Home")
    assert focused(page) == "Look at north/01.png"


def test_tab_goes_through_one_card_and_then_on(page, address):
    page.goto(address)
    page.locator(".card .open").nth(3).focus()
    seen = []
    for _ in range(5):
        seen.append(focused(page))
        page.keyboard.press("Tab")
    assert seen[:4] == [f"{what} north/07.png" for what in ("Look at", "Select", "More like", "Less like")]
    assert not page.evaluate("document.activeElement.closest('.card')")


def test_a_range_is_selected_with_the_shift_key_and_a_pointer(page, address):
    page.goto(address)
    card(page, "north/03.png").hover()
    card(page, "north/03.png").get_by_role("checkbox").click()
    card(page, "north/09.png").get_by_role("link").click(modifiers=["Shift"])
    assert page.locator(".card.selected .label").all_text_contents() == ["03.png", "05.png", "07.png", "09.png"]
    card(page, "north/05.png").get_by_role("checkbox").click()
    assert page.locator(".card.selected").count() == 3


def test_vectors_have_ids_and_metadata_in_place_of_pictures(page, many):
    page.goto(many)
    page.wait_for_selector(".card")
    assert page.locator(".card img").count() == 0
    assert "<b>item 0</b>" in page.locator(".fields").first.text_content()
    assert page.locator("b").count() == 0  # what metadata says is text, whatever it looks like
    expect(page.get_by_role("button", name="Picture…")).to_be_hidden()
    keep(page, "vectors")


def test_what_is_being_typed_and_where_one_is_stay_when_the_collection_changes(page, address):
    page.goto(address)
    link = page.get_by_role("link", name="Look at south/12.png")
    link.focus()
    page.evaluate("document.querySelector('.grid').isOld = true")
    before = page.evaluate("scrollY")
    page.evaluate("dispatchEvent(new Event('changed'))")
    until(page, "!document.querySelector('.grid').isOld && document.activeElement !== document.body")
    assert focused(page) == "Look at south/12.png"
    assert page.evaluate("scrollY") == before
    page.get_by_role("combobox").fill("half a wo")
    page.evaluate("document.querySelector('.grid').isOld = true")
    page.evaluate("dispatchEvent(new Event('changed'))")
    until(page, "!document.querySelector('.grid').isOld")
    expect(page.get_by_role("combobox")).to_have_value("half a wo")
    expect(page.get_by_role("combobox")).to_be_focused()


VIEWS = {
    "all": "/",
    "query": "/?q=id:north/01.png&q=-id:south/02.png&where=width+%3E+1",
    "compare": "/?q=id:north/01.png&method=compare",
    "viewer": "/?show=north/01.png",
    "map": "/?view=map",
    "review": "/?view=review",
    "collection": "/?view=collection",
    "api": "/api",
}
READY = ".card .deeds, canvas, .facts-table, [role=tab], .tabs"


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_axe_finds_nothing_in_any_view_light_or_dark_narrow_or_wide(browser, address, scheme, width):
    with a_page(browser, width, color_scheme=scheme) as page:
        for name, view in VIEWS.items():
            page.goto(f"{address}{view}")
            page.wait_for_selector(READY)
            page.wait_for_load_state("networkidle")
            assert axe_findings(page) == [], view
            assert fits(page), view
            keep(page, f"{scheme}-{width}-{name}")


def test_on_a_phone_fingers_are_enough_and_nothing_is_covered(browser, address):
    with a_phone(browser) as phone:
        phone.goto(address)
        phone.get_by_role("button", name="More like north/03.png").tap()
        assert results(phone)[0] == "03.png"
        phone.get_by_role("button", name="Less like south/04.png").tap()
        phone.get_by_role("button", name="Side by side").tap()
        phone.wait_for_selector(".columns .card")
        assert fits(phone)
        keep(phone, "phone-compare")
        phone.get_by_role("button", name="GRAD-Net", exact=True).tap()
        phone.locator(".card .pick").nth(1).tap()
        expect(phone.locator(".card.selected")).to_have_count(1)
        phone.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        keep(phone, "phone-selected")
        last = phone.locator(".card .deeds").last
        last.scroll_into_view_if_needed()
        x, y = middle_of(last)
        assert phone.evaluate(f"document.elementFromPoint({x}, {y}).closest('.deeds') !== null")
        assert fits(phone)
        assert axe_findings(phone) == []


def middle_of(locator):
    box = locator.get_by_role("button").first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_renamed_file_is_shown_under_its_current_name(browser, tmp_path):
    make_pictures(tmp_path / "c", tmp_path / "photos")
    (tmp_path / "photos" / "north" / "01.png").rename(tmp_path / "photos" / "south" / "harbour.png")
    index_folder(tmp_path / "photos", tmp_path / "c")
    with serving(make_service(tmp_path / "c", tmp_path)) as address, a_page(browser) as page:
        page.goto(f"{address}/?name=harbour")
        expect(page.locator(".card")).to_have_count(1)
        assert names(page) == ["harbour.png"]
        page.get_by_role("button", name="More like south/harbour.png (id north/01.png)").click()
        assert results(page)[0] == "harbour.png"
        assert page.url == f"{address}/?q=id:north/01.png"


def test_one_item_is_not_called_items(browser, tmp_path):
    collection, _ = make_vectors(tmp_path / "c")
    collection.remove(range(1, 40))
    with serving(make_service(tmp_path / "c", tmp_path)) as address, a_page(browser) as page:
        page.goto(address)
        expect(page.locator("h1")).to_have_text("1 item")
        expect(page.locator(".found")).to_have_text("1 item")
        page.goto(f"{address}/?q=id:0")
        expect(page.locator(".found")).to_have_text("1 result")


def test_the_collection_page_tells_what_was_learned(page, address):
    page.goto(address)
    page.locator("nav").get_by_role("link", name="Collection").press("Enter")
    expect(page.get_by_role("heading", name="Can it be trusted?")).to_be_visible()
    expect(page.locator("svg.chart")).to_have_count(2)
