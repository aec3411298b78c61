"""The page of `manifind search --page` in a browser: as wide as the screen, on a phone too, whatever names are."""

import pytest

from images.painted import paint, paint_many
from server.live import a_browser, keep

LONG = ["W" * 200 + ".png", "a folder with a long name/" * 4 + "x.png"]


@pytest.fixture(scope="module")
def browser():
    with a_browser() as one:
        yield one


@pytest.fixture(scope="module")
def answers(command, tmp_path_factory):
    """A page of two queries, on which names are long, look like markup, and turn the direction of writing."""
    base = tmp_path_factory.mktemp("answers")
    folder = paint_many(base / "photos")
    for number, name in enumerate((*LONG, "<b>bold<b>.png", "\u202egnp.png", "two\nlines.png")):
        paint(folder / name, 100 + number)
    assert command("index", folder, base / "c", "--extractor", "pixels").code == 0
    (folder / "south" / "02.png").unlink()
    asked = (LONG[0], folder / "north" / "01.png", "-k", 25)
    assert command("search", base / "c", *asked, "--page", base / "answers.html").code == 0
    return base / "answers.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 360, 390, 1200])
def test_nothing_is_wider_than_the_screen_and_axe_finds_nothing(browser, answers, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    is_phone = width < 1000
    screen = {"viewport": {"width": width, "height": 800}, "is_mobile": is_phone, "has_touch": is_phone}
    context = browser.new_context(color_scheme=scheme, **screen)
    page = context.new_page()
    page.goto(answers.as_uri())
    page.wait_for_selector("img")
    assert page.evaluate("innerWidth") == width
    assert page.evaluate("document.documentElement.scrollWidth") == width
    boxes = [one.bounding_box() for one in page.locator("h1, h2, li, li *, .query, .query *").all()]
    assert len(boxes) > 200
    assert max(box["x"] + box["width"] for box in boxes) <= width
    assert min(box["x"] for box in boxes) >= 0
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in Axe().run(page).response["violations"]] == []
    keep(page, f"answers-{scheme}-{width}")
    context.close()


def test_two_pictures_stand_side_by_side_on_a_phone(browser, answers):
    page = browser.new_page(viewport={"width": 360, "height": 800}, is_mobile=True)
    page.goto(answers.as_uri())
    first, second = (page.locator("ol").first.locator("li").nth(at).bounding_box() for at in (0, 1))
    assert first["y"] == second["y"]
    assert first["width"] >= 144
    page.close()


def test_names_are_shown_as_text_and_a_file_that_is_gone_as_a_box(browser, answers):
    page = browser.new_page()
    page.goto(answers.as_uri())
    names = page.locator("ol").first.locator("li > div:not(.none)").all_inner_texts()
    assert {LONG[0], LONG[1], "<b>bold<b>.png", "\\u202egnp.png", "two\\nlines.png"} <= set(names)
    assert page.locator("b").count() == 0
    gone = page.locator("ol").first.locator("li", has_text="south/02.png")
    assert gone.locator(".none").inner_text() == "no picture"
    assert page.locator("ol").first.locator("img").count() == 24
    page.close()
