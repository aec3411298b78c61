"""Selections: what is tagged, exported, removed and undone, by the API and in a real browser."""

import csv
import io
import zipfile
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect
from starlette.testclient import TestClient

import manifind
from server.live import a_browser, keep, serving
from server.made import HOST, app_of, make_pictures, make_service, make_vectors
from server.pages import a_page, a_phone, axe_findings, fits, press_until, until
from server.test_api import API, ask, finished

pytestmark = pytest.mark.long


N, SELECTED = 800, [str(number) for number in (*range(0, 600, 2), *range(1, 401, 2))]


def post(client, path, body, status=202):
    """The result of a job."""
    answer = client.post(f"{API}/{path}", json=body)
    assert answer.status_code == status, answer.text
    state = finished(client, answer.json())
    assert state["state"] == "done", state
    return state["result"]


def everything(client):
    """All items with their metadata, and the answers to some queries."""
    listed = [ask(client, "items", offset=offset, limit=500) for offset in (0, 500)]
    items = [item for page in listed for item in page["items"]]
    searches = [ask(client, "search", id=id_, k=200, method=how) for id_ in (1, 200, 701) for how in ("gradnet", "knn")]
    return items, searches


@pytest.fixture(scope="module")
def many(folder):
    """A collection of 800 vectors that may be changed, some of them tagged before."""
    make_vectors(folder / "many", N)
    with TestClient(app_of(make_service(folder / "many", folder), True), base_url=HOST) as client:
        post(client, "labels", {"field": "tags", "ids": ["0", "1", "700"], "add": ["before"], "remove": []})
        yield client


def test_a_selection_of_500_tagged_exported_removed_and_restored_is_as_before(many):
    assert len(set(SELECTED)) == 500
    first = everything(many)
    tagged = post(many, "labels", {"field": "tags", "ids": SELECTED, "add": ["chosen", "<b>"], "remove": ["before"]})
    album = post(many, "labels", {"field": "albums", "ids": SELECTED, "add": ["Rome 1999"], "remove": []})
    assert ask(many, "items", where="tags contains 'chosen'")["total"] == 500
    assert ask(many, "items", where="tags contains 'before'")["total"] == 1
    before = everything(many)
    exported = {kind: post(many, "exports", {"kind": kind, "ids": SELECTED}) for kind in ("csv", "collection")}
    removed = post(many, "items/remove", {"ids": SELECTED})
    assert sorted(removed["ids"]) == sorted(SELECTED)
    assert ask(many, "collection")["items"] == N - 500
    left = {item["id"] for item in ask(many, "items", limit=500)["items"]}
    assert left == set(map(str, range(N))) - set(SELECTED)
    assert not {one["id"] for one in ask(many, "search", id=601, k=300)["results"]} & set(SELECTED)
    assert ask(many, "collection")["undo"]["step"] == removed["step"]
    early = many.post(f"{API}/undo", json={"step": album["step"]})
    assert early.status_code == 409
    assert early.json()["hint"]
    post(many, "undo", {"step": removed["step"]})
    assert everything(many) == before
    post(many, "undo", {"step": album["step"]})
    post(many, "undo", {"step": tagged["step"]})
    assert everything(many) == first
    check_exports(many, exported)


def check_exports(client, exported):
    """What was exported before the removal is what was selected."""
    data = {kind: client.get(f"{API}/exports/{result['key']}").content for kind, result in exported.items()}
    rows = list(csv.DictReader(io.StringIO(data["csv"].decode("utf-8-sig"), newline="")))
    assert [row["id"] for row in rows] == SELECTED
    assert {row["tags"] for row in rows} == {rows[0]["tags"]}
    assert "chosen" in rows[0]["tags"]
    assert {kind: len(content) for kind, content in data.items()} == {
        kind: one["bytes"] for kind, one in exported.items()
    }


