"""Adding in a real browser: files and what became of them, a folder with its progress, several collections."""

import base64
import io
import os
import shutil
import threading
import time

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from images.painted import paint
from manifind.errors import InputError
from manifind.model.index_folder import index_folder
from manifind.progress import Progress
from manifind.server.app import make_app
from manifind.server.jobs import Jobs
from manifind.server.middleware import AccessRules
from manifind.server.service import Service
from manifind.server.several import ServedCollections
from manifind.worker import Reply
from server.live import a_browser, keep, running, serving
from server.made import SMALL, make_pictures, make_vectors
from server.pages import a_page, a_phone, axe_findings, fits, until

pytestmark = pytest.mark.long


TOKEN = "a-token-of-many-characters"
PATIENCE = 120_000  # milliseconds for what a child process does, which leaves the processor to everybody else
STRANGE = "<b>bold</b>\u202e gnp.png"


@pytest.fixture(scope="module")
def browser():
    with a_browser() as one:
        yield one


@pytest.fixture
def service(tmp_path):
    make_pictures(tmp_path / "c", tmp_path / "photos")
    return Service(tmp_path / "c", cache=tmp_path / "cache", index_below=[tmp_path / "photos"])


@pytest.fixture
def address(service):
    with serving(service, can_edit=True) as one:
        yield f"{one}/?view=collection"


