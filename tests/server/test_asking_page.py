"""Asking in a real browser: words and names with suggestions, pictures by every way in, chips, filters."""

import base64
import io

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

import manifind
from images.themes import save_model, save_pictures
from manifind.model.index_folder import index_folder
from server.live import a_browser, keep, serving
from server.made import SMALL, make_pictures, make_service, make_vectors
from server.pages import a_page, a_phone, axe_findings, fits

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def browser():
    with a_browser() as one:
        yield one


@pytest.fixture(scope="module")
def address(folder):
    make_pictures(folder / "seen", folder / "seen-photos")
    with serving(make_service(folder / "seen", folder)) as one:
        yield one


@pytest.fixture(scope="module")
def with_words(folder):
    """A collection of themes, whose model understands words."""
    photos, model = save_pictures(folder / "themes"), save_model(folder / "towers.py", 3.0)
    index_folder(photos, folder / "themed", model, {"n_neighbors": 8, "max_steps": 30})
    with serving(make_service(folder / "themed", folder)) as one:
        yield one


LESS = "\N{MINUS SIGN}"
PLACES = ["Rome", "O'Hara's \\ farm", "<b>Paris</b>"]


def fields_of(row):
    fields = {"year": 1900 + row, "place": PLACES[row % 3], "seen": row % 2 == 0, "note": f"note {row}"}
    fields |= {
        "tags": ["all", *(["red", "blue"][row % 2 :])],
        "taken": f"2019-07-{1 + row // 2:02}T10:{row % 60:02}:00",
    }
    return fields if row else {"year": 1900}


@pytest.fixture(scope="module")
def with_fields(folder):
    """Forty items with fields of every kind."""
    _, X = make_vectors(folder / "unused")
    fields = [fields_of(row) for row in range(40)]
    manifind.GradNet(**SMALL, random_state=0).fit(X).save(folder / "fields", range(40), fields)
    with serving(make_service(folder / "fields", folder)) as one:
        yield one


@pytest.fixture
def page(browser):
    with a_page(browser) as one:
        yield one


def forgive(page):
    """Leave a page that was refused something: that is what the test is about."""
    page.goto("about:blank")
    page.complaints[:] = [one for one in page.complaints if not one.startswith("Failed to load resource")]


def names(page):
    return page.locator(".grid .label").all_text_contents()


def results(page):
    page.wait_for_selector(".card .facts")
    return names(page)


def chips(page):
    """Sign and label of each part of the query."""
    return [
        (one.locator(".turn").text_content(), one.locator("bdi").text_content()) for one in page.locator(".part").all()
    ]


def png(seed):
    stream = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, size=(6, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((64, 48)).save(stream, "PNG")
    return stream.getvalue()


def file(name, content, kind="image/png"):
    return {"name": name, "mimeType": kind, "buffer": content}


def test_a_name_is_suggested_chosen_and_searched_by_keys_alone(page, address):
    page.goto(address)
    page.wait_for_selector(".card")
    page.keyboard.press("/")
    page.keyboard.type("north/1")
    options = page.get_by_role("option")
    expect(options).to_have_count(6)
    expect(options.first).to_have_text("List the items with “north/1” in their name")
    box = page.get_by_role("combobox")
    expect(box).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", name="north/11.png")).to_have_attribute("aria-selected", "true")
    assert box.get_attribute("aria-activedescendant") == options.nth(1).get_attribute("id")
    keep(page, "suggestions")
    assert axe_findings(page) == []
    page.keyboard.press("Enter")
    assert results(page)[0] == "11.png"
    assert chips(page) == [("+", "11.png")]


def test_enter_lists_the_names_where_words_mean_nothing(page, address):
    page.goto(address)
    page.wait_for_selector(".card")
    page.get_by_label("Find items by name").fill("north/")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Items with “north/” in their name")
    expect(page.locator(".card")).to_have_count(10)
    expect(page.get_by_role("listbox")).to_be_hidden()
    page.get_by_role("combobox").fill("nowhere")
    page.keyboard.press("Enter")
    expect(page.locator(".end")).to_have_text("No item has “nowhere” in its name.")


def test_escape_closes_the_suggestions_and_keeps_what_was_typed(page, address):
    page.goto(address)
    box = page.get_by_role("combobox")
    box.fill("north")
    expect(page.get_by_role("option")).not_to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(box).to_have_value("north")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option")).not_to_have_count(0)
    page.keyboard.press("Tab")
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_what_is_typed_while_the_page_still_loads_stays_and_gets_suggestions(page, address):
    held = []
    page.route("**/api/v1/collection", lambda route: held.append(route))
    with page.expect_request("**/api/v1/collection"):
        page.goto(address)
    page.get_by_role("combobox").fill("north")
    held[0].continue_()
    expect(page.locator(".card").first).to_be_visible()
    expect(page.get_by_role("combobox")).to_have_value("north")
    expect(page.get_by_role("option")).not_to_have_count(0)


def test_words_are_searched_from_the_box_where_the_model_understands_them(page, with_words):
    page.goto(with_words)
    box = page.get_by_label("Find items by words, or by name")
    box.fill("theme 3")
    expect(page.get_by_role("option").first).to_have_text("Search for “theme 3”")
    box.press("Enter")
    assert page.get_by_role("heading", level=1).text_content() == "“theme 3”"
    assert all(name.startswith("3-") for name in results(page)[:8])
    assert page.url == f"{with_words}/?q=text:theme+3"
    page.get_by_role("button", name="Side by side").click()
    expect(page.get_by_role("heading", name="Plain neighbours (k-NN)")).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="Why 3-").nth(3).click()
    expect(page.locator("#dialog")).to_contain_text("neighbour")
    page.get_by_role("button", name="Close").click()
    box.fill("2-0")
    page.get_by_role("option", name="List the items").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Items with “2-0” in their name")