def test_a_collection_that_was_exported_has_the_selected_items_with_their_tags(many, tmp_path):
    ids = SELECTED[:60]
    result = post(many, "exports", {"kind": "collection", "ids": ids})
    zipfile.ZipFile(io.BytesIO(many.get(f"{API}/exports/{result['key']}").content)).extractall(tmp_path)
    (path,) = tmp_path.iterdir()
    collection = manifind.load(path)
    assert sorted(map(str, collection.ids)) == sorted(ids)
    assert str(collection.search_ids([collection.ids[5]], 3).ids[0][0]) == str(collection.ids[5])


# In the browser


@pytest.fixture(scope="module")
def browser():
    with a_browser() as one:
        yield one


@pytest.fixture
def page(browser):
    with a_page(browser) as one:
        yield one


@pytest.fixture
def place(tmp_path):
    """A collection of twenty pictures of its own, which may be changed."""
    make_pictures(tmp_path / "pictures", tmp_path / "photos")
    return tmp_path


@pytest.fixture
def address(place):
    with serving(make_service(place / "pictures", place), can_edit=True) as one:
        yield one


@pytest.fixture(scope="module")
def fixed(folder):
    """The address of a collection that may not be changed."""
    make_pictures(folder / "fixed", folder / "fixed-photos")
    with serving(make_service(folder / "fixed", folder)) as one:
        yield one


def bar(page):
    return page.get_by_role("region", name="Selection")


def press(page, name):
    bar(page).get_by_role("button", name=name, exact=True).click()


def asking(page):
    return page.locator("dialog.marking")


def select(page, address, *names, view=""):
    page.goto(f"{address}/{view}")
    expect(page.locator(".card").first).to_be_visible()
    for name in names:
        page.get_by_label(f"Select {name}", exact=True).check()
    if names:
        expect(bar(page)).to_contain_text(f"{len(names)} item{'s' * (len(names) > 1)} selected")


def label(page, button, *texts, what="Add"):
    press(page, button)
    asking(page).get_by_role("textbox").fill(texts[0])
    asking(page).get_by_role("button", name=what, exact=True).click()
    expect(asking(page)).to_have_count(0)


def filtered(page, address, clause):
    page.goto(f"{address}/?where={clause}")
    expect(page.locator(".card").first).to_be_visible()
    return page.locator(".card").evaluate_all("cards => cards.map(card => card.dataset.id)")


def test_a_selection_is_tagged_found_by_its_tag_and_the_tag_undone(address, page, place):
    select(page, address, "north/01.png", "south/02.png")
    label(page, "Tag…", "harbour")
    expect(page.locator(".toasts")).to_contain_text("Undo")
    assert sorted(filtered(page, address, "tags contains 'harbour'")) == ["north/01.png", "south/02.png"]
    page.goto(address)
    expect(bar(page)).to_contain_text("2 items selected")  # it is kept
    press(page, "Tag…")
    asking(page).get_by_label("harbour 2").check()
    keep(page, "tagging")
    asking(page).get_by_role("button", name="Remove", exact=True).click()
    expect(asking(page)).to_have_count(0)
    assert "tags" not in manifind.load(place / "pictures").metadata(["north/01.png"])[0]
    page.reload()
    bar(page).get_by_role("button", name="Undo").first.click()
    expect(page.locator(".toasts")).to_contain_text("Undone")
    assert sorted(filtered(page, address, "tags contains 'harbour'")) == ["north/01.png", "south/02.png"]


def test_albums_are_another_kind_of_label(address, page):
    select(page, address, "north/01.png")
    label(page, "Album…", "Rome 1999", what="Put in")
    assert filtered(page, address, "albums contains 'Rome 1999'") == ["north/01.png"]
    page.goto(f"{address}/?show=north/01.png")
    expect(page.get_by_role("group", name="albums")).to_contain_text("Rome 1999")
    keep(page, "viewer-album")
    page.get_by_role("button", name="Take off Rome 1999").click()
    expect(page.get_by_role("group", name="albums")).not_to_contain_text("Rome 1999")
    page.locator(".toasts").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("group", name="albums")).to_contain_text("Rome 1999")


