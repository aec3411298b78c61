"""The page in a real browser, as people use it: click, upload, paste, compare, why, map, edit, errors, narrow."""

import base64
import io
import time

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from images.themes import save_model, save_pictures
from manifind.model.index_folder import index_folder
from manifind.server.jobs import JobState
from server.live import a_browser, another_site, keep, serving
from server.made import make_pictures, make_service, make_vectors


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
    """A page that must not complain."""
    context = browser.new_context(viewport={"width": 1200, "height": 850})
    one, messages = context.new_page(), []
    one.set_default_timeout(20_000)
    one.on("pageerror", lambda error: messages.append(str(error)))
    one.on("console", lambda message: messages.append(message.text) if message.type == "error" else None)
    one.complaints = messages
    yield one
    context.close()


def until(page, condition):
    """Wait for a condition on the page; the browser's own way of waiting would need what the page's policy forbids."""
    last = time.monotonic() + 20
    while not page.evaluate(condition):
        assert time.monotonic() < last, condition
        time.sleep(0.05)


def names(page):
    return page.locator(".grid .label").all_text_contents()


def png(seed):
    stream = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, size=(6, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((64, 48)).save(stream, "PNG")
    return stream.getvalue()


def test_a_click_searches_and_the_back_button_leads_back(page, address):
    page.goto(address)
    page.wait_for_selector(".card img")
    assert len(names(page)) == 20
    page.get_by_label("Search like north/01.png").click()
    page.wait_for_selector(".facts")
    assert names(page)[0] == "01.png"
    assert "id=north%2F01.png" in page.url
    assert page.get_by_alt_text("The query: north/01.png").is_visible()
    keep(page, "search")
    shared = page.url
    page.go_back()
    page.wait_for_selector("h1:has-text('All 20 items')")
    page.goto(shared)
    page.wait_for_selector(".facts")
    assert names(page)[0] == "01.png"
    assert page.complaints == []


def test_names_and_filters_leave_what_they_should(page, address):
    page.goto(address)
    page.wait_for_selector(".card")
    page.keyboard.press("/")
    page.keyboard.type("north/")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('north/')")
    expect(page.locator(".card")).to_have_count(10)
    page.goto(f"{address}/?id=north/01.png")
    page.get_by_label("Filter").fill("path contains 'south'")
    page.keyboard.press("Enter")
    expect(page.locator(".card")).to_have_count(10)
    assert "where=" in page.url
    page.get_by_label("Filter").fill("path >")
    page.keyboard.press("Enter")
    assert "where" in page.get_by_role("alert").text_content()


def test_an_uploaded_picture_finds_itself(page, address):
    page.goto(address)
    page.wait_for_selector(".card")
    page.set_input_files("#upload", {"name": "mine.png", "mimeType": "image/png", "buffer": png(7)})
    page.wait_for_url("**upload=**")
    page.wait_for_selector(".facts")
    assert names(page)[0] == "07.png"
    assert page.get_by_alt_text("The query: uploaded picture").is_visible()


PASTE = """data => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "pasted.png", {type: "image/png"}));
  const event = name => name === "paste"
    ? new ClipboardEvent("paste", {clipboardData: transfer, bubbles: true})
    : new DragEvent("drop", {dataTransfer: transfer, bubbles: true});
  document.body.dispatchEvent(event(NAME));
}"""


@pytest.mark.parametrize(("name", "number"), [("paste", 4), ("drop", 9)])
def test_a_picture_that_is_pasted_or_dropped_is_searched_for(page, address, name, number):
    page.goto(address)
    page.wait_for_selector(".card")
    page.evaluate(PASTE.replace("NAME", f'"{name}"'), base64.b64encode(png(number)).decode())
    page.wait_for_url("**upload=**")
    page.wait_for_selector(".facts")
    assert names(page)[0] == f"{number:02}.png"


def test_a_file_that_is_no_picture_is_refused_in_words(page, address):
    page.goto(address)
    page.wait_for_selector(".card")
    page.set_input_files("#upload", {"name": "mine.png", "mimeType": "image/png", "buffer": b"hello"})
    page.wait_for_selector("#status:has-text('is no picture of a known kind')")


def test_the_same_query_stands_side_by_side_with_what_moved(page, address):
    page.goto(f"{address}/?id=north/01.png")
    page.get_by_role("button", name="Side by side").click()
    page.wait_for_selector(".columns")
    titles = page.locator(".columns h2").all_text_contents()
    assert titles == ["Plain neighbours (k-NN)", "GRAD-Net"]
    marks = page.locator(".columns .facts span span").all_text_contents()
    assert len(marks) == 40
    assert {mark[0] for mark in marks} <= set("▲▼=n")
    keep(page, "compare")


def test_why_shows_the_path_with_its_weights(page, address):
    page.goto(f"{address}/?id=north/01.png")
    page.wait_for_selector(".facts")
    page.get_by_role("button", name="Why").nth(1).click()
    page.wait_for_selector(".path figure img")
    captions = page.locator(".path figcaption").all_text_contents()
    assert captions[0] == "01.png"
    assert captions[-1] == names(page)[1]
    assert page.locator(".path meter").count() == len(captions) - 1
    keep(page, "why")
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    assert page.complaints == []


def test_the_map_shows_every_item_and_a_click_searches(page, address):
    page.goto(f"{address}/?view=map")
    page.wait_for_selector("canvas", timeout=90_000)
    until(page, "window.manifindMap?.pixels?.some((pixel) => pixel !== 0) ?? false")
    place = page.evaluate(
        """() => { const map = window.manifindMap, s = map.base * map.zoom, at = map.points.slice(10, 12);
        return [map.canvas.width / 2 + map.x + at[0] * s, map.canvas.height / 2 + map.y + at[1] * s] }"""
    )
    page.locator("canvas").hover(position={"x": place[0], "y": place[1]})
    page.wait_for_selector(".tip img")
    keep(page, "map")
    page.locator("canvas").click(position={"x": place[0], "y": place[1]})
    page.wait_for_selector(".facts")
    assert "id=" in page.url
    page.goto(f"{address}/?view=map&space=descriptors")
    page.wait_for_selector("canvas", timeout=90_000)
    page.locator("canvas").focus()
    for key in ("ArrowLeft", "+", "-", "Enter"):
        page.keyboard.press(key)
    assert page.complaints == []


def test_the_collection_page_tells_what_was_learned(page, address):
    page.goto(f"{address}/?view=collection")
    page.wait_for_selector(".facts-table")
    text = page.locator("main").text_content()
    assert "Can it be trusted?" in text
    assert "come or gone" in text
    assert page.locator("svg.chart").count() == 2
    keep(page, "collection")


def test_keys_alone_are_enough(page, address):
    page.goto(f"{address}/?id=north/01.png")
    page.wait_for_selector(".facts")
    page.locator(".grid .open").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == (
        page.locator(".grid .open").nth(1).get_attribute("aria-label")
    )
    page.keyboard.press("Enter")
    until(page, "!location.search.includes('north%2F01.png')")


def test_a_picture_is_added_and_removed_from_the_page(page, address):
    page.goto(address)
    page.wait_for_selector(".card")
    page.set_input_files("#add", {"name": "new.png", "mimeType": "image/png", "buffer": png(77)})
    page.wait_for_selector("h1:has-text('All 21 items')")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove added-").click()
    page.wait_for_selector("h1:has-text('All 20 items')")
    assert page.complaints == []


def test_an_item_that_is_none_is_said_in_words(page, address):
    page.goto(f"{address}/?id=nobody")
    assert "there is no item" in page.get_by_role("alert").text_content()


def test_vectors_have_ids_and_metadata_in_place_of_pictures(page, folder):
    make_vectors(folder / "plain")
    with serving(make_service(folder / "plain", folder)) as address:
        page.goto(address)
        page.wait_for_selector(".card")
        assert page.locator(".card img").count() == 0
        assert "<b>item 0</b>" in page.locator(".fields").first.text_content()
        assert page.locator("b").count() == 0  # what metadata says is text, whatever it looks like
        page.get_by_label("Search like 3", exact=True).click()
        page.wait_for_selector(".facts")
        page.get_by_role("button", name="Side by side").click()
        page.wait_for_selector(".columns")
        keep(page, "vectors")
    assert page.complaints == []


def test_with_a_token_the_page_works_only_when_it_is_given(page, service, folder):
    token = "a-token-of-many-characters"
    with serving(make_service(folder / "seen", folder), token=token) as address:
        page.goto(address)
        assert "wants a token" in page.get_by_role("alert").text_content()
        page.goto(f"{address}/?id=north/01.png#token={token}")
        page.reload()
        page.wait_for_selector(".grid img[src^='blob:']")
        assert token not in page.url


@pytest.fixture
def refits(service, monkeypatch):
    """The refits that were started."""
    started = []
    monkeypatch.setattr(
        service, "refit", lambda: started.append(1) or JobState.waiting("refit").model_copy(update={"state": "failed"})
    )
    return started


FORM = """<form action="{address}/api/v1/refit" method="post" enctype="{kind}">
<input name='{{"a": "' value='"}}'><button>Go on</button></form>"""


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"])
def test_a_form_on_another_site_starts_no_refit(page, address, refits, name, kind):
    with another_site(FORM.format(address=address, kind=kind)) as port:
        page.goto(f"http://{name}:{port}/")
        page.get_by_role("button").click()
        page.wait_for_url(f"{address}/api/v1/refit")
        assert "requests from another site are refused" in page.content()
    assert refits == []


def test_the_page_itself_starts_a_refit(page, address, refits):
    page.goto(f"{address}/?view=collection")
    page.get_by_role("button", name="Fit anew").click()
    expect(page.get_by_role("button", name="Fit anew")).to_be_enabled()
    assert refits == [1]


def test_a_link_on_another_site_leads_to_the_page_and_not_into_the_api(page, address):
    link = f'<a href="{address}/?id=north/01.png">page</a> <a href="{address}/api/v1/items">items</a>'
    with another_site(link) as port:
        page.goto(f"http://localhost:{port}/")
        page.get_by_text("items").click()
        page.wait_for_url(f"{address}/api/v1/items")
        assert "requests from another site are refused" in page.content()
        page.goto(f"http://localhost:{port}/")
        page.get_by_text("page").click()
        page.wait_for_selector(".facts")
        assert names(page)[0] == "01.png"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_axe_finds_nothing_in_any_view_light_or_dark_narrow_or_wide(browser, address, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    page = context.new_page()
    for view in (
        "/",
        "/?id=north/01.png",
        "/?id=north/01.png&method=compare",
        "/?view=map",
        "/?view=collection",
        "/api",
    ):
        page.goto(f"{address}{view}")
        page.wait_for_selector(".card, canvas, .facts-table", timeout=60_000)
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found] == [], view
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        keep(page, f"{scheme}-{width}-{view.strip('/?').replace('/', '_').replace('&', '-') or 'all'}")
    context.close()


@pytest.fixture(scope="module")
def with_words(folder):
    """A collection of themes, whose model understands words."""
    photos, model = save_pictures(folder / "themes"), save_model(folder / "towers.py", 3.0)
    index_folder(photos, folder / "themed", model, {"n_neighbors": 8, "max_steps": 30})
    with serving(make_service(folder / "themed", folder)) as one:
        yield one


def test_words_are_searched_from_the_box_and_names_by_their_own_button(page, with_words):
    page.goto(with_words)
    box = page.get_by_label("Find items by words, or by name")
    box.fill("theme 3")
    box.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("“theme 3”")
    page.wait_for_selector(".grid .label")
    assert all(name.startswith("3-") for name in names(page)[:8])
    assert "text=theme+3" in page.url
    page.get_by_role("button", name="Side by side").click()
    expect(page.get_by_role("heading", name="Plain neighbours (k-NN)")).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="Why 3-").nth(3).click()
    expect(page.locator("dialog")).to_contain_text("neighbour")
    page.get_by_role("button", name="Close").click()
    page.locator(".card .open").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("3-")
    assert "text=" not in page.url
    box.fill("2-0")
    page.get_by_role("button", name="Names").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Items with “2-0” in their name")
    assert not page.complaints


