"""What the tests of data sets share: servers on this machine that behave and misbehave, and tiny data sets."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from manifind.datasets.catalogue import DataSet, RemoteFile
from manifind.datasets.download import RetryPolicy


class _Server(ThreadingHTTPServer):
    """Answers each path with the next of its answers; the last is given again and again."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = {}
        self.asked = []
        self.released = threading.Event()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def serve(self, path, *answers):
        """Answer the path so from now on; returns its URL. An answer: bytes, a status, or a callable."""
        self.answers[path] = list(answers)
        return self.address + path

    def handle_error(self, request, client_address):
        """Say nothing: clients that go away are what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        answers = self.server.answers.get(self.path, [404])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        self.server.asked.append((self.path, dict(self.headers)))
        if callable(answer):
            answer(self)
        elif isinstance(answer, bytes):
            self.send(answer)
        else:
            self.send_error(answer)

    def send(self, body, promised=None, status=200, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if promised is None else promised))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Keep quiet."""


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    """Ask servers on this machine themselves, whatever the environment says."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "*")


@pytest.fixture
def server():
    """An HTTP server on this machine."""
    with _Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.released.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def quick():
    """RetryPolicy for tests: three tries without pauses."""
    return RetryPolicy(tries=3, timeout=5, pause=0)


@pytest.fixture
def tiny():
    """Makes a data set of files given as (url, path) or with more of RemoteFile's settings."""

    def make(*files, name="tiny", parts=("descriptors",)):
        remote = tuple(
            file if isinstance(file, RemoteFile) else RemoteFile(file[0], file[1], "descriptors") for file in files
        )
        return DataSet(
            name=name,
            title="a tiny set",
            items=3,
            queries=None,
            truth="labels",
            source="https://example.org/tiny",
            licence="none stated",
            obtain="ask a friend",
            files=remote,
            default_parts=parts,
        )

    return make


@pytest.fixture
def draw():
    """Writes a picture of random grey pixels, or of the given ones, and returns its pixels."""
    image = pytest.importorskip("PIL.Image")
    generator = np.random.default_rng(0)

    def write(path, size=(4, 3), pixels=None):
        path.parent.mkdir(parents=True, exist_ok=True)
        if pixels is None:
            pixels = generator.integers(0, 256, size=size[::-1], dtype=np.uint8)
        image.fromarray(pixels).save(path)
        return pixels

    return write