def test_a_removal_is_asked_for_and_undone_and_no_file_goes(address, page, place):
    select(page, address, "north/01.png", "north/03.png", "north/05.png")
    press(page, "Remove…")
    asking(page).get_by_role("button", name="Cancel").click()
    expect(page.locator(".card")).to_have_count(20)
    press(page, "Remove…")
    keep(page, "removing")
    asking(page).get_by_role("button", name="Remove 3 items").click()
    expect(page.locator(".card")).to_have_count(17)
    expect(bar(page).get_by_text("selected")).to_have_count(0)
    assert len(list((place / "photos").rglob("*.png"))) == 20
    page.locator(".toasts").get_by_role("button", name="Undo").click()
    expect(page.locator(".card")).to_have_count(20)
    expect(page.get_by_label("Select north/03.png")).not_to_be_checked()


def test_an_undo_that_comes_too_late_is_answered_in_words(address, browser, place):
    with a_page(browser, expected="409") as page:
        select(page, address, "north/01.png")
        label(page, "Tag…", "one")
        manifind.load(place / "pictures").remove(["north/05.png"])
        page.locator(".toasts").get_by_role("button", name="Undo").click()
        expect(page.locator(".toasts [role=alert]")).to_contain_text("This could not be undone")
        expect(page.locator(".card")).to_have_count(19)
        keep(page, "undo-refused")