def test_words_and_names_are_added_to_a_query_by_keys_alone(page, with_words):
    page.goto(f"{with_words}/?q=text:theme+3")
    results(page)
    page.get_by_role("button", name="Add…").press("Enter")
    page.keyboard.type("theme 1")
    expect(page.get_by_role("option").first).to_have_text("Add “theme 1” to the query")
    page.keyboard.press("Enter")
    expect(page.locator(".part")).to_have_count(2)
    assert chips(page) == [("+", "“theme 3”"), ("+", "“theme 1”")]
    page.get_by_role("button", name="Add…").press("Enter")
    page.keyboard.type("0-05")
    expect(page.get_by_role("option", name="0-05.png")).to_be_visible()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator(".part")).to_have_count(3)
    page.get_by_role("button", name="Less like 0-05.png").and_(page.locator(".turn")).press("Enter")
    expect(page.locator(".part.less")).to_have_count(1)
    assert chips(page) == [("+", "“theme 3”"), ("+", "“theme 1”"), (LESS, "0-05.png")]
    assert page.get_by_role("heading", level=1).text_content() == f"“theme 3” + “theme 1” {LESS} 0-05.png"
    assert {name[0] for name in results(page)[:12]} <= {"1", "3"}
    keep(page, "three-parts")
    assert axe_findings(page) == []
    page.get_by_role("combobox").fill("theme 2")
    page.keyboard.press("Enter")
    expect(page.locator(".part")).to_have_count(1)


def test_an_uploaded_picture_finds_itself(page, address):
    page.goto(address)
    page.wait_for_selector(".card")
    page.set_input_files("#upload", file("mine.png", png(7)))
    page.wait_for_url("**q=upload:**")
    assert results(page)[0] == "07.png"
    assert chips(page) == [("+", "mine.png")]
    expect(page.locator(".part img")).to_have_js_property("naturalWidth", 64)
    page.reload()
    assert results(page)[0] == "07.png"


def test_several_pictures_at_once_make_one_query(page, address):
    page.goto(address)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Picture…").press("Enter")
    chooser.value.set_files([file("a.png", png(3)), file("b.png", png(4))])
    expect(page.locator(".part")).to_have_count(2)
    assert set(results(page)[:2]) == {"03.png", "04.png"}
    page.get_by_role("button", name="Add…").press("Enter")
    page.set_input_files("#upload", file("c.png", png(5)))
    expect(page.locator(".part")).to_have_count(3)
    assert chips(page) == [("+", "a.png"), ("+", "b.png"), ("+", "c.png")]
    keep(page, "several-pictures")


GIVE = """([name, files]) => {
  const transfer = new DataTransfer();
  for (const [file, type, data] of files) {
    transfer.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], file, {type}));
  }
  document.body.dispatchEvent(name === "paste"
    ? new ClipboardEvent("paste", {clipboardData: transfer, bubbles: true})
    : new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true}));
}"""


def give(page, way, *files):
    page.evaluate(GIVE, [way, [[name, kind, base64.b64encode(data).decode()] for name, kind, data in files]])


@pytest.mark.parametrize(("way", "number"), [("paste", 4), ("drop", 9)])
def test_a_picture_that_is_pasted_or_dropped_is_searched_for(page, address, way, number):
    page.goto(address)
    page.wait_for_selector(".card")
    give(page, way, ("some.png", "image/png", png(number)))
    page.wait_for_url("**q=upload:**")
    assert results(page)[0] == f"{number:02}.png"


