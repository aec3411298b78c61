"""Exports of selected items: a table, paths, pictures, a collection; and originals, as they were indexed or not."""

import csv
import io
import zipfile

import pytest
from starlette.testclient import TestClient

import manifind
from server.made import HOST, app_of, make_pictures, make_service, make_vectors
from server.test_api import API, ask, finished


def export(client, kind, ids, state="done"):
    answer = client.post(f"{API}/exports", json={"kind": kind, "ids": ids})
    assert answer.status_code == 202, answer.text
    job = finished(client, answer.json())
    assert job["state"] == state, job
    if state == "failed":
        return job
    found = client.get(f"{API}/exports/{job['result']['key']}")
    assert found.headers["content-disposition"] == f"attachment; filename*=UTF-8''{job['result']['name']}"
    assert found.headers["content-type"] == "application/octet-stream"
    assert len(found.content) == job["result"]["bytes"]
    return found.content


@pytest.fixture(scope="module")
def ids(pictures):
    return [item["id"] for item in ask(pictures, "items")["items"]]


def test_a_table_has_the_items_in_the_order_of_the_selection_with_all_fields(vectors):
    rows = list(csv.reader(io.StringIO(export(vectors, "csv", ["7", "3", "7"]).decode())))
    assert rows == [["id", "year", "name"], ["7", "1907", "<b>item 7</b>"], ["3", "1903", "<b>item 3</b>"]]


def test_no_cell_is_a_formula_and_lists_are_json(tmp_path):
    collection, _ = make_vectors(tmp_path / "c")
    fields = {"=name": '=HYPERLINK("http://x")', "tags": ["a", "+b"], "year": -5, "note": "@x", "sum": "-1+2"}
    collection.update([1], metadata=[fields])
    with TestClient(app_of(make_service(tmp_path / "c", tmp_path)), base_url=HOST) as client:
        (row,) = csv.DictReader(io.StringIO(export(client, "csv", ["1"]).decode()))
    assert row["'=name"] == '\'=HYPERLINK("http://x")'
    assert (row["tags"], row["year"], row["note"], row["sum"]) == ('["a", "+b"]', "-5", "'@x", "'-1+2")


def test_paths_are_those_of_the_files(pictures, ids, folder):
    paths = export(pictures, "paths", ids[:3]).decode().splitlines()
    assert paths == [str((folder / "photos" / id_).resolve()) for id_ in ids[:3]]


def test_an_archive_holds_the_pictures_byte_for_byte(pictures, ids, folder):
    with zipfile.ZipFile(io.BytesIO(export(pictures, "pictures", ids[:5]))) as archive:
        assert archive.namelist() == ids[:5]
        assert archive.testzip() is None
        for name in ids[:5]:
            assert archive.read(name) == (folder / "photos" / name).read_bytes()


def test_a_collection_of_the_selection_answers_and_can_be_changed(pictures, ids, tmp_path):
    with zipfile.ZipFile(io.BytesIO(export(pictures, "collection", ids[4:14]))) as archive:
        archive.extractall(tmp_path)
    collection = manifind.load(tmp_path / "selection.manifind", verify=True)
    assert collection.ids.tolist() == ids[4:14]
    assert collection.search_ids([ids[5]], 1).ids.tolist() == [[ids[5]]]
    assert collection.metadata([ids[6]])[0]["path"] == ids[6]
    collection.remove([ids[4]])
    manifind.refit(collection)


@pytest.mark.parametrize(("kind", "words"), [("paths", "none of these items"), ("pictures", "none of these items")])
def test_what_vectors_do_not_have_is_said_in_words(vectors, kind, words):
    assert words in export(vectors, kind, ["1"], "failed")["error"]


def test_two_items_are_too_few_for_a_collection(vectors):
    job = export(vectors, "collection", ["1", "2"], "failed")
    assert "a collection of 2 items; expected at least 3" in job["error"]


def test_a_file_that_has_changed_is_neither_packed_nor_handed_out(tmp_path):
    make_pictures(tmp_path / "c", tmp_path / "photos")
    changed = tmp_path / "photos" / "north" / "01.png"
    with TestClient(app_of(make_service(tmp_path / "c", tmp_path)), base_url=HOST) as client:
        assert client.get(f"{API}/original", params={"id": "north/01.png"}).content == changed.read_bytes()
        changed.write_bytes(b"secret")
        assert client.get(f"{API}/original", params={"id": "north/01.png"}).status_code == 404
        assert "'01.png' has changed or gone" in export(client, "pictures", ["north/01.png"], "failed")["error"]
        changed.unlink()
        changed.symlink_to("/etc/hostname")
        assert client.get(f"{API}/original", params={"id": "north/01.png"}).status_code == 404


def test_an_original_comes_as_a_file_to_save_and_not_as_a_page(pictures, ids):
    answer = pictures.get(f"{API}/original", params={"id": ids[0]})
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_part_of_an_export_can_be_asked_for(vectors):
    job = finished(vectors, vectors.post(f"{API}/exports", json={"kind": "csv", "ids": ["1", "2"]}).json())
    path = f"{API}/exports/{job['result']['key']}"
    whole = vectors.get(path).content
    assert vectors.get(path, headers={"range": "bytes=2-5"}).content == whole[2:6]


def test_exports_are_found_by_their_key_alone_and_old_ones_go(vectors):
    assert vectors.get(f"{API}/exports/nothing").status_code == 404
    assert vectors.get(f"{API}/exports/..%2F..%2Fetc%2Fpasswd").status_code == 404
    keys = []
    for _ in range(10):
        job = finished(vectors, vectors.post(f"{API}/exports", json={"kind": "csv", "ids": ["1"]}).json())
        keys.append(job["result"]["key"])
    states = [vectors.get(f"{API}/exports/{key}").status_code for key in keys]
    assert states == [404] * 2 + [200] * 8


def test_names_in_an_archive_lead_nowhere_else(tmp_path):
    from manifind.server.exports import _name_inside

    taken = set()
    given = ["../../a.png", "/etc/a.png", "a.png", "A.PNG", "b\\..\\c\n.png", "..", ""]
    found = [_name_inside(text, taken) for text in given]
    assert found == ["a.png", "etc/a.png", "a (2).png", "A (3).PNG", "b/c_.png", "picture", "picture (2)"]