def test_axe_finds_nothing_where_words_are_understood(page, with_words):
    from axe_playwright_python.sync_playwright import Axe

    page.goto(f"{with_words}/?text=theme+3")
    page.wait_for_selector(".grid .label")
    assert not Axe().run(page).response["violations"]


def test_a_renamed_file_is_shown_under_its_current_name(page, tmp_path):
    make_pictures(tmp_path / "c", tmp_path / "photos")
    (tmp_path / "photos" / "north" / "01.png").rename(tmp_path / "photos" / "south" / "harbour.png")
    index_folder(tmp_path / "photos", tmp_path / "c")
    with serving(make_service(tmp_path / "c", tmp_path)) as address:
        page.goto(address)
        page.keyboard.press("/")
        page.keyboard.type("harbour")
        page.keyboard.press("Enter")
        expect(page.locator(".card")).to_have_count(1)
        assert names(page) == ["harbour.png"]
        page.get_by_label("Search like south/harbour.png (id north/01.png)").click()
        expect(page.locator("h1")).to_have_text("south/harbour.png (id north/01.png)")
        page.wait_for_selector(".facts")
        assert names(page)[0] == "harbour.png"
        assert "id=north%2F01.png" in page.url
    assert page.complaints == []


def test_one_item_is_not_called_items(page, tmp_path):
    collection, _ = make_vectors(tmp_path / "c")
    collection.remove(range(1, 40))
    with serving(make_service(tmp_path / "c", tmp_path)) as address:
        page.goto(address)
        page.wait_for_selector("#status:has-text('1 item')")
        assert page.locator("h1").text_content() == "1 item"
        assert page.locator("#status").text_content() == "1 item"
        page.goto(f"{address}/?id=0")
        page.wait_for_selector("#status:has-text('1 result')")
        assert page.locator("#status").text_content() == "1 result"
