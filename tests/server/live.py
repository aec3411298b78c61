"""A server that listens, and a browser that looks at it."""

from __future__ import annotations

import os
import shutil
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from manifind.server.app import acceptors, make_server, open_socket
from manifind.server.connections import usual_limits
from server.made import app_of

SHOTS = Path(os.environ.get("MANIFIND_SCREENSHOTS", "build/screenshots"))
"""Where pictures of the page are left, to be looked at."""

_FLAGS = [
    "--no-sandbox",  # a container's root has no other way
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def serving(service, limits=None, **options):
    """The address of a server in a thread."""
    return running(app_of(service, **options), limits)


@contextmanager
def running(app, limits=None):
    """The address of an application that a server runs in a thread."""
    listening = open_socket("127.0.0.1", 0)
    server = make_server(app, limits or usual_limits(60))
    thread = threading.Thread(target=server.run, kwargs={"sockets": acceptors(listening)})
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@contextmanager
def another_site(html):
    """The port of a server of somebody else, all of whose pages are this one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def a_browser():
    """Chromium without a window; skips with the reason where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_FLAGS)
        yield browser
        browser.close()


def keep(page, name):
    """Leave a picture of the page."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png")
