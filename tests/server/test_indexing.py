"""Indexing from the page: only folders that were named, with progress, and a server that is killed loses nothing."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest
from starlette.testclient import TestClient

import manifind
from images.painted import paint, paint_many
from manifind.errors import InputError
from manifind.model.index_folder import index_folder
from manifind.progress import Progress
from manifind.server import indexing, jobs
from manifind.server.errors import RefusedError
from manifind.server.folders import allowed_folder, list_folders, looks_of
from manifind.server.indexing import IndexingState, can_index, folder_warning, is_watched
from manifind.server.jobs import Jobs, JobState
from manifind.server.service import Service
from server.made import HOST, SMALL, app_of, make_pictures, make_vectors

API = "/api/v1"
TOKEN = "a-token-of-many-characters"
PATIENCE = 120  # seconds


@pytest.fixture
def service(tmp_path):
    make_pictures(tmp_path / "c", tmp_path / "photos")
    return Service(tmp_path / "c", cache=tmp_path / "cache", index_below=[tmp_path / "photos"])


@pytest.fixture
def client(service):
    with TestClient(app_of(service, True), base_url=HOST) as one:
        yield one


def until(condition):
    last = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < last
        time.sleep(0.02)
    return found


def finished(client, answer):
    assert answer.status_code == 202, answer.text

    def over():
        state = client.get(f"{API}/jobs/{answer.json()['id']}").json()
        return state if state["state"] in ("done", "failed") else None

    return until(over)


def test_what_is_new_in_the_folder_is_added_and_what_is_gone_removed(client, service, tmp_path):
    for number in (30, 31):
        paint(tmp_path / "photos" / "new" / f"{number}.png", number)
    (tmp_path / "photos" / "north" / "01.png").unlink()
    (tmp_path / "photos" / "broken.png").write_bytes(b"no picture")
    state = finished(client, client.post(f"{API}/index", json={}))
    assert (state["state"], state["error"], state["kind"]) == ("done", "", "index")
    assert (state["result"]["added"], state["result"]["removed"]) == (2, 1)
    assert [one["path"] for one in state["result"]["problems"]] == ["broken.png"]
    assert state["result"]["n_problems"] == 1
    assert client.get(f"{API}/collection").json()["items"] == 21
    assert client.get(f"{API}/item", params={"id": "new/31.png"}).status_code == 200
    assert client.get(f"{API}/index").json() == {
        "folder": str(tmp_path / "photos"), "is_there": True, "watched": False,
    }  # fmt: skip
    assert not (tmp_path / ".c.work").exists()


def test_a_folder_that_has_lost_most_of_its_pictures_removes_nothing_and_says_so(client, service, tmp_path):
    for file in (tmp_path / "photos" / "north").iterdir():
        file.unlink()
    state = finished(client, client.post(f"{API}/index", json={}))
    assert state["state"] == "failed"
    assert "10 of the 20 items" in state["error"]
    assert "allow_removals" not in state["hint"]
    assert client.get(f"{API}/collection").json()["items"] == 20
    assert "10 of the 20 items" in folder_warning(service)["problem"]


def test_progress_is_told_to_whoever_asks_later(client, service, tmp_path, monkeypatch):
    reported = []

    def call(_, arguments, listener):
        listener(Progress("pictures", 3, 10, "photos"))
        reported.append(arguments)
        until(lambda: len(reported) > 1)
        raise InputError("enough", "stop")

    monkeypatch.setattr(service.jobs, "call", call)
    job = client.post(f"{API}/index", json={}).json()
    until(lambda: reported)
    (listed,) = client.get(f"{API}/jobs").json()["jobs"]
    assert listed["id"] == job["id"]
    assert (listed["state"], listed["stage"], listed["done"], listed["total"]) == ("working", "pictures", 3, 10)
    waiting = client.post(f"{API}/index", json={}).json()
    assert client.post(f"{API}/index", json={}).json()["id"] == waiting["id"]
    assert [one["state"] for one in client.get(f"{API}/jobs").json()["jobs"]] == ["working", "waiting"]
    reported.append("go on")
    until(lambda: all(one["state"] == "failed" for one in client.get(f"{API}/jobs").json()["jobs"]))
    newest = client.get(f"{API}/jobs").json()["jobs"][0]
    assert (newest["id"], newest["error"], newest["hint"]) == (waiting["id"], "enough", "stop")
    assert reported[0]["folder"] == str(tmp_path / "photos")
    assert reported[0]["extractor"] is None


def test_the_time_left_follows_from_what_was_done_in_this_stage(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(jobs.time, "monotonic", lambda: clock[0])
    job, left = JobState.waiting("index"), []
    for at, stage, done in [
        (0, "reading", 0),
        (1, "reading", 50),
        (4, "reading", 80),
        (5, "pictures", 10),
        (15, "pictures", 30),
    ]:
        clock[0] = 100.0 + at
        job.report(Progress(stage, done, 100))
        left.append(job.seconds_left)
    assert left == [None, None, 1, None, 35]
    assert "began" not in job.model_dump_json()


HOSTILE = [
    "", ".", "..", "relative", "/", "/etc", "/etc/passwd", "//etc", "\0", "/tmp\0", "~", "$HOME", "a" * 4096,
    "/" + "x/" * 2000,
    "{photos}/..", "{photos}/../photos", "{photos}/north/../../secret", "{photos}/out", "{photos}/out/deep",
    "{photos}/loop", "{base}/secret", "{base}/photos-too", "\ud800", "{photos}\\xff/..", "file://{photos}",
]  # fmt: skip


@pytest.fixture
def tricky(tmp_path):
    """Folders, links that lead out of them, and one beside that must not be read."""
    paint_many(tmp_path / "photos")
    for name in ("secret", "photos-too"):
        paint(tmp_path / name / "deep" / "1.png", 1)
    (tmp_path / "photos" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "photos" / "loop").symlink_to(tmp_path / "photos" / "loop")
    (tmp_path / "photos" / "in").symlink_to(tmp_path / "photos" / "north")
    return tmp_path


@pytest.mark.parametrize("text", HOSTILE)
def test_a_folder_elsewhere_is_refused_whether_it_is_there_or_not(tricky, text):
    text = text.replace("{photos}", str(tricky / "photos")).replace("{base}", str(tricky))
    with pytest.raises(RefusedError) as refusal:
        allowed_folder(text, [tricky / "photos"])
    assert refusal.value.status == 403
    assert "is not below a folder that may be indexed" in refusal.value.problem
    assert len(refusal.value.problem) < 400


def test_a_folder_below_is_known_by_its_real_path(tricky):
    photos = tricky / "photos"
    assert allowed_folder(str(photos), [photos]) == photos
    assert allowed_folder(f"{photos}/./north/", [photos]) == photos / "north"
    assert allowed_folder(str(photos / "in"), [photos]) == photos / "north"
    (tricky / "link").symlink_to(photos)
    assert allowed_folder(str(tricky / "link" / "south"), [tricky / "link"]) == photos / "south"
    for missing in ("none", "north/01.png", "north/none"):
        with pytest.raises(RefusedError, match="there is no folder") as refusal:
            allowed_folder(str(photos / missing), [photos])
        assert refusal.value.status == 404
    with pytest.raises(RefusedError):
        allowed_folder(str(photos), [])


def test_folders_are_listed_with_what_they_hold_without_hidden_ones_and_links(tricky):
    strange = tricky / "photos" / "a\nb\u202ec"
    paint(strange / "deep" / "1.png", 1)
    paint(tricky / "photos" / ".hidden" / "1.png", 1)
    (tricky / "photos" / "empty").mkdir()
    folders, is_whole = list_folders([tricky / "photos", tricky / "secret"])
    assert is_whole
    assert [(one["name"], one["pictures"]) for one in folders] == [
        ("photos", 21), ("photos/a\nb\u202ec", 1), ("photos/a\nb\u202ec/deep", 1), ("photos/north", 10),
        ("photos/south", 10), ("secret", 1), ("secret/deep", 1),
    ]  # fmt: skip
    for one in folders:
        assert allowed_folder(one["path"], [tricky / "photos", tricky / "secret"]).is_dir()


def test_a_name_that_is_no_text_is_listed_and_found_again(tmp_path):
    odd = os.fsdecode(bytes(os.fsencode(tmp_path)) + b"/photos/\xff\xfe")
    os.makedirs(odd)
    paint(tmp_path / "one.png", 1)
    os.rename(tmp_path / "one.png", os.path.join(odd, "one.png"))
    folders, _ = list_folders([tmp_path / "photos"])
    json.dumps(folders).encode()
    assert str(allowed_folder(folders[1]["path"], [tmp_path / "photos"])) == odd


def test_of_too_many_folders_the_first_are_listed_and_it_is_said(tricky, monkeypatch):
    from manifind.server import folders

    monkeypatch.setattr(folders, "_MOST_FILES", 15)
    listed, is_whole = list_folders([tricky / "photos"])
    assert not is_whole
    assert len(listed) == 2


@pytest.mark.parametrize("folder", ["/etc", "{base}/secret", "{photos}/out", "{photos}/..", "x" * 5000])
def test_nothing_elsewhere_is_indexed_by_the_api(tricky, folder):
    index_folder(tricky / "photos", tricky / "c", "pixels", SMALL)
    service = Service(tricky / "c", index_below=[tricky / "photos"])
    folder = folder.replace("{photos}", str(tricky / "photos")).replace("{base}", str(tricky))
    with TestClient(app_of(service, True), base_url=HOST) as client:
        answer = client.post(f"{API}/index", json={"folder": folder})
        assert answer.status_code in (403, 422)
        assert client.get(f"{API}/jobs").json() == {"jobs": []}
    assert not (tricky / ".c.work").exists()


def test_another_folder_does_not_take_the_place_of_the_one_that_is_there(client, service, tmp_path):
    answer = client.post(f"{API}/index", json={"folder": str(tmp_path / "photos" / "north")})
    assert answer.status_code == 409
    assert "was made of" in answer.json()["error"]
    assert answer.json()["hint"] == "make another collection of it"
    (tmp_path / "photos").rename(tmp_path / "moved")
    (tmp_path / "photos").symlink_to(tmp_path / "moved")
    assert client.post(f"{API}/index", json={"folder": str(tmp_path / "moved")}).status_code == 202


def test_a_folder_that_is_elsewhere_now_is_named_and_its_items_are_the_same(tmp_path):
    make_pictures(tmp_path / "c", tmp_path / "before")
    (tmp_path / "before").rename(tmp_path / "now")
    service = Service(tmp_path / "c", index_below=[tmp_path / "now"])
    assert can_index(service, True) is False  # its own is not among those that may be, and nobody said that it is gone
    service = Service(tmp_path / "c", index_below=[tmp_path])
    with TestClient(app_of(service, True), base_url=HOST) as client:
        assert can_index(service, True)
        assert "is not there" in folder_warning(service)["problem"]
        assert client.post(f"{API}/index", json={}).status_code == 404
        state = finished(client, client.post(f"{API}/index", json={"folder": str(tmp_path / "now")}))
        assert (state["state"], state["result"]["unchanged"], state["result"]["added"]) == ("done", 20, 0)


def test_what_may_be_done_depends_on_what_was_allowed(tmp_path, service):
    below = [tmp_path / "photos"]
    assert can_index(service, True)
    assert not can_index(service, False)
    assert not can_index(Service(tmp_path / "c"), True)
    make_vectors(tmp_path / "v")
    vectors = Service(tmp_path / "v", index_below=below)
    assert not can_index(vectors, True)
    assert folder_warning(vectors) is None
    with TestClient(app_of(vectors, True), base_url=HOST) as client:
        assert client.post(f"{API}/index", json={}).status_code == 409
    with TestClient(app_of(service, False), base_url=HOST) as client:
        for path in ("index", "folders"):
            assert client.get(f"{API}/{path}").status_code == 403
        assert client.post(f"{API}/index", json={}).status_code == 403
        assert client.get(f"{API}/jobs").json() == {"jobs": []}
    with TestClient(app_of(Service(tmp_path / "c"), True), base_url=HOST) as client:
        assert client.get(f"{API}/folders").json()["folders"] == []
        answer = client.post(f"{API}/index", json={"folder": str(below[0])})
        assert answer.status_code == 403
    with TestClient(app_of(service, True, token=TOKEN), base_url=HOST) as client:
        for path in ("index", "folders", "jobs"):
            assert client.get(f"{API}/{path}").status_code == 401
        assert client.post(f"{API}/index", json={}).status_code == 401


def test_what_is_wrong_with_the_folder_is_said_with_the_way_out(tmp_path, service, monkeypatch):
    monkeypatch.setattr(indexing, "_FRESH", 0.0)
    assert folder_warning(service) is None
    photos = tmp_path / "photos"
    photos.rename(tmp_path / "away")
    assert folder_warning(service) == {
        "problem": f"the folder of the pictures, {photos}, is not there",
        "hint": "connect its disk, or start the server with --images and the place where it is now",
    }
    photos.mkdir()
    assert "is empty" in folder_warning(service)["problem"]  # where a disk was not mounted
    photos.rmdir()
    photos.write_text("a file")
    assert "cannot be read" in folder_warning(service)["problem"]
    photos.unlink()
    (tmp_path / "away").rename(photos)
    assert folder_warning(service) is None
    service.folders = ()
    assert "--images" in folder_warning(service)["hint"]


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(indexing, "EVERY", 0.05)


def test_a_watched_folder_is_indexed_when_it_has_changed_and_settled(hasty, client, service, tmp_path):
    finished(client, client.post(f"{API}/index", json={"watch": True}))
    assert is_watched(service)
    assert client.get(f"{API}/index").json()["watched"]
    done = len(client.get(f"{API}/jobs").json()["jobs"])
    time.sleep(0.3)
    assert len(client.get(f"{API}/jobs").json()["jobs"]) == done  # nothing has changed
    paint(tmp_path / "photos" / "east" / "new.png", 77)
    until(lambda: client.get(f"{API}/collection").json()["items"] == 21)
    until(lambda: all(one["state"] == "done" for one in client.get(f"{API}/jobs").json()["jobs"]))
    assert finished(client, client.post(f"{API}/index", json={"watch": False}))["result"] == {"watched": False}
    assert not is_watched(service)
    assert not (tmp_path / ".c.work").exists()


@pytest.mark.long
def test_watching_goes_on_with_the_next_server(hasty, service, tmp_path):
    with TestClient(app_of(service, True), base_url=HOST) as client:
        finished(client, client.post(f"{API}/index", json={"watch": True}))
    paint(tmp_path / "photos" / "new.png", 77)
    following = Service(tmp_path / "c", index_below=[tmp_path / "photos"])
    with TestClient(app_of(following, True), base_url=HOST) as client:
        assert is_watched(following)
        until(lambda: client.get(f"{API}/collection").json()["items"] == 21)


@pytest.mark.long
def test_a_watched_folder_that_cannot_be_indexed_is_not_tried_again_until_it_changes(hasty, client, service, tmp_path):
    finished(client, client.post(f"{API}/index", json={"watch": True}))
    for file in (tmp_path / "photos" / "north").iterdir():
        file.rename(tmp_path / f"saved-{file.name}")

    def listed():
        return client.get(f"{API}/jobs").json()["jobs"]

    until(lambda: [one for one in listed() if one["state"] == "failed"])
    time.sleep(0.5)
    assert len([one for one in listed() if one["state"] == "failed"]) == 1
    for number in range(1, 20, 2):
        (tmp_path / f"saved-{number:02}.png").rename(tmp_path / "photos" / "north" / f"{number:02}.png")
    paint(tmp_path / "photos" / "new.png", 77)
    until(lambda: client.get(f"{API}/collection").json()["items"] == 21)
    until(lambda: service.folder_watch.saved.problem == "")


def test_what_is_kept_beside_a_collection_cannot_name_another_folder(tmp_path, service):
    secret = tmp_path / "secret"
    paint_many(secret)
    for content in (json.dumps({"unfinished": str(secret)}), "[]", "{", json.dumps({"unfinished": 7}), "\0" * 100):
        (tmp_path / ".c.work").mkdir(exist_ok=True)
        (tmp_path / ".c.work" / "indexing.json").write_text(content)
        following = Service(tmp_path / "c", index_below=[tmp_path / "photos"])
        with TestClient(app_of(following, True), base_url=HOST) as client:
            assert client.get(f"{API}/jobs").json() == {"jobs": []}
            assert client.get(f"{API}/collection").json()["items"] == 20


def test_looks_follow_from_names_sizes_and_times(tmp_path):
    paint_many(tmp_path / "photos")
    seen = {looks_of(tmp_path / "photos")}
    assert looks_of(tmp_path / "photos") in seen
    for change in (
        lambda: os.utime(tmp_path / "photos" / "north" / "01.png", ns=(1, 1)),
        lambda: (tmp_path / "photos" / "north" / "01.png").rename(tmp_path / "photos" / "north" / "01b.png"),
        lambda: (tmp_path / "photos" / "north" / "01b.png").unlink(),
    ):
        change()
        assert looks_of(tmp_path / "photos") not in seen
        seen.add(looks_of(tmp_path / "photos"))
    paint(tmp_path / "photos" / ".new.png", 1)
    assert looks_of(tmp_path / "photos") in seen
    assert looks_of(tmp_path / "none") is None


@contextmanager
def served(*arguments):
    """A process that serves, and its address."""
    command = [sys.executable, "-m", "manifind", "serve", *map(str, arguments), "--port", "0", "--allow-edit"]
    environment = {name: value for name, value in os.environ.items() if name != "MANIFIND_TOKEN"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**environment, "COLUMNS": "200"}) as process:
        try:
            yield process, process.stdout.readline().rpartition(" at ")[2].strip()
        finally:
            process.kill()


def ask(address, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}api/v1/{path}", data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.long
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_server_that_is_killed_while_it_indexes_goes_on_after_a_restart_and_loses_nothing(tmp_path, end):
    make_pictures(tmp_path / "c", tmp_path / "photos")
    for number in range(20, 420):
        paint(tmp_path / "photos" / f"new-{number}.png", number)
    arguments = (tmp_path / "c", "--index-below", tmp_path / "photos")
    with served(*arguments) as (process, address):
        job = ask(address, "index", {})

        def describing():
            state = ask(address, f"jobs/{job['id']}")
            assert state["state"] in ("waiting", "working"), state
            return state["stage"] == "pictures" and state["done"] > 0

        until(describing)
        process.send_signal(end)
        process.wait(20)  # although the folder is far from done
    assert len(manifind.load(tmp_path / "c")) == 20
    assert IndexingState.read(tmp_path / "c").unfinished == str(tmp_path / "photos")
    with served(*arguments) as (process, address):
        (job,) = ask(address, "jobs")["jobs"]  # nobody had to ask
        assert job["kind"] == "index"
        state = until(lambda: (found := ask(address, f"jobs/{job['id']}"))["state"] in ("done", "failed") and found)
        assert (state["state"], state["error"]) == ("done", "")
        assert ask(address, "collection")["items"] == 420
    collection = manifind.load(tmp_path / "c")
    assert {*collection.ids.tolist()} >= {f"new-{number}.png" for number in range(20, 420)}
    assert not (tmp_path / ".c.work").exists()


def test_closing_ends_the_children_of_jobs(tmp_path):
    queue, begun = Jobs(), []

    def work(listener):
        begun.append(1)
        return {"value": queue.call("time:sleep", {"secs": 600}, listener).value}

    job = queue.of("one").start("index", work)
    until(lambda: queue._children)
    queue.close()
    until(lambda: job.is_over)
    assert job.state == "failed"
    with pytest.raises(RefusedError, match="is ending"):
        queue.call("time:sleep", {"secs": 0}, lambda _: None)
