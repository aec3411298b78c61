"""manifind data: list, fetch and check from one end to the other, against a server on this machine."""

import hashlib
import io
import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from typer.testing import CliRunner

from manifind.cli.data import data_app
from manifind.datasets import catalogue
from manifind.datasets import download as fetch
from manifind.datasets.catalogue import CATALOGUE, DataSet, RemoteFile, licence_text
from manifind.datasets.download import RetryPolicy
from manifind.errors import DataError, InputError, ManifindError

BODIES = {"/a.mat": b"descriptors", "/gnd.mat": b"ground truth"}


@pytest.fixture
def data(monkeypatch, tmp_path):
    """Calls `manifind data ...` with `tmp_path` for a folder; an error of ours is handed on as it is."""
    monkeypatch.setenv("MANIFIND_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "300")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "*")

    def run(*arguments):
        result = CliRunner().invoke(data_app, [str(argument) for argument in arguments])
        if isinstance(result.exception, ManifindError):
            raise result.exception
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


@pytest.fixture
def server():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = BODIES.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *arguments):
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def tiny(server, monkeypatch):
    """A set of the catalogue that comes from the server; one of its parts is not available."""
    pytest.importorskip("pooch")
    dataset = DataSet(
        name="tiny",
        title="a tiny set",
        items=3,
        queries=1,
        truth="lists",
        source="https://example.org/tiny",
        licence="none stated",
        obtain="ask a friend",
        files=(
            RemoteFile(f"{server}/a.mat", "a.mat", "descriptors"),
            RemoteFile(f"{server}/gnd.mat", "gnd.mat", "ground-truth", hashlib.sha256(b"ground truth").hexdigest()),
            RemoteFile(f"{server}/gone.tgz", "gone.tgz", "images", unpack_to="images"),
        ),
    )
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", dataset)
    monkeypatch.setattr(fetch.fetch, "__kwdefaults__", {**fetch.fetch.__kwdefaults__, "retries": RetryPolicy(1, 5, 0)})
    return dataset


def test_list_shows_every_set_with_its_terms_and_whether_it_is_here(data, tmp_path):
    shown = data("list").output
    assert f"data sets under {tmp_path}" in shown
    for dataset in CATALOGUE.values():
        assert f"│ {dataset.name} " in shown
        assert licence_text(dataset) in shown
    printed = {one["name"]: one for one in json.loads(data("list", "--json").output)}
    assert list(printed) == list(CATALOGUE)
    assert {name for name, one in printed.items() if one["here"]} == {"digits", "letters"}
    assert printed["oxford5k"]["items"] == 5063
    assert printed["oxford5k"]["default_parts"] == ["descriptors", "ground-truth"]
    assert printed["oxford5k"]["bytes"] is None
    assert printed["oxford105k"]["items_are_about"] is True


def test_list_works_where_no_folder_can_be_named(data, monkeypatch):
    monkeypatch.delenv("MANIFIND_DATA")
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    assert {one["here"] for one in json.loads(data("list", "--json").output)} == {None}
    assert "│ ? " in data("list").output


def test_fetch_gets_the_default_parts_and_check_is_content(data, tiny, tmp_path):
    shown = data("fetch", "tiny")
    assert shown.exit_code == 0
    assert (tmp_path / "tiny" / "a.mat").read_bytes() == b"descriptors"
    assert "look at it with: manifind data check tiny" in shown.output
    assert [one["outcome"] for one in json.loads(data("fetch", "tiny", "--json").stdout)] == ["present"] * 2
    checked = data("check", "tiny", "--json")
    assert checked.exit_code == 0
    printed = json.loads(checked.stdout)
    assert printed["usable"] is True
    assert {one["file"]: one["state"] for one in printed["files"]} == {
        "a.mat": "matches its first download",
        "gnd.mat": "matches what was published",
        "gone.tgz": "missing",
    }
    assert data("list", "--json").output.count('"here": true') == 3


def test_fetch_takes_a_part_and_a_folder(data, tiny, tmp_path):
    assert data("fetch", "tiny", "--part", "ground-truth", "--folder", tmp_path / "other").exit_code == 0
    assert [file.name for file in (tmp_path / "other" / "tiny").iterdir()] == ["gnd.mat"]
    with pytest.raises(DataError, match="404") as caught:
        data("fetch", "tiny", "--part", "images", "--part", "ground-truth")
    assert f"put it at {tmp_path / 'tiny' / 'gone.tgz'}; ask a friend" in caught.value.hint
    with pytest.raises(InputError, match="no part called 'sounds'"):
        data("fetch", "tiny", "--part", "sounds")


def test_check_fails_where_files_are_missing_and_tells_what_to_get(data, tiny, tmp_path):
    checked = data("check", "tiny")
    assert checked.exit_code == 1
    place = tmp_path / "tiny" / "a.mat"
    assert f"a.mat: get a.mat from https://example.org/tiny and put it at {place}; ask a friend" in checked.output
    assert "gone.tgz: get" not in checked.output, "nobody needs it"
    assert "`manifind data fetch tiny` tries to get what is missing" in checked.output
    printed = json.loads(data("check", "tiny", "--json").stdout)
    assert printed["usable"] is False
    assert printed["contents"] == []


def test_check_fails_where_bytes_differ(data, tiny, tmp_path):
    data("fetch", "tiny")
    (tmp_path / "tiny" / "gnd.mat").write_bytes(b"other")
    checked = data("check", "tiny")
    assert checked.exit_code == 1
    assert f"has the SHA-256 {hashlib.sha256(b'other').hexdigest()}, expected" in checked.output


