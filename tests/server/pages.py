"""Pages that must not complain, what fingers do on them, and what axe finds."""

import time
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe

_STILL = 0.3  # seconds before fingers leave: while something is flung, the browser takes the next tap for a halt


@contextmanager
def a_page(browser, width=1200, expected=None, **options):
    """A page of its own; whatever it complains of in its console is an error.

    expected: what complaints may say, such as "404"; those made so far are in `page.complaints`. options: of the
    browser's context.
    """
    context = browser.new_context(viewport={"width": width, "height": 850}, **options)
    page, complaints = context.new_page(), []
    page.set_default_timeout(20_000)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.complaints = complaints
    try:
        yield page
    finally:
        context.close()
    unexpected = [one for one in complaints if expected is None or expected not in one]
    assert not unexpected, unexpected


def a_phone(browser, **options):
    """A page of 390 px that is touched."""
    return a_page(browser, 390, has_touch=True, is_mobile=True, **options)


def until(page, condition):
    """Wait for a condition on the page; the browser's own way of waiting would need what the page's policy forbids."""
    last = time.monotonic() + 20
    while not page.evaluate(condition):
        assert time.monotonic() < last, condition
        time.sleep(0.05)


def drag_fingers(page, *paths):
    """Fingers, each along its places (x, y), all at the same time."""
    session = page.context.new_cdp_session(page)

    def send(kind, places):
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    first, *rest = list(zip(*paths, strict=True))
    send("touchStart", first)
    for places in rest:
        send("touchMove", places)
    time.sleep(_STILL)
    send("touchMove", rest[-1])
    send("touchEnd", [])
    session.detach()


def along(start, end, steps=8):
    """Places from one to another."""
    return [tuple(a + (b - a) * step / steps for a, b in zip(start, end, strict=True)) for step in range(steps + 1)]


def middle(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def axe_findings(page):
    return [(one["id"], one["nodes"][0]["html"][:160]) for one in Axe().run(page).response["violations"]]


def fits(page):
    """Whether nothing is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


_SAID = "document.activeElement.textContent + (document.activeElement.ariaLabel ?? '')"


def press_until(page, key, text):
    """Press a key until the element that has the focus says this."""
    for _ in range(60):
        if page.evaluate(_SAID).strip() == text:
            return
        page.keyboard.press(key)
    raise AssertionError(text)