def png(seed, name):
    stream = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, size=(6, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((64, 48)).save(stream, "PNG")
    return {"name": name, "mimeType": "image/png", "buffer": stream.getvalue()}


def forgive_refusals(page):
    """What the browser itself notes of an answer of 400 or more is no complaint of the page."""
    page.complaints[:] = [one for one in page.complaints if "Failed to load resource" not in one]


def catch_choosers(page):
    """Have the browser ask for files from here on; that takes a moment, in which a key would be too early."""
    page.on("filechooser", lambda _: None)


def outcomes(page):
    return [" ".join(one.split()) for one in page.locator(".outcomes li").all_text_contents()]


def test_of_several_files_each_keeps_its_name_and_says_what_became_of_it(browser, address, service):
    with a_page(browser) as page:
        page.goto(address)
        files = [
            png(77, "harbour.png"), png(78, STRANGE), png(79, "01.png"), png(1, "known.png"),
            {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"hello"},
            {"name": "empty.png", "mimeType": "image/png", "buffer": b""},
            png(80, "x" * 300 + ".png"), png(81, "harbour.png"),
        ]  # fmt: skip
        page.set_input_files("#add-files", files)
        status = page.locator(".added [role=status]")
        expect(status).to_have_text("5 pictures added, 1 there already, 2 refused.", timeout=PATIENCE)
        said = outcomes(page)
        assert said[0] == "harbour.png added as harbour.png"
        assert said[1].startswith(STRANGE)
        assert "added as" in said[1]
        assert said[3] == "known.png is there already: north/01.png"
        assert "refused: " in said[4]
        assert "no picture" in said[4]
        assert "refused: " in said[5]
        assert said[7].startswith("harbour.png added as harbour")
        assert said[7] != said[0]  # the file that has this name is another picture
        assert page.locator(".outcomes b").count() == 0
        keep(page, "added-files")
        assert axe_findings(page) == []
        assert fits(page)
        page.locator(".outcomes a", has_text="harbour.png").first.click()
        until(page, "location.search.includes('show=harbour.png')")
        page.go_back()
        expect(page.locator(".changes li").first).to_contain_text("added")
        forgive_refusals(page)
    assert len(service.collection) == 25
    assert (service.folders[0] / "harbour.png").read_bytes() == files[0]["buffer"]


def test_keys_alone_add_undo_watch_and_fit(browser, address, service, monkeypatch):
    fits_, release, really = [], threading.Event(), Jobs.call

    def call(self, function, arguments, listener):
        if "refit" not in function:
            return really(self, function, arguments, listener)
        fits_.append(1)
        return release.wait(60)

    monkeypatch.setattr(Jobs, "call", call)
    with a_page(browser) as page:
        catch_choosers(page)
        page.goto(address)

        def go_to(name):
            """Tab until a control has the focus."""
            for _ in range(80):
                if page.evaluate("document.activeElement.id") == name:
                    return
                page.keyboard.press("Tab")
            raise AssertionError(name)

        page.wait_for_selector("#watch")
        go_to("choose-files")
        with page.expect_file_chooser() as chooser:
            page.keyboard.press("Enter")
        chooser.value.set_files([png(77, "harbour.png")])
        expect(page.locator(".changes li")).to_have_count(1)
        assert len(service.collection) == 21
        go_to("undo-last")
        page.keyboard.press("Enter")
        expect(page.locator(".changes li")).to_have_count(0)
        assert len(service.collection) == 20
        page.wait_for_selector("#watch")
        go_to("watch")
        page.keyboard.press("Space")
        expect(page.locator("#jobs")).to_contain_text("Indexing the folder")
        expect(page.locator(".toast", has_text="Indexed: ")).to_contain_text("1 added", timeout=PATIENCE)
        assert page.get_by_label("Watch it").is_checked()
        go_to("fit-anew")
        page.keyboard.press("Enter")
        expect(page.locator("#jobs")).to_contain_text("Fitting anew")
        assert page.evaluate("document.activeElement.id") == "fit-anew"
        page.keyboard.press("Enter")  # it is being done
        expect(page.locator("#fit-anew")).to_have_attribute("aria-disabled", "true")
        release.set()
        expect(page.locator(".toast", has_text="Fitted anew")).to_be_visible()
        expect(page.locator("#jobs")).to_be_hidden()
        assert fits_ == [1]


DROP = """([selector, files]) => {
  const transfer = new DataTransfer();
  for (const [name, data] of files) {
    transfer.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name, {type: "image/png"}));
  }
  for (const kind of ["dragenter", "dragover", "drop"]) {
    document.querySelector(selector).dispatchEvent(
      new DragEvent(kind, {dataTransfer: transfer, bubbles: true, cancelable: true}));
  }
}"""


def drop(page, selector, files):
    page.evaluate(DROP, [selector, [(one["name"], base64.b64encode(one["buffer"]).decode()) for one in files]])


def test_what_is_dropped_on_the_zone_is_added_and_elsewhere_it_is_searched_by(browser, address, service):
    with a_page(browser) as page:
        page.goto(address)
        page.wait_for_selector(".drop-zone")
        drop(page, ".drop-zone", [png(77, "a.png"), png(78, "b.png")])
        expect(page.locator(".added [role=status]")).to_have_text("2 pictures added.")
        assert "upload" not in page.url
        assert not page.locator(".drop-zone.over, .dragging").count()
        page.wait_for_selector(".drop-zone")
        drop(page, "h1", [png(77, "a.png")])
        page.wait_for_url("**upload**")
    assert len(service.collection) == 22


def test_the_rest_can_be_cancelled_and_what_is_under_way_is_told_apart(browser, address, service, monkeypatch):
    opened, take = threading.Event(), service.uploads.take
    monkeypatch.setattr(service.uploads, "take", lambda *given: opened.wait(60) and take(*given))
    with a_page(browser) as page:
        page.goto(address)
        page.set_input_files("#add-files", [png(100 + number, f"{number}.png") for number in range(12)])
        expect(page.locator(".added [role=status]")).to_have_text("0 pictures added, 12 to go.")
        assert outcomes(page)[:3] == ["0.png sending…", "1.png sending…", "2.png waiting"]  # two at a time
        page.get_by_role("button", name="Cancel the rest").click()
        expect(page.locator(".added [role=status]")).to_have_text("0 pictures added, 12 cancelled.")
        opened.set()
        assert all(one.endswith("not added: cancelled") for one in outcomes(page))
        assert page.locator("#cancel-adding").is_hidden()
        page.set_input_files("#add-files", [png(200, "later.png")])
        expect(page.locator(".added [role=status]")).to_have_text("1 picture added.")
        forgive_refusals(page)
    assert len(service.collection) <= 23  # two had been sent


def test_a_finger_adds_and_brings_up_to_date_at_390_px(browser, address, service):
    paint(service.folders[0] / "new" / "1.png", 66)
    with a_phone(browser, color_scheme="dark") as page:
        catch_choosers(page)
        page.goto(address)
        with page.expect_file_chooser() as chooser:
            page.locator("#choose-files").tap()
        chooser.value.set_files([png(77, "y" * 200 + ".png")])
        expect(page.locator(".added [role=status]")).to_have_text("1 picture added.")
        page.wait_for_selector("#watch")
        page.locator("#bring-up-to-date").tap()
        expect(page.locator(".toast", has_text="Indexed: 1 added.")).to_be_visible(timeout=PATIENCE)
        page.wait_for_selector("#watch")
        keep(page, "adding-phone")
        assert fits(page)
        assert axe_findings(page) == []
    assert len(service.collection) == 22


class Gate:
    """In place of the child process: it reports, and waits until it is told to go on."""

    def __init__(self):
        self.reports, self.outcome = [], None

    def __call__(self, _, function, arguments, listener):
        while self.outcome is None:
            while self.reports:
                listener(self.reports.pop(0))
            time.sleep(0.01)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return Reply(self.outcome)


@pytest.fixture
def gate(monkeypatch):
    one = Gate()
    monkeypatch.setattr(Jobs, "call", lambda *arguments: one(*arguments))
    yield one
    one.outcome = one.outcome or {}


def test_progress_survives_a_reload_and_never_says_that_0_of_0_is_done(browser, address, service, gate):
    with a_page(browser) as page:
        page.goto(address)
        page.locator("#bring-up-to-date").click()
        bar = page.locator("#jobs .job")
        expect(bar).to_have_text("Indexing the folderstarting")
        page.reload()
        expect(bar).to_have_text("Indexing the folderstarting")
        gate.reports.append(Progress("pictures", 3, 10, "by efficientnet"))
        expect(bar).to_contain_text("describing pictures: 3 of 10, by efficientnet")
        assert bar.get_by_role("progressbar").get_attribute("value") == "3"
        page.locator("nav a", has_text="Search").click()
        page.wait_for_selector(".card")
        expect(bar).to_contain_text("3 of 10")
        keep(page, "job-bar")
        page.goto(address)
        expect(bar).to_contain_text("3 of 10")
        expect(page.locator("#bring-up-to-date")).to_have_attribute("aria-disabled", "true")
        service.jobs.start("index", lambda _: {})
        expect(bar).to_have_count(2)
        expect(bar.nth(1)).to_contain_text("waiting for its turn")
        gate.reports.append(Progress("saving", 0, 1))
        expect(bar.first).to_contain_text("writing the collection")
        assert "of 1" not in bar.first.text_content()
        assert "0 of 0" not in page.locator("body").text_content()
        assert axe_findings(page) == []
        gate.outcome = {"added": 2, "removed": 1, "n_problems": 1}
        said = "Indexed: 2 added, 1 removed. 1 file was left out."
        expect(page.locator(".toast", has_text=said)).to_be_visible()
        expect(page.locator("#jobs")).to_be_hidden()


def test_an_index_that_fails_says_why_and_it_is_still_said_after_a_reload(browser, address, service, gate):
    gate.outcome = InputError("10 of 20 items would go", "see that the disk is there")
    with a_page(browser) as page:
        page.goto(address)
        page.locator("#bring-up-to-date").click()
        expect(page.locator(".toast.bad")).to_contain_text("10 of 20 items would go; see that the disk is there")
        page.reload()
        expect(page.locator("#warnings")).to_contain_text("10 of 20 items would go")


def test_a_folder_that_went_away_is_said_and_the_new_place_can_be_chosen(browser, tmp_path):
    make_pictures(tmp_path / "c", tmp_path / "all" / "before")
    (tmp_path / "all" / "before").rename(tmp_path / "all" / "now")
    service = Service(tmp_path / "c", cache=tmp_path / "cache", index_below=[tmp_path / "all"])
    with serving(service, can_edit=True) as address, a_page(browser, expected="404") as page:  # of the pictures
        page.goto(address)
        expect(page.locator("#warnings")).to_contain_text("is not there")
        page.goto(f"{address}/?view=collection")
        expect(page.locator(".adding")).to_contain_text("is not there now")
        page.get_by_label("Where it is now").select_option(label="all/now (20 pictures)")
        page.get_by_role("button", name="Index this folder").click()
        expect(page.locator(".toast", has_text="Nothing in the folder has changed.")).to_be_visible(timeout=PATIENCE)
        assert axe_findings(page) == []


def test_without_leave_nothing_can_be_added_and_changes_are_only_shown(browser, service):
    service.collection.remove(["north/01.png"])
    with serving(service) as address, a_page(browser) as page:
        page.goto(f"{address}/?view=collection")
        expect(page.locator(".changes li")).to_have_count(1)
        for selector in (".adding", "#undo-last", "#fit-anew", "#choose-files"):
            assert page.locator(selector).count() == 0
        assert "5.0% of what was fitted" in page.locator("main").text_content()


# Several collections.


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    home = tmp_path_factory.mktemp("several")
    make_pictures(home / "all" / "Fotos 2019.manifind", home / "photos")
    make_vectors(home / "all" / "<b>vectors<b>\u202e")
    shutil.copytree(home / "all" / "Fotos 2019.manifind", home / "all" / "damaged")
    (segment,) = (home / "all" / "damaged" / "segments").glob("features-*.npy")
    os.truncate(segment, 100)
    return home


@pytest.fixture
def home(made, tmp_path):
    return shutil.copytree(made / "all", tmp_path / "all")


def several(home, photos, can_edit=True, **rules):
    collections = ServedCollections([], [home], "pixels", index_below=[photos] if can_edit else [])
    return running(make_app(collections, AccessRules(**rules), can_edit))


def test_the_start_page_shows_what_each_collection_holds_and_leads_there(browser, made):
    with several(made / "all", made / "photos", False) as address, a_page(browser) as page:
        page.goto(address)
        expect(page.locator("h1")).to_have_text("3 collections")
        vectors, damaged, photos = page.locator(".collection").all()
        assert "<b>vectors<b>\\u202e" in vectors.text_content()
        assert "40 items, made of vectors" in vectors.text_content()
        assert page.locator(".collection b").count() == 0
        assert "It cannot be opened" in damaged.text_content()
        assert "were recorded" in damaged.text_content()
        assert damaged.locator("a").count() == 0
        assert "20 pictures" in photos.text_content()
        expect(photos.locator("img")).to_have_count(4)
        until(page, "[...document.images].every((image) => image.naturalWidth > 0)")
        assert page.locator("form").count() == 0
        keep(page, "start")
        for _ in range(20):  # by keys
            if page.evaluate("document.activeElement.id") == "open-fotos-2019":
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector(".card img")
        assert page.url == f"{address}/c/fotos-2019/"
        expect(page.locator("#home")).to_have_text("Fotos 2019.manifind")
        page.get_by_role("link", name="All collections").click()
        expect(page.locator("h1")).to_have_text("3 collections")
        page.goto(f"{address}/c/none/")
        expect(page.locator("main").get_by_role("alert")).to_contain_text("there is no collection 'none' here")
        forgive_refusals(page)


def test_a_collection_is_made_from_the_start_page(browser, home, made, monkeypatch):
    def call(_, function, arguments, listener):
        outcome = index_folder(arguments["folder"], arguments["path"], "pixels", SMALL, listener=listener)
        return Reply({**outcome.counts, "n_problems": 0})

    monkeypatch.setattr(Jobs, "call", call)
    with several(home, made / "photos") as address, a_phone(browser) as page:
        page.goto(address)
        page.get_by_label("Folder of pictures").select_option(label="photos (20 pictures)")
        page.get_by_label("Its name").fill("../up")
        page.get_by_role("button", name="Make it").tap()
        expect(page.get_by_role("alert").filter(has_text="the name")).to_contain_text("begins with a dot")
        page.get_by_label("Its name").fill("Harbour & <i>")
        page.get_by_role("button", name="Make it").tap()
        expect(page.get_by_role("alert").filter(has_text="the name")).to_have_count(0)
        expect(page.locator(".collection", has_text="Harbour & <i>")).to_contain_text("20 pictures", timeout=PATIENCE)
        expect(page.locator(".toast", has_text="Indexed: 20 added")).to_be_visible()
        assert fits(page)
        page.locator(".collection", has_text="Harbour").get_by_role("link").tap()
        page.wait_for_selector(".card img")
        forgive_refusals(page)


def test_a_folder_without_collections_says_how_to_make_the_first(browser, made, tmp_path):
    for can_edit, words in ((False, "manifind index"), (True, "Make the first one")):
        with several(tmp_path, made / "photos", can_edit) as address, a_page(browser) as page:
            page.goto(address)
            expect(page.locator("h1")).to_have_text("No collection yet")
            assert words in page.locator("main").text_content()


def test_the_start_page_asks_for_the_token_and_the_pages_of_the_collections_have_it_too(browser, made):
    with several(made / "all", made / "photos", False, token=TOKEN) as address, a_page(browser) as page:
        page.goto(address)
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("3 collections")
        until(page, "document.images.length === 4 && [...document.images].every((image) => image.naturalWidth > 0)")
        page.locator("#open-fotos-2019").click()
        page.wait_for_selector(".card img[src^='blob:']")
        forgive_refusals(page)


def without_prefix(app, prefix):
    """A proxy that takes away the path under which it shows a server."""

    async def passed_on(scope, receive, send):
        if scope["type"] == "http":
            assert scope["path"].startswith(f"{prefix}/"), scope["path"]
            scope = {**scope, "path": scope["path"].removeprefix(prefix)}
        await app(scope, receive, send)

    return passed_on


@pytest.mark.parametrize("is_stripped", [True, False])
def test_below_the_path_of_a_proxy_no_request_leads_elsewhere(browser, made, is_stripped):
    app = make_app(ServedCollections([], [made / "all"]), AccessRules(root_path="/archive"))
    with running(without_prefix(app, "/archive") if is_stripped else app) as address, a_page(browser) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/archive/")
        page.locator("#open-fotos-2019").click()
        page.wait_for_selector(".card img")
        for view in ("map", "review", "collection"):
            page.locator(f"nav a[data-view={view}]").click()
            expect(page.locator(f"nav a[data-view={view}]")).to_have_attribute("aria-current", "page")
            page.wait_for_selector("h1")
        page.locator("nav a", has_text="API").click()
        page.wait_for_selector("#paths h2")
        page.goto(f"{address}/archive/c/fotos-2019")
        page.wait_for_selector(".card img")
        assert all(url.startswith((f"{address}/archive/", "blob:", "data:")) for url in asked)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_axe_finds_nothing_on_the_start_page_and_where_things_are_added(browser, made, scheme, width):
    with several(made / "all", made / "photos") as address, a_page(browser, width, color_scheme=scheme) as page:
        for path, selector in (
            ("", ".collection img"),
            ("c/fotos-2019/?view=collection", "#watch"),
            ("api", "#paths h2"),
        ):
            page.goto(f"{address}/{path}")
            page.wait_for_selector(selector)
            assert axe_findings(page) == [], path
            assert fits(page), path
            keep(page, f"{scheme}-{width}-{'adding' if 'c/' in path else path or 'start'}")
