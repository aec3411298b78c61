"""Long work and uploads have queues of their own: searches and small edits do not wait for them."""

import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import manifind
from manifind.server import jobs, maps
from manifind.server.errors import RefusedError
from manifind.server.jobs import Jobs
from server.live import serving
from server.made import HOST, app_of, make_pictures, make_service, make_vectors
from server.test_api import API, ask, finished, jpeg

_PATIENCE = 60  # seconds, after which something waits that must not


@pytest.fixture
def gate(monkeypatch):
    """What every process of the server waits for before it begins, in place of the process."""
    opened = threading.Event()
    for place in (Jobs, maps):
        monkeypatch.setattr(place, "call", lambda *_, **__: opened.wait(_PATIENCE))
    yield opened
    opened.set()


@pytest.fixture
def client(tmp_path):
    make_vectors(tmp_path / "v")
    with TestClient(app_of(make_service(tmp_path / "v", tmp_path), True), base_url=HOST) as one:
        yield one


def test_sixty_refits_are_one_at_work_and_one_that_waits_and_edits_go_on_meanwhile(client, gate):
    asked = [client.post(f"{API}/refit", json={}).json() for _ in range(60)]
    assert len({job["id"] for job in asked}) <= 2
    added = client.post(f"{API}/items", json={"items": [{"vector": [1.0] * 6}]}).json()
    assert finished(client, added)["result"]["ids"] == ["40"]
    removed = client.post(f"{API}/items/remove", json={"ids": [str(7)]}).json()
    assert finished(client, removed)["state"] == "done"
    assert ask(client, "collection")["items"] == 40
    assert ask(client, f"jobs/{asked[0]['id']}")["state"] == "working"
    gate.set()
    for job in asked:
        assert finished(client, job)["state"] == "done"
    later = client.post(f"{API}/refit", json={}).json()
    assert later["id"] not in {job["id"] for job in asked}


def test_a_map_of_an_older_version_is_waited_for_and_no_second_one_is_queued(client, gate):
    first = ask(client, "map", 202)
    seen = {first["id"]}
    for number in range(3):
        job = client.post(f"{API}/items", json={"items": [{"vector": [1.0 + number] * 6}]}).json()
        finished(client, job)
        seen.add(ask(client, "map", 202)["id"])
    assert seen == {first["id"]}
    gate.set()
    assert "is no map" in finished(client, first)["error"]  # nothing was laid out
    gate.clear()
    assert ask(client, "map", 202)["id"] not in seen


def test_a_job_that_is_not_over_is_not_forgotten_whatever_comes_after_it(gate):
    queue = Jobs()
    long = queue.start("refit", lambda _: gate.wait(_PATIENCE) and None)
    for _ in range(2 * jobs._MOST_JOBS):
        done = queue.start("add", lambda _: None)
        while not done.is_over:
            threading.Event().wait(0.001)
    assert queue.get(long.id) is long
    assert len(queue._jobs) <= jobs._MOST_JOBS
    queue.close()


EDITS = st.tuples(st.sampled_from(["add", "remove"]), st.integers(0, 40 << 20))
HEAVY = st.tuples(st.sampled_from(["refit", "map"]), st.just(0))


@settings(max_examples=50, deadline=None)
@given(st.lists(EDITS | HEAVY, max_size=150))
def test_whatever_is_queued_stays_within_its_limits(asked):
    queue, opened, taken = Jobs(), threading.Event(), {}
    for kind, n_bytes in asked:
        with suppress(RefusedError):
            job = queue.start(kind, lambda _: opened.wait(_PATIENCE) and None, n_bytes)
            taken[job.id] = job, n_bytes
    kept = [job for job, _ in taken.values()]
    assert sum(job.kind == "refit" and job.state == "waiting" for job in kept) <= 1
    assert sum(job.kind in jobs._HEAVY for job in kept) <= jobs._MOST_WAITING
    assert sum(job.kind not in jobs._HEAVY for job in kept) <= jobs._MOST_WAITING
    assert sum(n_bytes for _, n_bytes in taken.values()) <= jobs._MOST_BYTES
    opened.set()
    for job in kept:
        while not job.is_over:
            threading.Event().wait(0.001)
    queue.start("add", lambda _: None, 10 * jobs._MOST_BYTES)  # alone, even a large one may come
    queue.close()


class Waiting:
    """Clients of a server, each with a connection of its own."""

    def __init__(self, address):
        self._parts = urlsplit(address)

    def ask(self, method, path, body=None, kind="image/jpeg"):
        connection = http.client.HTTPConnection(self._parts.hostname, self._parts.port, timeout=_PATIENCE)
        try:
            connection.request(method, path, body, {"content-type": kind} if body else {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read()), answer.headers
        finally:
            connection.close()


def test_searches_do_not_wait_for_uploads_and_too_many_of_those_are_told_to_come_back(tmp_path, monkeypatch):
    make_pictures(tmp_path / "c", tmp_path / "photos")
    served, opened = make_service(tmp_path / "c", tmp_path), threading.Event()
    take = served.uploads.take
    monkeypatch.setattr(served.uploads, "take", lambda data, crop=None: opened.wait(_PATIENCE) and take(data, crop))
    with serving(served, can_edit=True) as address, ThreadPoolExecutor(24) as threads:
        clients = Waiting(address)
        paths = [f"{API}/search/picture", f"{API}/pictures"]
        uploads = [threads.submit(clients.ask, "POST", paths[number % 2], jpeg(number)) for number in range(24)]
        while not any(upload.done() for upload in uploads):
            threading.Event().wait(0.01)
        for path in (f"{API}/search?id=north/01.png", f"{API}/items", f"{API}/collection", "/healthz"):
            assert clients.ask("GET", path)[0] == 200
        assert not opened.is_set()
        opened.set()
        answers = [upload.result() for upload in uploads]
    assert {status for status, _, _ in answers} == {200, 202, 503}
    for status, reply, headers in answers:
        if status == 503:
            assert "waiting" in reply["error"]
            assert int(headers["retry-after"]) > 0


def test_an_upload_is_remembered_without_its_pixels(tmp_path):
    make_pictures(tmp_path / "c", tmp_path / "photos")
    served = make_service(tmp_path / "c", tmp_path)
    taken = served.uploads.take(jpeg())
    assert (taken.picture.width, taken.picture.format) == (64, "JPEG")
    assert taken.picture.pixels.nbytes == 0
    served.close()


def test_a_commit_does_not_bring_back_a_version_that_somebody_has_moved_on_from(tmp_path, monkeypatch):
    make_vectors(tmp_path / "v")
    collection = manifind.load(tmp_path / "v")
    commit = manifind.collection.collection.commit_change

    def overtaken(*arguments):
        done = commit(*arguments)
        monkeypatch.undo()
        manifind.load(tmp_path / "v").add(np.full((1, 6), 2, np.float32))
        collection.refresh()  # as another thread that looks for news
        return done

    monkeypatch.setattr(manifind.collection.collection, "commit_change", overtaken)
    collection.add(np.ones((1, 6), np.float32))
    assert collection.ids.tolist() == list(range(42))
