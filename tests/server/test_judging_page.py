"""Judgements in a real browser: results called right or wrong, kept with their query, and what all of them say."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from server.live import a_browser, keep, serving
from server.made import make_pictures, make_service
from server.pages import a_page, a_phone, axe_findings, fits, press_until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def browser():
    with a_browser() as one:
        yield one


@pytest.fixture
def page(browser):
    with a_page(browser) as one:
        yield one


@pytest.fixture
def address(tmp_path):
    """A collection of twenty pictures of its own, which may be judged."""
    make_pictures(tmp_path / "pictures", tmp_path / "photos")
    with serving(make_service(tmp_path / "pictures", tmp_path), can_edit=True) as one:
        yield one


@pytest.fixture(scope="module")
def fixed(folder):
    """The address of a collection that may not be changed."""
    make_pictures(folder / "fixed", folder / "fixed-photos")
    with serving(make_service(folder / "fixed", folder)) as one:
        yield one


def judge(page, verdict, name):
    button = page.get_by_role("button", name=f"{verdict}: {name}", exact=True)
    button.click()
    return button


def test_results_are_judged_kept_and_taken_back(address, page):
    page.goto(f"{address}/?q=id:north/01.png")
    right = judge(page, "Right", "south/02.png")
    expect(right).to_have_attribute("aria-pressed", "true")
    wrong = judge(page, "Wrong", "north/03.png")
    expect(wrong).to_have_attribute("aria-pressed", "true")
    assert page.get_by_role("button", name="Right: north/01.png").count() == 0  # it was asked with
    keep(page, "judged")
    page.reload()
    expect(page.get_by_role("button", name="Right: south/02.png")).to_have_attribute("aria-pressed", "true")
    judge(page, "Wrong", "south/02.png")
    expect(page.get_by_role("button", name="Right: south/02.png")).to_have_attribute("aria-pressed", "false")
    expect(judge(page, "Wrong", "south/02.png")).to_have_attribute("aria-pressed", "false")
    page.goto(f"{address}/?q=id:south/02.png")
    expect(page.get_by_role("button", name="Wrong: north/03.png")).to_have_attribute("aria-pressed", "false")


def test_side_by_side_both_cards_of_an_item_show_its_judgement(address, page):
    page.goto(f"{address}/?q=id:north/01.png&method=compare")
    right = page.get_by_role("button", name="Right: south/02.png")
    right.first.click()
    for place in (right.first, right.last):
        expect(place).to_have_attribute("aria-pressed", "true")
    assert right.count() == 2


def test_a_query_of_several_parts_is_judged_as_a_whole(address, page):
    page.goto(f"{address}/?q=id:north/01.png&q=-id:south/04.png")
    expect(judge(page, "Right", "south/02.png")).to_have_attribute("aria-pressed", "true")
    page.goto(f"{address}/?q=id:north/01.png")
    expect(page.get_by_role("button", name="Right: south/02.png")).to_have_attribute("aria-pressed", "false")
    page.goto(f"{address}/?view=collection")
    page.get_by_text("Judged queries", exact=True).click()
    page.get_by_role("link", name="north/01.png and not south/04.png").click()
    expect(page.get_by_role("button", name="Right: south/02.png")).to_have_attribute("aria-pressed", "true")
    assert parse_qs(urlsplit(page.url).query) == {"q": ["id:north/01.png", "-id:south/04.png"]}


def test_results_are_judged_by_keys_alone(address, page):
    page.goto(f"{address}/?q=id:north/01.png")
    page.locator(".card .open").first.focus()
    page.keyboard.press("ArrowRight")
    name = page.evaluate("document.activeElement.closest('.card').dataset.id")
    press_until(page, "Tab", f"✗Wrong: {name}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=f"Wrong: {name}")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name=f"Right: {name}")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name=f"Wrong: {name}")).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_results_are_judged_by_touch_on_a_phone_and_axe_finds_nothing(browser, address, scheme):
    with a_phone(browser, color_scheme=scheme) as page:
        page.goto(f"{address}/?q=id:north/01.png")
        for name in ("Right: south/02.png", "Wrong: north/03.png"):
            page.get_by_role("button", name=name).tap()
            expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
        assert axe_findings(page) == []
        assert fits(page)
        keep(page, f"judged-phone-{scheme}")
        page.goto(f"{address}/?view=collection")
        page.get_by_text("Judged queries", exact=True).tap()
        expect(page.locator(".judged").get_by_role("link")).to_have_count(1)
        assert axe_findings(page) == []
        assert fits(page)
        keep(page, f"judged-summary-phone-{scheme}")


def test_the_collection_page_says_what_judgements_say_of_both_methods(browser, address):
    with a_page(browser, color_scheme="light") as page:
        page.goto(f"{address}/?view=collection")
        expect(page.locator(".judged")).to_contain_text("No query has been judged")
        for number in (1, 5, 9):
            page.goto(f"{address}/?q=id:north/{number:02}.png")
            for verdict, name in (("Right", "south/02.png"), ("Right", "south/04.png"), ("Wrong", "north/03.png")):
                expect(judge(page, verdict, name)).to_have_attribute("aria-pressed", "true")
        page.goto(f"{address}/?view=collection")
        judged = page.locator(".judged")
        expect(judged).to_contain_text("3 queries have been judged: 6 results right, 3 wrong")
        expect(judged).to_contain_text("Gain of GRAD-Net")
        expect(judged).to_contain_text("fewer than 6 queries can agree by chance")
        judged.get_by_text("Judged queries", exact=True).click()
        assert axe_findings(page) == []
        keep(page, "judged-summary")
        judged.get_by_role("link", name="north/05.png").click()
        expect(page.get_by_role("button", name="Right: south/04.png")).to_have_attribute("aria-pressed", "true")


GAINS = {
    "GRAD-Net is better here by 12.5 points, beyond chance": {"value": 12.5, "low": 2.0, "high": 20.0},
    "Plain neighbours are better here by 12.5 points, beyond chance": {"value": -12.5, "low": -20.0, "high": -2.0},
    "the interval of the gain holds zero": {"value": 2.0, "low": -3.0, "high": 7.0},
}


@pytest.mark.parametrize("words", GAINS)
def test_what_judgements_say_is_never_more_than_the_interval_allows(fixed, browser, words):
    found = {name: {"value": 50.0, "low": 40.0, "high": 60.0} for name in ("gradnet", "knn")}
    answer = {"queries": [], "scores": {"queries": 9, **found, "gain": GAINS[words]}}

    def with_judgements(route):
        route.fulfill(json={**route.fetch().json(), "judged": {"queries": 9, "right": 20, "wrong": 20}})

    with a_page(browser) as page:
        page.route("**/api/v1/collection", with_judgements)
        page.route("**/api/v1/judgements", lambda route: route.fulfill(json=answer))
        page.goto(f"{fixed}/?view=collection")
        expect(page.locator(".judged")).to_contain_text(words)


def test_judging_is_not_offered_where_nothing_may_be_changed(fixed, page):
    page.goto(f"{fixed}/?q=id:north/01.png")
    expect(page.locator(".card").first).to_be_visible()
    assert page.locator(".judge").count() == 0