@pytest.mark.parametrize("way", ["paste", "drop"])
def test_what_is_no_picture_is_answered_by_its_name_and_the_others_are_searched_for(page, address, way):
    page.goto(address)
    page.wait_for_selector(".card")
    broken, notes = ("broken.png", "image/png", b"hello"), ("<i>notes</i>.txt", "text/plain", b"hello")
    give(page, way, notes, broken, ("good.png", "image/png", png(2)))
    said = page.get_by_role("alert")
    expect(said).to_contain_text("<i>notes</i>.txt is no picture")
    expect(said).to_contain_text("broken.png: the picture is no picture of a known kind")
    page.wait_for_url("**q=upload:**")
    assert chips(page) == [("+", "good.png")]
    keep(page, f"no-picture-{way}")
    forgive(page)


def test_many_files_that_are_no_pictures_are_named_in_one_message(page, address):
    page.goto(address)
    page.wait_for_selector(".card")
    give(page, "drop", *[(f"{number}.txt", "text/plain", b"") for number in range(6)])
    said = "0.txt, 1.txt, 2.txt, 3.txt and 2 others are no pictures. A JPEG,"
    expect(page.get_by_role("alert").first).to_contain_text(said)
    expect(page.locator(".toast")).to_have_count(1)


def test_what_is_dropped_or_pasted_without_a_file_is_answered(page, address):
    page.goto(address)
    page.wait_for_selector(".card")
    give(page, "drop")
    expect(page.get_by_role("alert")).to_contain_text("What was dropped is no picture file")
    give(page, "paste")
    expect(page.get_by_role("alert")).to_contain_text("What was pasted is no picture")


def test_a_picture_dropped_on_a_collection_of_vectors_is_answered(page, with_fields):
    page.goto(with_fields)
    page.wait_for_selector(".card")
    give(page, "drop", ("some.png", "image/png", png(1)))
    expect(page.get_by_role("alert")).to_contain_text("made of vectors")


def test_a_part_of_a_picture_is_asked_for_and_framed(page, address):
    page.goto(f"{address}/?q=id@0.1,0.2,0.5,0.5:north/01.png&q=-id:south/02.png")
    results(page)
    assert chips(page) == [("+", "part of 01.png"), (LESS, "02.png")]
    frame = page.locator(".part .frame")
    assert [frame.evaluate(f"(one) => one.style.{side}") for side in ("left", "width")] == ["10%", "50%"]


