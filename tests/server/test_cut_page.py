"""The cut-off in the API and on the page: what belongs is shown, the rest on demand, and strangers are told so."""

import numpy as np
import pytest
from playwright.sync_api import expect
from starlette.testclient import TestClient

from manifind import GradNet
from manifind.collection import version
from manifind.search.cutoff import read_cutoff
from server.live import a_browser, keep, serving
from server.made import HOST, app_of, make_service
from server.pages import a_page, a_phone, axe_findings, fits

pytestmark = pytest.mark.long


EACH = 12


@pytest.fixture(scope="module")
def browser():
    with a_browser() as one:
        yield one


@pytest.fixture(scope="module")
def groups(folder):
    """Eight groups of twelve items, far apart, in a collection that knows who belongs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(version, "read_cutoff", read_cutoff)
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(8, 16)), EACH, axis=0) + 0.05 * rng.normal(size=(8 * EACH, 16))
        GradNet(random_state=0, max_steps=30).fit(X).save(folder / "groups")
        service = make_service(folder / "groups", folder)
        yield service, X
        service.close()


@pytest.fixture(scope="module")
def client(groups):
    with TestClient(app_of(groups[0]), base_url=HOST) as one:
        yield one


@pytest.fixture(scope="module")
def address(groups):
    with serving(groups[0]) as one:
        yield one


def cards(page):
    return page.locator(".grid .card")


def test_the_api_leaves_out_what_does_not_belong_when_asked_to(client):
    whole = client.get("/api/v1/search", params={"id": "0", "k": 40}).json()
    cut = client.get("/api/v1/search", params={"id": "0", "k": 40, "cut": True}).json()
    assert len(whole["results"]) == 40
    assert not whole["cut_off"]
    assert [one["id"] for one in cut["results"]] == [one["id"] for one in whole["results"][: len(cut["results"])]]
    assert 10 <= len(cut["results"]) <= EACH + 2
    assert all(one["certainty"] >= 0.5 for one in cut["results"])
    assert cut["cut_off"]
    assert not cut["more"]


def test_a_page_of_a_cut_answer_has_more_until_it_ends(client):
    first = client.get("/api/v1/search", params={"id": "0", "k": 5, "cut": True}).json()
    assert first["more"]
    assert not first["cut_off"]
    beyond = client.get("/api/v1/search", params={"id": "0", "k": 5, "offset": 20, "cut": True}).json()
    assert beyond["results"] == []
    assert not beyond["more"]


def test_a_stranger_gets_nothing_and_an_item_of_a_group_its_group(client, groups):
    stranger = np.random.default_rng(9).normal(size=16).tolist()
    found = client.post("/api/v1/search/vector", json={"vector": stranger, "cut": True}).json()
    assert len(found["results"]) <= 1
    assert found["cut_off"]
    near = client.post("/api/v1/search/vector", json={"vector": (groups[1][0] * 1.01).tolist(), "cut": True}).json()
    assert len(near["results"]) >= 10
    several = client.post(
        "/api/v1/search/combined", json={"parts": [{"id": "0"}, {"id": "13"}], "cut": True, "k": 40}
    ).json()
    assert several["cut_off"]


def test_plain_neighbours_are_never_cut(client):
    found = client.get("/api/v1/search", params={"id": "0", "k": 40, "method": "knn", "cut": True}).json()
    assert len(found["results"]) == 40
    assert found["results"][0]["certainty"] is None


def test_the_page_shows_what_belongs_and_the_rest_on_demand(browser, address):
    with a_page(browser) as page:
        page.goto(f"{address}/?q=id:0")
        more = page.get_by_role("button", name="Show more, less alike")
        more.wait_for()
        n = cards(page).count()
        assert 10 <= n <= EACH + 2
        assert axe_findings(page) == []
        keep(page, "cut")
        more.focus()
        page.keyboard.press("Enter")
        expect(more).to_have_count(0)
        expect(cards(page).nth(30)).to_be_visible()
        assert "all=1" in page.url
        page.go_back()
        expect(cards(page)).to_have_count(n)


def test_another_query_is_cut_again(browser, address):
    with a_page(browser) as page:
        page.goto(f"{address}/?q=id:0&all=1")
        expect(cards(page).nth(30)).to_be_visible()
        page.goto(f"{address}/?q=id:13")
        page.get_by_role("button", name="Show more, less alike").wait_for()
        assert cards(page).count() <= EACH + 2


def test_where_nothing_is_alike_the_page_says_so(browser, address, groups, monkeypatch):
    view = groups[0].view()
    learned = view.version.opened
    monkeypatch.setitem(learned.__dict__, "cutoff", learned.cutoff._replace(middle=2.0))
    with a_phone(browser) as page:
        page.goto(f"{address}/?q=id:5")
        expect(page.get_by_text("Nothing here is really alike.")).to_be_visible()
        expect(page.get_by_text("Nothing satisfies the filter.")).to_have_count(0)
        assert axe_findings(page) == []
        assert fits(page)
        keep(page, "cut-nothing")
        page.get_by_role("button", name="Show more, less alike").tap()
        expect(cards(page).nth(20)).to_be_visible()
