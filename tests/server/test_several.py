"""Several collections in one server: each is as it would be alone, one that is damaged disturbs no other."""

import io
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from starlette.testclient import TestClient
from typer.testing import CliRunner

import manifind
from images.painted import paint, paint_many
from manifind.cli.app import app as app_of_verbs
from manifind.errors import CollectionError, InputError
from manifind.model.index_folder import index_folder
from manifind.server import several
from manifind.server.app import check_root_path, make_app
from manifind.server.errors import RefusedError
from manifind.server.jobs import Jobs
from manifind.server.middleware import AccessRules
from manifind.server.several import ServedCollections, find_collections, free_name
from manifind.server.start import checked_name
from manifind.worker import Reply
from server.made import HOST, SMALL, make_pictures, make_vectors
from server.test_description import CHECKS
from server.test_hostile_requests import TRICKS

API = "/api/v1"
TOKEN = "a-token-of-many-characters"
OWN = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of two collections, and the pictures of one of them."""
    home = tmp_path_factory.mktemp("several")
    make_pictures(home / "all" / "Fotos 2019.manifind", home / "photos")
    make_vectors(home / "all" / "vectors")
    return home


@pytest.fixture
def home(made, tmp_path):
    """The same, for changing it."""
    return shutil.copytree(made / "all", tmp_path / "all")


def client_of(collections, can_edit=False, **rules):
    return TestClient(make_app(collections, AccessRules(**rules), can_edit), base_url=HOST)


@pytest.fixture
def small_fits(monkeypatch):
    """Folders are indexed here rather than in a child process, with a small model."""

    def call(_, function, arguments, listener):
        path, folder = arguments["path"], arguments["folder"]
        outcome = index_folder(folder, path, arguments["extractor"], SMALL, listener=listener)
        return Reply({**outcome.counts, "problems": [], "n_problems": 0})

    monkeypatch.setattr(Jobs, "call", call)


def listed(client):
    answer = client.get(f"{API}/collections")
    assert answer.status_code == 200, answer.text
    return {one["key"]: one for one in answer.json()["collections"]}


def finished(client, job, base=""):
    for _ in range(2400):
        state = client.get(f"{base}{API}/jobs/{job['id']}").json()
        if state["state"] in ("done", "failed"):
            return state
        time.sleep(0.05)
    raise AssertionError(state)


def test_each_collection_answers_below_its_own_name(made):
    with client_of(ServedCollections([], [made / "all"])) as client:
        found = listed(client)
        assert list(found) == ["fotos-2019", "vectors"]
        photos, vectors = found.values()
        assert (photos["name"], photos["items"], photos["pictures"]) == ("Fotos 2019.manifind", 20, True)
        assert (vectors["items"], vectors["pictures"], vectors["thumbnails"]) == (40, False, [])
        assert vectors["address"] == "c/vectors/"
        for one in found.values():
            assert client.get(f"/{one['address']}").text.startswith("<!doctype html>")
            facts = client.get(f"/{one['address']}api/v1/collection").json()
            assert facts["items"] == one["items"]
            assert client.get(f"/{one['address']}static/main.js").status_code == 200
            assert client.get(f"/{one['address']}api").status_code == 200
        assert client.get("/c/vectors/api/v1/search", params={"id": 7, "k": 2}).json()["results"][0]["id"] == "7"
        assert client.get("/api/v1/items").status_code == 404  # which one's?


def test_the_start_page_shows_pictures_without_opening_a_collection(made):
    collections = ServedCollections([], [made / "all"])
    with client_of(collections) as client:
        photos = listed(client)["fotos-2019"]
        assert len(photos["thumbnails"]) == 4
        for id_ in photos["thumbnails"]:
            answer = client.get(f"{API}/thumbnail", params={"collection": "fotos-2019", "id": id_})
            assert Image.open(io.BytesIO(answer.content)).format == "JPEG"
        assert not any(entry.service for entry in collections.entries())
        for collection, id_ in [("fotos-2019", "../all"), ("vectors", "7"), ("none", "7"), ("fotos-2019", "")]:
            answer = client.get(f"{API}/thumbnail", params={"collection": collection, "id": id_})
            assert answer.status_code == 404


def test_a_name_without_its_slash_leads_to_the_page(made):
    with client_of(ServedCollections([], [made / "all"])) as client:
        answer = client.get("/c/vectors", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (307, "vectors/")
        answer = client.get("/c/%2f%2fevil.example", follow_redirects=False)
        assert answer.status_code == 404 or not answer.headers["location"].startswith("/")


def test_a_damaged_collection_is_named_and_the_others_work(home):
    (segment,) = (home / "vectors" / "segments").glob("features-*.npy")
    os.truncate(segment, 100)
    shutil.copytree(home / "vectors", home / "worse")
    (home / "worse" / "collection.sqlite").write_bytes(b"no database")
    with client_of(ServedCollections([], [home])) as client:
        found = listed(client)
        assert "was recorded" in found["vectors"]["problem"] or "were recorded" in found["vectors"]["problem"]
        assert "backup" in found["vectors"]["hint"]
        assert found["worse"]["problem"]
        assert found["fotos-2019"]["problem"] == ""
        for name in ("vectors", "worse"):
            answer = client.get(f"/c/{name}/api/v1/collection")
            assert answer.status_code == 409
            assert answer.json()["error"] == found[name]["problem"]
            assert client.get(f"/c/{name}/").status_code == 200
        assert client.get("/c/fotos-2019/api/v1/collection").status_code == 200
        assert client.get("/healthz").status_code == 200
        assert "manifind_items 20.0" in client.get("/metrics").text


def test_one_that_is_repaired_works_again(home, monkeypatch):
    monkeypatch.setattr(several, "_TRY_AGAIN", 0.0)
    (segment,) = (home / "vectors" / "segments").glob("features-*.npy")
    whole = segment.read_bytes()
    os.truncate(segment, 100)
    with client_of(ServedCollections([], [home])) as client:
        assert listed(client)["vectors"]["problem"]
        segment.write_bytes(whole)
        assert client.get("/c/vectors/api/v1/collection").status_code == 200
        assert listed(client)["vectors"]["problem"] == ""


def test_collections_that_come_and_go_in_a_folder_do_so_on_the_start_page(home, monkeypatch):
    monkeypatch.setattr(several, "_FRESH", 0.0)
    with client_of(ServedCollections([], [home])) as client:
        assert client.get("/c/vectors/api/v1/collection").status_code == 200
        (home / "vectors").rename(home / "Vectors.manifind")
        assert list(listed(client)) == ["fotos-2019", "vectors"]
        assert client.get("/c/vectors/api/v1/collection").json()["name"] == "Vectors.manifind"
        shutil.rmtree(home / "Vectors.manifind")
        assert list(listed(client)) == ["fotos-2019"]
        answer = client.get("/c/vectors/api/v1/collection")
        assert answer.status_code == 404
        assert "'vectors'" in answer.json()["error"]


def test_of_many_only_the_last_ones_stay_open_and_one_that_is_closed_is_opened_again(home, monkeypatch):
    monkeypatch.setattr(several, "_MOST_OPEN", 1)
    collections = ServedCollections([], [home])
    with client_of(collections) as client:
        for _ in range(2):
            for name in ("vectors", "fotos-2019"):
                assert client.get(f"/c/{name}/api/v1/items").status_code == 200
                collections.enter_open(name)  # somebody is still at it
                collections.leave(collections.entry(name))
            collections._close_idle()
            assert [entry.name for entry in collections.entries() if entry.service] == ["fotos-2019"]
        used = collections.enter_open("fotos-2019")
        client.get("/c/vectors/api/v1/items")
        collections._close_idle()
        assert {entry.name for entry in collections.entries() if entry.service} == {"fotos-2019", "vectors"}
        collections.leave(used)


def test_a_job_of_one_collection_is_not_found_at_another_and_the_start_page_has_all(home):
    with client_of(ServedCollections([], [home]), can_edit=True) as client:
        asked = {"items": [{"vector": [1.0] * 6}]}
        job = client.post("/c/vectors/api/v1/items", json=asked).json()
        assert finished(client, job, "/c/vectors")["state"] == "done"
        assert client.get(f"/c/fotos-2019{API}/jobs/{job['id']}").status_code == 404
        assert client.get(f"/c/fotos-2019{API}/jobs").json() == {"jobs": []}
        (of_all,) = client.get(f"{API}/jobs").json()["jobs"]
        assert (of_all["id"], of_all["about"], of_all["state"]) == (job["id"], "vectors", "done")
        assert client.get(f"{API}/jobs/{job['id']}").json() == of_all


def test_two_collections_can_wait_for_a_refit_each_and_share_the_queue():
    all_jobs, block = Jobs(), []
    first, second = all_jobs.of("a"), all_jobs.of("b")
    running = all_jobs.start("refit", lambda _: [time.sleep(0.001) for _ in iter(lambda: bool(block), True)] and None)
    waiting = [first.start("refit", lambda _: None), second.start("refit", lambda _: None)]
    assert waiting[0].id != waiting[1].id
    assert first.start("refit", lambda _: None).id == waiting[0].id
    with pytest.raises(RefusedError, match="no such job"):
        second.get(waiting[0].id)
    assert [job.id for job in all_jobs.listed()] == [running.id, waiting[0].id, waiting[1].id]
    first.close()
    assert not all_jobs.closed.is_set()
    block.append(1)
    while not waiting[1].is_over:
        time.sleep(0.001)
    assert all(job.state == "done" for job in waiting)
    all_jobs.close()


PATHS = [
    "collections", "folders", "jobs", "jobs/0123", "thumbnail?collection=vectors&id=1", "openapi.json", "nowhere",
]  # fmt: skip


def test_without_the_token_only_the_page_itself_is_shown(made):
    collections = ServedCollections([], [made / "all"], index_below=[made / "photos"])
    with client_of(collections, can_edit=True, token=TOKEN) as client:
        paths = [f"{API}/{path}" for path in PATHS]
        inside = ["collection", "jobs", "folders", "index", "items", "exports/x", "original?id=1", "x/static/y"]
        paths += [f"/c/{name}/api/v1/{path}" for name in ("vectors", "none") for path in inside]
        paths += ["/metrics", "/nowhere", "/c/vectors/nowhere", "/c/vectors/static", "/c//static/main.js"]
        for path in paths:
            assert client.get(path).status_code == 401, path
            assert client.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401, path
            assert client.get(path, headers=OWN).status_code != 401, path
        for path in (f"{API}/collections", "/c/vectors/api/v1/index", "/c/vectors/api/v1/refit"):
            assert client.post(path, json={}).status_code == 401, path
        for path in ("/", "/api", "/c/vectors/", "/c/none/", "/static/dom.js", "/c/none/static/dom.js", "/healthz"):
            assert client.get(path).status_code == 200, path
        for path in ("/static/../api/v1/collections", "/c/vectors/static/../api/v1/items", "/static/%2e%2e/app.py"):
            assert client.get(path).status_code in (401, 404), path


@pytest.mark.parametrize("passed_on", ["", "/archive"])
def test_below_a_path_of_a_proxy_everything_works_whether_that_is_passed_on_or_not(made, passed_on):
    rules = {"root_path": "/archive", "token": TOKEN}
    with client_of(ServedCollections([], [made / "all"]), **rules) as client:
        at = f"{HOST}{passed_on}"
        assert client.get(f"{at}/").status_code == 200
        assert client.get(f"{at}/c/vectors/").status_code == 200
        assert client.get(f"{at}/c/vectors", follow_redirects=False).headers["location"] == "vectors/"
        assert client.get(f"{at}/c/vectors/static/dom.js").status_code == 200
        assert client.get(f"{at}/c/vectors/api/v1/collection").status_code == 401
        assert client.get(f"{at}/c/vectors/api/v1/collection", headers=OWN).json()["items"] == 40
        described = client.get(f"{at}/c/vectors/api/v1/openapi.json", headers=OWN).json()
        assert described["servers"] == [{"url": "/archive/c/vectors"}]
        assert client.get(f"{at}/api/v1/openapi.json", headers=OWN).json()["servers"] == [{"url": "/archive"}]
        assert client.get(f"{at}/healthz").status_code == 200
        followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        assert client.get(f"{at}/c/vectors/", headers=followed).status_code == 200
        assert client.get(f"{at}/healthz", headers=followed).status_code == 403


SEGMENTS = st.sampled_from(
    ["", "c", "vectors", "api", "v1", "static", "..", "items", "collections", "healthz", "%2e%2e", "x"]
)


@pytest.mark.parametrize("root", ["", "/archive"])
def test_whatever_the_path_without_the_token_only_files_of_the_page_are_given(made, root):
    with client_of(ServedCollections([], [made / "all"]), token=TOKEN, root_path=root) as client:

        @settings(max_examples=150, deadline=None, derandomize=True)
        @given(st.lists(SEGMENTS, max_size=6), st.booleans())
        def holds(segments, is_passed_on):
            path = "/" + "/".join(segments)
            answer = client.get(f"{HOST}{root if is_passed_on else ''}{path}")
            kind = answer.headers.get("content-type", "")
            assert answer.status_code in (200, 401, 404), path
            assert answer.status_code != 200 or kind.startswith(("text/html", "text/javascript")) or "healthz" in path

        holds()


def test_no_parameter_of_the_start_page_makes_a_fault(made, home):
    before = sorted(home.iterdir())
    with client_of(ServedCollections([], [home], index_below=[made / "photos"]), can_edit=True) as client:
        for trick in TRICKS:
            text = trick.encode("utf-8", "surrogatepass")
            for path in (f"jobs/{quote(text)}", f"thumbnail?collection=vectors&id={quote(text)}",
                         f"thumbnail?collection={quote(text)}&id=1", f"collections?x={quote(text)}"):  # fmt: skip
                assert client.get(f"{API}/{path}").status_code < 500, path
            assert client.get(f"/c/{quote(text)}/api/v1/collection").status_code in (404, 405, 200), trick
            body = json.dumps({"name": trick, "folder": trick})
            answer = client.post(f"{API}/collections", content=body, headers={"content-type": "application/json"})
            assert 400 <= answer.status_code < 500, trick
    assert sorted(home.iterdir()) == before


def test_the_description_of_the_start_page_is_true(made):
    collections = ServedCollections([], [made / "all"], index_below=[made / "photos"])
    app = make_app(collections, AccessRules(hosts=("testserver", "localhost", "127.0.0.1")))
    operations = [one.ok() for one in schemathesis.openapi.from_asgi(f"{API}/openapi.json", app).get_all_operations()]
    assert len(operations) >= 6
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        def answers(case):
            case.call_and_validate(checks=CHECKS)

        answers()
    collections.close()


def test_the_path_of_the_proxy_without_its_slash_leads_to_the_page(made):
    for root, location in (("/archive", "archive/"), ("/a/b", "b/")):
        with client_of(ServedCollections([], [made / "all"]), root_path=root) as client:
            answer = client.get(root, follow_redirects=False)
            assert (answer.status_code, answer.headers["location"]) == (307, location)
            assert client.get(f"{root}ive/").status_code == 404


def test_a_path_that_could_be_one_of_the_server_itself_is_refused():
    assert [check_root_path(text) for text in ("", "/", "/archive", "/archive/", "/a/b.c-d_e")] == [
        "", "", "/archive", "/archive", "/a/b.c-d_e",
    ]  # fmt: skip
    for text in (
        "archive",
        "//evil",
        "/a//b",
        "/a/../b",
        "/api",
        "/c",
        "/c/x",
        "/static/x",
        "/ä",
        "/a b",
        "/a?b",
        "/..",
    ):
        with pytest.raises(InputError, match="--root-path"):
            check_root_path(text)


def test_what_is_neither_a_collection_nor_a_folder_of_them_is_refused(made, tmp_path):
    home = made / "all"
    assert find_collections([home / "vectors", home / "vectors"], False) == ([home / "vectors"], [])
    assert find_collections([home, home / "vectors"], False) == ([home / "vectors"], [home])
    assert find_collections([tmp_path], True) == ([], [tmp_path])
    with pytest.raises(CollectionError, match="holds no collection"):
        find_collections([tmp_path], False)
    with pytest.raises(CollectionError, match="does not exist"):
        find_collections([home, tmp_path / "none"], True)


def test_names_in_addresses_are_plain_and_no_two_are_alike():
    taken = {}
    for directory in ("A b.manifind", "a-b", "../..", "…", "写真", "<b>", "x" * 300, "A/../b", "a\u202eb"):
        name = free_name(directory, taken)
        assert name not in taken
        assert not set(name) & set("/\\?#<>%\u202e ")
        assert 0 < len(name) <= 64
        taken[name] = None
    assert list(taken)[:5] == ["a-b", "a-b-2", "collection", "collection-2", "写真"]


NAMES = [
    "", " ", ".", "..", ".hidden", "../up", "a/b", "/etc", "a\\b", "a\0b", "a\nb", "\x1b[2J", "a\u202eb", "a\u200fb",
    "\ud800", "x" * 300, "ä" * 150,
]  # fmt: skip


@pytest.mark.long
def test_what_was_being_indexed_or_is_watched_goes_on_without_being_asked_for_and_stays_open(made, home, monkeypatch):
    monkeypatch.setattr(several, "_MOST_OPEN", 0)
    work = home / ".Fotos 2019.manifind.work"
    work.mkdir()
    (work / "indexing.json").write_text(json.dumps({"unfinished": str(made / "photos"), "watch": True}))
    collections = ServedCollections([], [home], index_below=[made / "photos"])
    with client_of(collections, can_edit=True) as client:
        (job,) = client.get(f"{API}/jobs").json()["jobs"]
        assert (job["kind"], job["about"]) == ("index", "fotos-2019")
        state = finished(client, job)
        assert (state["state"], state["result"]["unchanged"]) == ("done", 20)
        client.get("/c/vectors/api/v1/items")
        collections._close_idle()
        assert [entry.name for entry in collections.entries() if entry.service] == ["fotos-2019"]
        assert client.get("/c/fotos-2019/api/v1/index").json()["watched"]
    assert json.loads((work / "indexing.json").read_text())["unfinished"] is None


def test_the_program_says_what_it_serves_and_what_is_wrong_with_any_of_it(home):
    (segment,) = (home / "vectors" / "segments").glob("features-*.npy")
    segment.unlink()
    (home / "vectors" / "collection.sqlite").write_bytes(b"")
    command = [sys.executable, "-m", "manifind", "serve", home, "--port", "0", "--root-path", "/archive/"]
    environment = {**os.environ, "COLUMNS": "300"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            problem, served = process.stdout.readline(), process.stdout.readline()
            assert "vectors cannot be opened: " in problem
            assert served.startswith("2 collections, 20 items at http://127.0.0.1:")
            address = served.rpartition(" at ")[2].strip()
            assert address.endswith("/archive/")
            with urllib.request.urlopen(f"{address}api/v1/collections", timeout=60) as answer:
                assert len(json.load(answer)["collections"]) == 2
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--index-below", "."], "--allow-edit"),
        (["--index-below", "none", "--allow-edit"], "is not a folder"),
        (["--root-path", "archive"], "--root-path"),
        (["--images", "none"], "is not a folder"),
    ],
)
def test_mistakes_are_told_before_anything_is_served(made, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app_of_verbs, ["serve", str(made / "all"), *arguments, "--port", "0"])
    assert isinstance(found.exception, InputError)
    assert words in str(found.exception)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_elsewhere_or_cannot_be_seen_makes_no_collection(made, home, name):
    before = sorted(home.iterdir())
    with pytest.raises(RefusedError, match="the name"):
        checked_name(name)
    with client_of(ServedCollections([], [home], index_below=[made / "photos"]), can_edit=True) as client:
        body = f'{{"name": {ascii(name)!r}}}' if name == "\ud800" else None
        asked = {"content": body} if body else {"json": {"name": name, "folder": str(made / "photos")}}
        assert (
            client.post(f"{API}/collections", headers={"content-type": "application/json"}, **asked).status_code < 500
        )
    assert sorted(home.iterdir()) == before


def test_a_collection_is_made_of_a_folder_and_appears_on_the_start_page(made, home, small_fits):
    collections = ServedCollections([], [home], extractor="pixels", index_below=[made / "photos"])
    with client_of(collections, can_edit=True) as client:
        assert client.get(f"{API}/collections").json()["can_make"]
        folders = client.get(f"{API}/folders").json()
        assert folders["is_whole"]
        assert [(one["name"], one["pictures"]) for one in folders["folders"]] == [
            ("photos", 20), ("photos/north", 10), ("photos/south", 10),
        ]  # fmt: skip
        new = {"name": "  North & <b>South</b> ", "folder": folders["folders"][0]["path"]}
        answer = client.post(f"{API}/collections", json={**new, "name": "VECTORS"})
        assert answer.status_code == 409
        assert "already" in answer.json()["error"]
        job = client.post(f"{API}/collections", json={**new, "name": "North & South"})
        assert job.status_code == 202, job.text
        state = finished(client, job.json())
        assert (state["state"], state["error"]) == ("done", "")
        assert state["result"]["added"] == 20
        assert state["result"]["address"] == "c/north-south/"
        assert listed(client)["north-south"]["items"] == 20
        assert client.get("/c/north-south/api/v1/collection").json()["name"] == "North & South"
        assert not [path for path in home.iterdir() if path.name.endswith(".work")]
        job = client.post(f"{API}/collections", json={**new, "name": "again", "folder": str(made / "all")})
        assert job.status_code == 403
        assert "is not below" in job.json()["error"]


def test_a_folder_of_too_few_pictures_makes_no_collection_and_says_why(tmp_path):
    paint(tmp_path / "photos" / "one.png", 1)
    (tmp_path / "all").mkdir()
    with client_of(
        ServedCollections([], [tmp_path / "all"], "pixels", index_below=[tmp_path / "photos"]), can_edit=True
    ) as client:
        assert listed(client) == {}
        job = client.post(f"{API}/collections", json={"name": "few", "folder": str(tmp_path / "photos")}).json()
        state = finished(client, job)
        assert state["state"] == "failed"
        assert "1 picture" in state["error"]
        assert listed(client) == {}
    assert not (tmp_path / "all" / "few").exists()


def test_without_leave_nothing_is_made_or_told_of_folders(made, home):
    new = {"name": "new", "folder": str(made / "photos")}
    with client_of(ServedCollections([], [home], index_below=[made / "photos"])) as client:
        assert not client.get(f"{API}/collections").json()["can_make"]
        assert client.post(f"{API}/collections", json=new).status_code == 403
        assert client.get(f"{API}/folders").status_code == 403
    with client_of(ServedCollections([home / "vectors"], index_below=[made / "photos"]), can_edit=True) as client:
        assert client.post(f"{API}/collections", json=new).status_code == 409
    with client_of(ServedCollections([], [home]), can_edit=True) as client:
        assert client.post(f"{API}/collections", json=new).status_code == 409
        assert client.get(f"{API}/folders").json() == {"folders": [], "is_whole": True}


def test_a_collection_that_was_being_made_when_the_server_ended_is_made_by_the_next_one(home, tmp_path, small_fits):
    paint_many(tmp_path / "photos")
    below = [tmp_path / "photos"]
    several_ = ServedCollections([], [home], "pixels", index_below=below)
    for name, folder in (("begun", below[0]), ("elsewhere", tmp_path)):
        work = home / f".{name}.work"
        work.mkdir()
        (work / "indexing.json").write_text(f'{{"unfinished": "{folder}"}}')
    with client_of(several_, can_edit=True) as client:
        (job,) = client.get(f"{API}/jobs").json()["jobs"]
        assert finished(client, job)["state"] == "done"
        assert "begun" in listed(client)
        assert "elsewhere" not in listed(client)
    assert len(manifind.load(home / "begun")) == 20