def test_clauses_are_chosen_from_the_fields_by_keys_alone(page, with_fields):
    page.goto(with_fields)
    page.get_by_role("button", name="Filter", exact=True).press("Enter")
    panel = page.get_by_role("dialog", name="Filter")
    expect(panel.locator("legend").first).to_have_text("tags")
    panel.get_by_role("group", name="tags").get_by_label("blue").press("Space")
    year, place = panel.get_by_role("group", name="year"), panel.get_by_role("group", name="place")
    expect(year.get_by_label("from")).to_have_attribute("placeholder", "1900")
    year.get_by_label("from").fill("1905")
    year.get_by_label("to").fill("1930")
    place.get_by_label("O'Hara's").press("Space")
    place.get_by_label("Paris").press("Space")
    panel.get_by_role("group", name="taken").get_by_label("to").fill("2019-07-10")
    expect(panel.get_by_role("button", name="Show ")).to_be_visible()
    keep(page, "filter-panel")
    assert axe_findings(page) == []
    n = int(panel.get_by_role("button", name="Show ").text_content().split()[1])
    page.keyboard.press("Enter")
    expect(panel).to_be_hidden()
    wanted = [
        row for row in range(1, 40)
        if "blue" in fields_of(row)["tags"] and 1905 <= 1900 + row <= 1930
        and fields_of(row)["place"] in PLACES[1:] and fields_of(row)["taken"][:10] <= "2019-07-10"
    ]  # fmt: skip
    expect(page.locator(".card")).to_have_count(len(wanted))
    assert names(page) == [str(row) for row in wanted]
    assert n == len(wanted)
    clauses = page.locator(".clause bdi").all_text_contents()
    assert clauses == [
        "tags contains blue", "place is <b>Paris</b> or O'Hara's \\ farm", "taken before 2019-07-11",
        "year from 1905", "year to 1930",
    ]  # fmt: skip
    page.get_by_role("button", name="Remove the filter year to 1930").press("Enter")
    expect(page.locator(".clause")).to_have_count(4)
    page.get_by_role("button", name="Filter", exact=True).press("Enter")
    expect(year.get_by_label("from")).to_have_value("1905")
    expect(year.get_by_label("to")).to_have_value("")
    expect(panel.get_by_role("group", name="taken").get_by_label("to")).to_have_value("2019-07-10")
    expect(place.get_by_role("checkbox", checked=True)).to_have_count(2)
    expect(panel.get_by_label("In the filter language")).to_have_value("")
    panel.get_by_role("button", name="No filter").press("Enter")
    expect(page.locator(".clause")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text("All 40 items")


def test_a_mistake_in_the_filter_language_is_said_beside_it_and_nothing_is_lost(page, with_fields):
    page.goto(f"{with_fields}/?where=year+%3E%3D+1910&where=not+place+%3D+%27Rome%27")
    expect(page.locator(".clause bdi")).to_have_text(["year from 1910", "not place = 'Rome'"])
    page.get_by_role("button", name="Filter", exact=True).click()
    line = page.get_by_label("In the filter language")
    expect(line).to_have_value("not place = 'Rome'")
    line.fill("not place = 'Rome' and yeer > ")
    page.keyboard.press("Enter")
    expect(page.locator(".expert").get_by_role("alert")).to_contain_text("it ends; expected a number")
    expect(line).to_have_value("not place = 'Rome' and yeer > ")
    expect(line).to_be_focused()
    line.fill("not place = 'Rome' and yeer > 1920")
    page.keyboard.press("Enter")
    expect(page.locator(".expert").get_by_role("alert")).to_contain_text("no item has a metadata field 'yeer'")
    keep(page, "filter-mistake")
    line.fill("not place = 'Rome' and year > 1920")
    page.keyboard.press("Enter")
    expect(page.locator(".clause bdi")).to_have_text(["year from 1910", "not place = 'Rome' and year > 1920"])
    expect(page.locator(".card")).to_have_count(sum(1 for row in range(21, 40) if row % 3))
    forgive(page)


def test_a_filter_holds_for_a_query_too_and_a_wrong_one_in_the_address_is_said(page, with_fields):
    page.goto(f"{with_fields}/?q=id:5&where=year+%3C%3D+1904")
    assert sorted(results(page)) == ["0", "1", "2", "3", "4"]
    page.goto(f"{with_fields}/?q=id:5&where=year+%3E")
    expect(page.locator("main").get_by_role("alert")).to_contain_text("where = 'year >'")
    page.get_by_role("button", name="Remove the filter").click()
    assert len(results(page)) == 36
    forgive(page)


def test_metadata_with_markup_is_shown_as_text(page, with_fields):
    page.goto(with_fields)
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.get_by_role("group", name="place")).to_contain_text("<b>Paris</b>")
    assert page.locator("dialog b").count() == 0


def test_on_a_phone_words_chips_and_filters_work_by_touch(browser, with_words):
    with a_phone(browser) as phone:
        phone.goto(with_words)
        phone.get_by_role("combobox").tap()
        phone.keyboard.type("theme 3")
        keep(phone, "phone-suggestions")
        phone.get_by_role("option", name="Search for").tap()
        assert results(phone)[0].startswith("3-")
        phone.get_by_role("button", name="Less like 3-00.png").tap()
        expect(phone.locator(".part.less")).to_have_count(1)
        phone.locator(".part.less .turn").tap()
        expect(phone.locator(".part.less")).to_have_count(0)
        phone.locator(".part .off").last.tap()
        expect(phone.locator(".part")).to_have_count(1)
        phone.get_by_role("button", name="Filter", exact=True).tap()
        phone.get_by_label("contains").fill("3-1")
        expect(phone.get_by_role("button", name="Show 2 items")).to_be_visible()
        keep(phone, "phone-filter")
        assert axe_findings(phone) == []
        phone.get_by_role("button", name="Show 2 items").tap()
        expect(phone.locator(".card")).to_have_count(2)
        assert fits(phone)
        keep(phone, "phone-filtered")
        assert axe_findings(phone) == []


def test_on_a_phone_a_picture_is_taken_with_the_camera(browser, address):
    with a_phone(browser) as phone:
        phone.goto(address)
        with phone.expect_file_chooser() as chooser:
            phone.get_by_role("button", name="Camera").tap()
        assert phone.locator("#camera").get_attribute("capture") == "environment"
        chooser.value.set_files(file("IMG_1.png", png(6)))
        assert results(phone)[0] == "06.png"


def test_without_a_touch_screen_no_camera_is_offered(page, address):
    page.goto(address)
    expect(page.get_by_role("button", name="Picture…")).to_be_visible()
    expect(page.get_by_role("button", name="Camera")).to_be_hidden()