KINDS = {"A table": ".csv", "A list of paths": ".txt", "The picture files": ".zip", "A collection": ".zip"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_selection_is_exported(address, page, kind):
    name = KINDS[kind]
    select(page, address, "north/01.png", "south/02.png")
    if kind == "A collection":
        press(page, "Select all shown")  # two items are too few to learn from
    press(page, "Export…")
    asking(page).get_by_label(kind).check()
    keep(page, "exporting")
    with page.expect_download() as waiting:
        asking(page).get_by_role("button", name="Export").click()
    assert waiting.value.suggested_filename.endswith(name)
    data = waiting.value.path().read_bytes()
    if name == ".zip":
        assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None
    else:
        assert b"north/01.png" in data
        assert b"south/02.png" in data
    expect(asking(page)).to_have_count(0)


def test_a_selection_becomes_the_query(address, page):
    select(page, address, "north/01.png", "south/02.png")
    press(page, "Use as query")
    page.wait_for_url("**q=**")
    assert parse_qs(urlsplit(page.url).query) == {"q": ["id:north/01.png", "id:south/02.png"]}
    expect(page.locator(".card")).to_have_count(20)
    press(page, "Clear the selection")
    expect(bar(page)).to_be_hidden()


def test_all_that_is_shown_is_selected_and_too_many_are_no_query(browser, folder):
    make_vectors(folder / "wide", 300)
    with serving(make_service(folder / "wide", folder)) as address, a_page(browser) as page:
        select(page, address, "0")
        press(page, "Select all shown")
        expect(bar(page)).not_to_contain_text("1 item selected")
        shown = page.locator(".card").count()
        expect(bar(page)).to_contain_text(f"{shown} items selected")
        ids = [str(number) for number in range(300)]
        page.evaluate("async ids => (await import('./static/selection.js')).selection.set(ids)", ids)
        press(page, "Use as query")
        expect(page.locator(".toasts")).to_contain_text("at most 256 items, and 300 items are selected")
        assert "q=" not in page.url


def test_where_nothing_may_be_changed_the_buttons_say_why(fixed, page):
    select(page, fixed, "north/01.png")
    for name in ("Tag…", "Album…", "Remove…"):
        press(page, name)
        expect(page.locator(".toasts")).to_contain_text("--allow-edit")
    assert asking(page).count() == 0
    press(page, "Export…")
    with page.expect_download():
        asking(page).get_by_role("button", name="Export").click()


def test_a_selection_is_made_tagged_and_removed_by_keys_alone(address, page):
    page.goto(address)
    page.locator(".card .open").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    expect(bar(page)).to_contain_text("3 items selected")
    page.keyboard.press("m")
    press_until(page, "Tab", "Tag…")
    page.keyboard.press("Enter")
    expect(asking(page).get_by_role("textbox")).to_be_focused()
    page.keyboard.type("by keys")
    page.keyboard.press("Enter")
    expect(asking(page)).to_have_count(0)
    page.keyboard.press("m")
    press_until(page, "Tab", "Remove…")
    page.keyboard.press("Enter")
    press_until(page, "Tab", "Remove 3 items")
    page.keyboard.press("Enter")
    expect(page.locator(".card")).to_have_count(17)
    until(page, "document.activeElement !== document.body")
    page.keyboard.press("m")
    page.keyboard.press("Enter")  # there is nothing but the undo now
    expect(page.locator(".card")).to_have_count(20)
    until(page, "document.activeElement !== document.body")


def test_a_selection_is_made_tagged_exported_and_removed_by_touch_on_a_phone(browser, address):
    with a_phone(browser) as page:
        page.goto(address)
        page.get_by_label("Select north/01.png").tap()
        page.get_by_label("Select north/03.png").tap()
        expect(bar(page)).to_contain_text("2 items selected")
        assert fits(page)
        keep(page, "selection-phone")
        bar(page).get_by_role("button", name="Tag…").tap()
        asking(page).get_by_role("textbox").fill("by touch")
        asking(page).get_by_role("button", name="Add").tap()
        expect(asking(page)).to_have_count(0)
        keep(page, "tagged-phone")
        bar(page).get_by_role("button", name="Export…").tap()
        with page.expect_download():
            asking(page).get_by_role("button", name="Export").tap()
        bar(page).get_by_role("button", name="Remove…").tap()
        asking(page).get_by_role("button", name="Remove 2 items").tap()
        expect(page.locator(".card")).to_have_count(18)
        expect(page.locator(".toasts")).to_contain_text("Removed 2 items")
        expect(page.locator(".toasts").get_by_role("button", name="Undo")).to_have_count(1)  # of the last change alone
        keep(page, "removed-phone")
        bar(page).get_by_role("button", name="Undo: removed").tap()
        expect(page.locator(".card")).to_have_count(20)


def test_tags_with_markup_marks_and_newlines_are_shown_as_text(address, page, place):
    texts = ["<b>bold</b>", "\u202egnp\u202c", "one\ntwo", "it's"]
    manifind.load(place / "pictures").change(described={"north/01.png": {"tags": texts}})
    select(page, address, "south/02.png")
    page.wait_for_timeout(700)  # until the server has noticed
    press(page, "Tag…")
    expect(asking(page).locator("bdi")).to_have_count(4)
    assert sorted(asking(page).locator("bdi").all_text_contents()) == sorted(texts)
    assert asking(page).locator("b").count() == 0
    for box in asking(page).get_by_role("checkbox").all():
        box.check()
    asking(page).get_by_role("button", name="Add").click()
    expect(asking(page)).to_have_count(0)
    fields = manifind.load(place / "pictures").metadata(["south/02.png"])[0]
    assert sorted(fields["tags"]) == sorted(texts)
    expect(page.locator(".toasts")).to_contain_text("Undo")
    assert page.locator("b").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_axe_finds_nothing_in_the_bar_and_its_dialogs(browser, address, scheme, width):
    with a_page(browser, width, color_scheme=scheme) as page:
        select(page, address, "north/01.png", "south/02.png")
        label(page, "Tag…", "harbour")
        expect(bar(page).get_by_role("button", name="Undo").first).to_be_visible()
        assert axe_findings(page) == []
        assert fits(page)
        keep(page, f"bar-{scheme}-{width}")
        for name in ("Tag…", "Album…", "Export…", "Remove…"):
            press(page, name)
            expect(asking(page)).to_be_visible()
            until(page, "!document.querySelector('dialog.marking').textContent.includes('looking for')")
            assert axe_findings(page) == [], name
            assert fits(page)
            keep(page, f"marking-{name[:3].lower()}-{scheme}-{width}")
            page.keyboard.press("Escape")
            expect(asking(page)).to_have_count(0)