@pytest.mark.parametrize("name", ["digits", "letters"])
def test_sets_that_need_no_files_say_so(data, name, tmp_path):
    fetched = data("fetch", name)
    assert fetched.exit_code == 0
    assert f"{name} needs no files" in fetched.output
    assert json.loads(data("fetch", name, "--json").stdout) == []
    checked = data("check", name, "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.stdout)["contents"][0]["items"] == CATALOGUE[name].items
    assert f"{name} has no files to check" in data("check", name).output
    assert list(tmp_path.iterdir()) == []


def test_forty_archives_are_not_fetched_unasked(data):
    with pytest.raises(InputError, match="no part that is fetched unless it is asked for") as caught:
        data("fetch", "distractors100k")
    assert "--part images" in caught.value.hint


@pytest.mark.parametrize("verb", ["fetch", "check"])
def test_unknown_names_are_refused_with_the_nearest(data, verb):
    with pytest.raises(InputError, match="no data set called 'oxfrod5k'") as caught:
        data(verb, "oxfrod5k")
    assert "oxford5k" in caught.value.hint


@pytest.mark.parametrize("arguments", [["fetch"], ["check"], ["list", "--nonsense"], ["nonsense"]])
def test_wrong_usage_ends_with_two(data, arguments):
    assert data(*arguments).exit_code == 2


def test_check_shows_what_a_labelled_set_holds_in_whichever_form_it_is_there(data, tmp_path):
    (tmp_path / "orl").mkdir()
    np.savez(tmp_path / "orl" / "faces.npz", images=np.ones((3, 2, 2), dtype=np.uint8), labels=[1, 1, 2])
    checked = data("check", "orl")
    assert checked.exit_code == 0
    assert f"here in another form: {tmp_path / 'orl' / 'faces.npz'}" in checked.output
    (contents,) = json.loads(data("check", "orl", "--json").stdout)["contents"]
    scores = contents.pop("knn")
    assert contents == {
        "name": "faces: images",
        "items": 3,
        "dimension": 4,
        "type": "uint8",
        "classes": 2,
        "smallest_class": 1,
        "largest_class": 2,
    }
    assert [one["preprocess"] for one in scores if one["measure"] == "mAP"] == ["raw", "unit rows", "centred"]
    assert {one["measure"] for one in scores} >= {"bullseye@15 counted", "bullseye@15 left-out"}


def test_check_shows_what_knn_scores_on_labelled_data_with_its_rule(data, tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, X=np.array([[0.0], [1.0], [10.0], [12.0]]), labels=["a", "a", "b", "b"])
    (contents,) = json.loads(data("check", path, "--window", 2, "--json").stdout)["contents"]
    raw = {one["measure"]: one for one in contents["knn"] if one["preprocess"] == "raw"}
    assert raw["mAP"]["value"] == raw["bullseye@2 counted"]["value"] == 100
    assert "the query left out" in raw["mAP"]["rule"]
    shown = data("check", path).output
    assert "plain k-NN on mine: X" in shown
    assert "rule 1: same label is right" in shown


def test_check_says_where_no_two_items_share_a_label(data, tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, X=np.eye(3), labels=[0, 1, 2])
    assert "nothing to find" in data("check", path).output


def test_check_scores_vectors_with_published_lists_in_one_folder(data, tmp_path):
    lists = {"gnd": [{"ok": [0, 1], "junk": []}], "imlist": ["a", "b", "c"], "qimlist": ["a"]}
    (tmp_path / "gnd_town.json").write_text(json.dumps(lists))
    np.savez(tmp_path / "vectors.npz", vectors=[[1.0, 0], [0, 1], [1, 0.1]], names=["a", "b", "c"])
    (contents,) = json.loads(data("check", tmp_path, "--json").stdout)["contents"]
    official, landmarks = [one for one in contents["knn"] if one["measure"] == "mAP"]
    assert official["value"] == pytest.approx(100 * (1 + (1 / 2 + 2 / 3) / 2) / 2)
    assert landmarks["n_queries"] == 2
    assert "every right image" in landmarks["rule"]


def test_an_archive_of_pictures_is_fetched_unpacked_and_read(data, server, monkeypatch, tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("pooch")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("obj1__0", "obj1__1", "obj2__0"):
            picture = io.BytesIO()
            image.new("L", (6, 5), 7).save(picture, "PNG")
            archive.writestr(f"coil-20-proc/{name}.png", picture.getvalue())
    monkeypatch.setitem(BODIES, "/coil.zip", stream.getvalue())
    coil = CATALOGUE["coil20"]
    file = RemoteFile(f"{server}/coil.zip", "coil-20-proc.zip", "images", unpack_to="pictures")
    local = DataSet(**{**coil.__dict__, "files": (file,)})
    monkeypatch.setitem(catalogue.CATALOGUE, "coil20", local)
    assert data("fetch", "coil20").exit_code == 0
    checked = json.loads(data("check", "coil20", "--json").stdout)
    assert [one["state"] for one in checked["files"]] == ["matches its first download"]
    assert (checked["contents"][0]["items"], checked["contents"][0]["dimension"]) == (3, 30)


def test_check_takes_a_path_to_data_of_your_own(data, tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, X=np.ones((2, 3)), labels=["a", "b"])
    checked = data("check", path, "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.stdout)["contents"][0]["name"] == "mine: X"
    assert "mine: X" in data("check", path).output
    for missing in (tmp_path / "nowhere", "nowhere.npz"):
        with pytest.raises(ManifindError, match="does not exist"):
            data("check", missing)


def test_a_name_of_the_catalogue_comes_before_a_folder_of_that_name(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here" / "orl").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    np.savez("orl/a.npz", X=np.ones((2, 3)), labels=[0, 1])
    assert data("check", "orl").exit_code == 1
    assert data("check", "./orl").exit_code == 0
