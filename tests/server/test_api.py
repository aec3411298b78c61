"""The API says what the library says: by id, by vector, by picture; and nonsense is a 4xx with a way out."""

import hashlib
import io
import shutil
import time

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

import manifind
from collection.crafting import change_manifest, set_manifest
from images.painted import paint, paint_many
from manifind.model.index_folder import index_folder
from manifind.server.service import Service
from server.made import HOST, SMALL, app_of, make_pictures, make_service, make_vectors

API = "/api/v1"


def ask(client, path, status=200, **parameters):
    answer = client.get(f"{API}/{path}", params=parameters)
    assert answer.status_code == status, answer.text
    return answer.json()


def finished(client, job):
    for _ in range(600):
        state = ask(client, f"jobs/{job['id']}")
        if state["state"] in ("done", "failed"):
            return state
        time.sleep(0.1)
    raise AssertionError(state)


def jpeg(seed=1):
    stream = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, size=(6, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((64, 48)).save(stream, "JPEG", quality=95)
    return stream.getvalue()


def test_a_search_by_id_is_that_of_the_collection(vectors, folder):
    collection = manifind.load(folder / "vectors")
    found = ask(vectors, "search", id=7, k=5)
    expected = collection.search_ids([7], 5)
    assert [one["id"] for one in found["results"]] == [str(id_) for id_ in expected.ids[0]]
    np.testing.assert_allclose([one["score"] for one in found["results"]], expected.scores[0], atol=1e-4)
    assert [one["rank"] for one in found["results"]] == [1, 2, 3, 4, 5]
    assert found["items"] == 40
    assert found["more"]


def test_pages_of_an_answer_join_to_the_whole(vectors):
    whole = ask(vectors, "search", id=3, k=40)
    parts = [ask(vectors, "search", id=3, k=15, offset=offset) for offset in (0, 15, 30)]
    assert [one for part in parts for one in part["results"]] == whole["results"]
    assert [part["more"] for part in parts] == [True, True, False]
    assert not whole["more"]


def test_plain_neighbours_are_those_of_the_descriptors(vectors, folder):
    _, X = make_vectors(folder / "again")
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = unit @ unit[11]
    found = ask(vectors, "search", id=11, k=40, method="knn")["results"]
    assert [int(one["id"]) for one in found] == np.argsort(-cosines, kind="stable").tolist()
    np.testing.assert_allclose([one["score"] for one in found], np.sort(cosines)[::-1], atol=2e-4)


def test_a_search_by_vector_is_that_of_the_collection(vectors, folder):
    query = [0.5, 1, -2, 0.25, 3, 1]
    answer = vectors.post(f"{API}/search/vector", json={"vector": query, "k": 4})
    expected = manifind.load(folder / "vectors").search([query], 4)
    assert [one["id"] for one in answer.json()["results"]] == [str(id_) for id_ in expected.ids[0]]


def test_a_filter_leaves_only_what_satisfies_it(vectors):
    found = ask(vectors, "search", id=7, k=40, where="year < 1910")
    assert sorted(int(one["id"]) for one in found["results"]) == list(range(10))
    assert ask(vectors, "search", id=7, method="knn", where="year < 1910")["results"][0]["id"] == "7"
    assert ask(vectors, "search", id=7, where="year > 3000")["results"] == []
    assert ask(vectors, "search", id=7, where="year > 3000", method="knn")["results"] == []
    assert "where" in ask(vectors, "search", 400, id=7, where="year >")["error"]


def test_a_comparison_tells_each_result_its_rank_in_the_other(vectors):
    found = ask(vectors, "compare", id=5, k=10)
    alone = {method: ask(vectors, "search", id=5, k=40, method=method)["results"] for method in ("gradnet", "knn")}
    for method, other in (("gradnet", "knn"), ("knn", "gradnet")):
        ranks = {one["id"]: one["rank"] for one in alone[other]}
        assert [one["id"] for one in found[method]] == [one["id"] for one in alone[method][:10]]
        assert [one["other_rank"] for one in found[method]] == [ranks[one["id"]] for one in found[method]]


def test_why_is_a_path_from_the_query_to_the_result(vectors):
    far = ask(vectors, "search", id=2, k=12)["results"][-1]["id"]
    found = ask(vectors, "why", id=2, result=far)
    ids = [step["id"] for step in found["path"]]
    assert ids[0] == "2"
    assert ids[-1] == far
    assert len(set(ids)) == len(ids)
    assert 0 < found["strength"] <= 1


def test_items_come_in_pages_by_name_and_by_filter(vectors):
    assert ask(vectors, "items", limit=7)["total"] == 40
    assert [one["id"] for one in ask(vectors, "items", offset=38)["items"]] == ["38", "39"]
    assert [one["id"] for one in ask(vectors, "items", name="39")["items"]] == ["39"]
    assert ask(vectors, "items", where="year = 1903")["items"][0]["fields"]["name"] == "<b>item 3</b>"
    assert ask(vectors, "items", offset=10**6)["items"] == []
    assert ask(vectors, "item", id="3")["fields"]["year"] == 1903


def test_the_collection_tells_its_items_graph_training_and_verdict(vectors, pictures):
    facts = ask(vectors, "collection")
    assert facts["items"] == 40
    assert not facts["pictures"]
    assert len(facts["loss"]) == facts["info"]["steps"]
    assert facts["edge_weights"] == sorted(facts["edge_weights"], reverse=True)
    assert "neighbours" in facts["verdict"]
    assert "Nothing has come or gone" in facts["drift"]
    assert ask(pictures, "collection")["pictures"]


@pytest.mark.parametrize(
    ("path", "parameters", "status"),
    [
        ("search", {}, 422),
        ("search", {"id": 1, "upload": "a"}, 422),
        ("search", {"id": 99}, 404),
        ("search", {"id": "x"}, 404),
        ("search", {"id": "9" * 4000}, 404),
        ("search", {"id": "-0"}, 200),
        ("search", {"id": 1, "k": 0}, 422),
        ("search", {"id": 1, "k": 10**9}, 422),
        ("search", {"id": 1, "offset": -1}, 422),
        ("search", {"id": 1, "method": "magic"}, 422),
        ("search", {"upload": "f" * 32}, 404),
        ("why", {"id": 1}, 422),
        ("why", {"id": 1, "result": "../../etc/passwd"}, 404),
        ("thumbnail", {}, 422),
        ("thumbnail", {"id": 1}, 404),
        ("thumbnail", {"upload": "none"}, 404),
        ("picture", {"id": 1}, 404),
        ("item", {"id": "one"}, 404),
        ("map", {"space": "outer"}, 422),
        ("jobs/none", {}, 404),
        ("nowhere", {}, 404),
    ],
)
def test_nonsense_has_a_status_of_its_own_and_says_why(vectors, path, parameters, status):
    answer = vectors.get(f"{API}/{path}", params=parameters)
    assert answer.status_code == status
    if status != 200:
        assert answer.json()["error"]
        assert set(answer.json()) == {"error", "hint"}


@pytest.mark.parametrize(
    ("vector", "status"),
    [([1.0], 400), ([], 422), ("abc", 422), ([1.0] * 70_000, 422), ([float("1e400")] * 6, 400), ([1.0] * 6, 200)],
    ids=["short", "empty", "text", "long", "infinite", "right"],
)
def test_a_vector_of_the_wrong_kind_is_refused(vectors, vector, status):
    body = f'{{"vector": {vector}}}'.replace("'", '"').replace("inf", "1e999")
    answer = vectors.post(f"{API}/search/vector", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text


def test_a_picture_that_is_in_the_collection_finds_itself(pictures, folder):
    data = (folder / "photos" / "north" / "01.png").read_bytes()
    answer = pictures.post(f"{API}/search/picture", content=data, headers={"content-type": "image/png"})
    assert answer.status_code == 200
    found = answer.json()
    assert found["results"][0]["id"] == "north/01.png"
    again = ask(pictures, "search", upload=found["upload"])
    assert again["results"] == found["results"]
    assert ask(pictures, "compare", upload=found["upload"])["knn"][0]["id"] == "north/01.png"
    path = ask(pictures, "why", upload=found["upload"], result="south/02.png")["path"]
    assert path[0]["id"] is None
    assert path[-1]["id"] == "south/02.png"
    shown = pictures.get(f"{API}/thumbnail", params={"upload": found["upload"]})
    assert Image.open(io.BytesIO(shown.content)).size == (64, 48)


@pytest.mark.parametrize(
    ("data", "kind", "status"),
    [
        (b"", "image/png", 400),
        (b"hello", "image/png", 415),
        (b"hello", "text/html", 415),
        (b"hello", "application/json", 415),
        (jpeg()[:200], "image/jpeg", 415),
        (jpeg(), "application/octet-stream", 200),
    ],
)
def test_an_upload_that_is_no_picture_is_refused(pictures, data, kind, status):
    answer = pictures.post(f"{API}/search/picture", content=data, headers={"content-type": kind})
    assert answer.status_code == status, answer.text


def test_pictures_are_shown_small_and_large(pictures):
    for path in ("thumbnail", "picture"):
        answer = pictures.get(f"{API}/{path}", params={"id": "south/02.png"})
        assert answer.headers["content-type"] == "image/jpeg"
        assert Image.open(io.BytesIO(answer.content)).size == (64, 48)
        assert "max-age" in answer.headers["cache-control"]


def test_a_picture_whose_file_is_gone_is_missing_and_the_rest_works(editable, tmp_path):
    (tmp_path / "photos" / "north" / "01.png").unlink()
    assert ask(editable, "thumbnail", 404, id="north/01.png")["error"]
    assert ask(editable, "search", id="north/01.png")["results"][0]["id"] == "north/01.png"


def forge(collection, id_, **fields):
    """Give an item other fields, as somebody who means harm would."""
    manifind.load(collection).change(described={id_: fields}, own_fields=True)
    time.sleep(0.6)  # until the server has noticed


@pytest.mark.parametrize("path", ["../secret.png", "/etc/passwd", "", "..", "a/../../secret.png"])
def test_a_path_in_the_metadata_leads_nowhere_outside_the_folder(editable, tmp_path, path):
    Image.new("RGB", (9, 9)).save(tmp_path / "secret.png")
    digest = hashlib.sha256((tmp_path / "secret.png").read_bytes()).hexdigest()
    forge(tmp_path / "pictures", "north/01.png", path=path, sha256=digest)
    for kind in ("thumbnail", "picture"):
        assert editable.get(f"{API}/{kind}", params={"id": "north/01.png"}).status_code == 404


@pytest.mark.parametrize("kind", ["thumbnail", "picture"])
@pytest.mark.parametrize("swap", ["another picture", "a link to another", "a link elsewhere to the same", "a folder"])
def test_a_file_that_is_not_what_was_indexed_is_not_shown(editable, tmp_path, kind, swap):
    file = tmp_path / "photos" / "north" / "01.png"
    assert editable.get(f"{API}/{kind}", params={"id": "north/01.png"}).status_code == 200
    if swap == "a link elsewhere to the same":
        shutil.copy(file, tmp_path / "secret.png")
    else:
        paint(tmp_path / "secret.png", 999)
    file.unlink()
    if swap == "a folder":
        file.mkdir()
    elif swap == "another picture":
        (tmp_path / "secret.png").rename(file)
    else:
        file.symlink_to(tmp_path / "secret.png")
    assert editable.get(f"{API}/{kind}", params={"id": "north/01.png"}).status_code == 404


def test_the_folder_that_a_collection_names_is_not_believed(tmp_path):
    """Neither for showing pictures nor for putting uploads there."""
    make_pictures(tmp_path / "pictures", tmp_path / "photos")
    secret = tmp_path / "private"
    shutil.copytree(tmp_path / "photos", secret)
    shutil.rmtree(tmp_path / "photos")
    (tmp_path / "photos").mkdir()
    change_manifest(tmp_path / "pictures", "source", folder=str(secret))
    with TestClient(app_of(make_service(tmp_path / "pictures", tmp_path), True), base_url=HOST) as client:
        assert ask(client, "thumbnail", 404, id="north/01.png")["error"]
    set_manifest(tmp_path / "pictures", "collection", '"somebody else\'s"')
    service = make_service(tmp_path / "pictures", tmp_path)
    with TestClient(app_of(service, True), base_url=HOST) as client:
        assert ask(client, "thumbnail", 404, id="north/01.png")["error"]
        answer = client.post(f"{API}/pictures", content=jpeg(5), headers={"content-type": "image/jpeg"})
        assert answer.status_code == 409
        assert "--images" in answer.json()["hint"]
        assert len(list(secret.rglob("*"))) == 22
    service = Service(tmp_path / "pictures", cache=tmp_path / "cache", images=[secret])
    with TestClient(app_of(service), base_url=HOST) as client:
        assert client.get(f"{API}/thumbnail", params={"id": "north/01.png"}).status_code == 200


def test_pictures_behind_links_are_shown_where_both_folders_are_named(tmp_path):
    paint_many(tmp_path / "store")
    (tmp_path / "photos").mkdir()
    for file in (tmp_path / "store").rglob("*.png"):
        (tmp_path / "photos" / file.name).symlink_to(file)
    index_folder(tmp_path / "photos", tmp_path / "c", "pixels", SMALL)
    for folders, status in (((), 404), (("photos", "store"), 200)):
        images = [tmp_path / name for name in folders]
        service = Service(tmp_path / "c", cache=tmp_path / "cache", images=images)
        with TestClient(app_of(service), base_url=HOST) as client:
            assert client.get(f"{API}/thumbnail", params={"id": "01.png"}).status_code == status


def test_a_compressed_collection_answers_and_says_that_it_cannot_tell_why(tmp_path):
    whole, _ = make_vectors(tmp_path / "v", 300)
    whole.export(tmp_path / "small", to="compressed")
    with TestClient(app_of(make_service(tmp_path / "small", tmp_path), True), base_url=HOST) as client:
        facts = ask(client, "collection")
        assert facts["items"] == 300
        assert facts["edge_weights"] == []
        assert not facts["can_edit"]
        found = ask(client, "compare", id=7, k=20)
        assert {"7"} <= {one["id"] for one in found["knn"]}
        assert max(one["score"] for one in found["gradnet"]) <= 1
        assert "compressed" in ask(client, "why", 400, id=7, result=9)["error"]


def test_maps_are_made_once_and_kept(vectors):
    for space in ("descriptors", "features"):
        answer = vectors.get(f"{API}/map", params={"space": space})
        if answer.status_code == 202:
            assert finished(vectors, answer.json())["state"] == "done"
            answer = vectors.get(f"{API}/map", params={"space": space})
        assert answer.status_code == 200
        points = np.frombuffer(answer.content, "<f4").reshape(-1, 2)
        assert points.shape == (40, 2)
        assert np.abs(points).max() <= 1
    groups = [points[np.arange(40) % 2 == group].mean(axis=0) for group in (0, 1)]
    assert np.linalg.norm(groups[0] - groups[1]) > 0.3


def test_nothing_can_be_changed_unless_it_is_allowed(vectors):
    answers = [
        vectors.post(f"{API}/items", json={"items": [{"vector": [1.0] * 6}]}),
        vectors.post(f"{API}/items/remove", json={"ids": [str(1)]}),
        vectors.post(f"{API}/refit", json={}),
        vectors.post(f"{API}/pictures", content=jpeg(), headers={"content-type": "image/jpeg"}),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert all("--allow-edit" in answer.json()["hint"] for answer in answers)
    assert ask(vectors, "collection")["items"] == 40


def test_a_picture_is_added_found_and_removed_and_its_file_stays(editable, tmp_path):
    job = editable.post(f"{API}/pictures", content=jpeg(), headers={"content-type": "image/jpeg"}).json()
    (id_,) = finished(editable, job)["result"]["ids"]
    assert id_.startswith("added-")
    assert (tmp_path / "photos" / id_).read_bytes() == jpeg()
    assert ask(editable, "search", id=id_)["results"][0]["id"] == id_
    assert ask(editable, "collection")["added_since_fit"] == 1
    again = editable.post(f"{API}/pictures", content=jpeg(), headers={"content-type": "image/jpeg"}).json()
    assert finished(editable, again)["result"]["ids"] == [id_]
    job = editable.post(f"{API}/items/remove", json={"ids": [id_]}).json()
    assert finished(editable, job)["state"] == "done"
    assert ask(editable, "search", 404, id=id_)
    assert (tmp_path / "photos" / id_).exists()


def test_vectors_are_added_all_or_none(tmp_path):
    make_vectors(tmp_path / "v")
    with TestClient(app_of(make_service(tmp_path / "v", tmp_path), True), base_url=HOST) as client:
        items = [{"vector": [1.0, 2, 3, 4, 5, 6], "fields": {"year": 2000}}, {"vector": [0.5] * 6}]
        state = finished(client, client.post(f"{API}/items", json={"items": items}).json())
        assert state["result"]["ids"] == ["40", "41"]
        assert ask(client, "item", id=40)["fields"] == {"year": 2000}
        bad = [{"vector": [1.0] * 6, "id": 7}, {"vector": [1.0] * 6, "id": 100}]
        state = finished(client, client.post(f"{API}/items", json={"items": bad}).json())
        assert state["state"] == "failed"
        assert "7" in state["error"]
        assert ask(client, "collection")["items"] == 42
        short = {"items": [{"vector": [1.0] * 6}, {"vector": [1.0] * 5}]}
        assert client.post(f"{API}/items", json=short).status_code == 400
        no_id = {"items": [{"id": True, "vector": [1.0] * 6}]}  # not the number 1
        assert client.post(f"{API}/items", json=no_id).status_code == 422
        assert client.post(f"{API}/pictures", content=jpeg(), headers={"content-type": "image/jpeg"}).status_code == 409


def test_a_refit_learns_from_what_was_added_and_tells_its_progress(tmp_path):
    make_vectors(tmp_path / "v")
    manifind.load(tmp_path / "v").add(np.ones((3, 6), np.float32) * [[1], [2], [-1]])
    with TestClient(app_of(make_service(tmp_path / "v", tmp_path), True), base_url=HOST) as client:
        assert ask(client, "collection")["added_since_fit"] == 3
        state = finished(client, client.post(f"{API}/refit", json={}).json())
        assert state["state"] == "done", state
        assert state["total"] > 0
        assert ask(client, "collection")["added_since_fit"] == 0


def test_a_commit_by_somebody_else_is_noticed(editable, tmp_path):
    assert ask(editable, "collection")["items"] == 20
    manifind.load(tmp_path / "pictures").remove(["north/01.png"])
    time.sleep(0.6)
    assert ask(editable, "collection")["items"] == 19
    assert ask(editable, "search", 404, id="north/01.png")


@pytest.fixture
def renamed(editable, tmp_path):
    """The same after a file was renamed, and its collection brought up to date."""
    (tmp_path / "photos" / "north" / "01.png").rename(tmp_path / "photos" / "south" / "harbour.png")
    index_folder(tmp_path / "photos", tmp_path / "pictures")
    time.sleep(0.6)
    return editable


def test_a_renamed_file_keeps_its_id_and_is_found_by_its_current_path(renamed):
    for asked in ("north/01.png", "south/harbour.png"):
        item = ask(renamed, "item", id=asked)
        assert (item["id"], item["fields"]["path"]) == ("north/01.png", "south/harbour.png")
        assert ask(renamed, "search", id=asked)["results"][0]["id"] == "north/01.png"
        assert renamed.get(f"{API}/thumbnail", params={"id": asked}).status_code == 200
    for name in ("HARBOUR", "north/01", "south/har"):
        assert [one["id"] for one in ask(renamed, "items", name=name)["items"]] == ["north/01.png"]
    step = ask(renamed, "why", id="south/02.png", result="north/01.png")["path"][-1]
    assert (step["id"], step["path"]) == ("north/01.png", "south/harbour.png")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("nort/03.png", "did you mean 'north/03.png'"),
        ("south/harbor.png", "did you mean 'south/harbour.png'"),
        ("zebra", "it may have been removed"),
    ],
)
def test_an_item_that_is_not_there_is_answered_with_those_nearest_to_it(renamed, asked, hint):
    found = ask(renamed, "item", 404, id=asked)
    assert found["error"] == f"there is no item '{asked}'"
    assert hint in found["hint"]


def test_a_filter_that_no_item_could_satisfy_is_refused_by_name(vectors):
    found = ask(vectors, "search", 400, id=7, where="yaer >= 1910")
    assert found == {
        "error": "no item has a metadata field 'yaer'; there are name, year", "hint": "did you mean 'year'?",
    }  # fmt: skip
    assert "holds numbers" in ask(vectors, "items", 400, where="year >= 'a'")["error"]
    assert "holds numbers" in ask(vectors, "compare", 400, id=7, where="year >= 'a'")["error"]
