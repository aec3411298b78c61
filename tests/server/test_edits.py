"""Changes through the API: labels, removals, undo, judgements; and that nothing changes without permission."""

import io
import json

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

import manifind
from collection.small_collection import files_of
from server.made import HOST, app_of, make_service, make_vectors
from server.test_api import API, ask, finished

STRANGE = ["<b>x</b>", "a\u202eb", "line\nbreak", "ünï ☃", "'; DROP TABLE items;--"]


def png(seed, size=(64, 48)):
    stream = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, size=(6, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize(size).save(stream, "PNG")
    return stream.getvalue()


def done(client, path, **json_):
    answer = client.post(f"{API}/{path}", json=json_)
    assert answer.status_code == 202, answer.text
    state = finished(client, answer.json())
    assert state["state"] == "done", state
    return state["result"]


@pytest.fixture
def living(tmp_path):
    """A collection of forty vectors that may be changed."""
    make_vectors(tmp_path / "c")
    with TestClient(app_of(make_service(tmp_path / "c", tmp_path), True), base_url=HOST) as client:
        client.path = tmp_path / "c"
        yield client


def test_labels_come_and_go_and_can_be_filtered(living):
    result = done(living, "labels", field="tags", ids=["1", "2", "3"], add=STRANGE)
    assert result["step"] == 1
    assert ask(living, "item", id="2")["fields"]["tags"] == STRANGE
    done(living, "labels", ids=["2"], remove=STRANGE[:4])
    assert ask(living, "item", id="2")["fields"]["tags"] == STRANGE[4:]
    found = ask(living, "items", where='tags contains "<b>x</b>"')
    assert [item["id"] for item in found["items"]] == ["1", "3"]
    (field,) = [one for one in ask(living, "fields")["fields"] if one["name"] == "tags"]
    assert {value["value"]: value["items"] for value in field["values"]}[STRANGE[4]] == 3


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"ids": ["1"], "add": [""]}, 422),
        ({"ids": ["1"], "add": [" x"]}, 400),
        ({"ids": ["1"]}, 400),
        ({"ids": [], "add": ["x"]}, 422),
        ({"ids": ["nobody"], "add": ["x"]}, 404),
        ({"ids": ["1"], "add": ["x"], "field": "year"}, 422),
        ({"ids": ["1"], "add": ["x" * 201]}, 422),
        ({"ids": ["1"], "add": ["x"], "remove": ["x"]}, 400),
    ],
)
def test_labels_that_are_none_are_refused_at_once(living, given, status):
    assert living.post(f"{API}/labels", json=given).status_code == status
    assert ask(living, "changes")["changes"] == []


def test_every_change_is_undone_the_last_one_first(living):
    before = [ask(living, "items", limit=500), ask(living, "search", id="5", k=40)]
    first = done(living, "labels", field="albums", ids=["4", "5"], add=["summer"])
    second = done(living, "items/remove", ids=["5", "6", "6"])
    assert second["ids"] == ["5", "6"]
    third = done(living, "items", items=[{"vector": [1.0] * 6, "fields": {"year": 1}}])
    assert [one["label"] for one in ask(living, "changes")["changes"]] == [
        "added 1 item", "removed 2 items", "added 'summer': albums of 2 items"
    ]  # fmt: skip
    assert ask(living, "collection")["undo"]["step"] == 3
    answer = living.post(f"{API}/undo", json={"step": first["step"]})
    assert answer.status_code == 409
    assert "the last change is now: added 1 item" in answer.json()["error"]
    assert third["ids"] == ["40"]
    for step in (3, 2, 1):
        undone = done(living, "undo", step=step)
    assert undone == {"undone": "added 'summer': albums of 2 items"}
    assert [ask(living, "items", limit=500), ask(living, "search", id="5", k=40)] == before
    assert ask(living, "collection")["undo"] is None
    assert living.post(f"{API}/undo", json={"step": 1}).status_code == 409


def test_judgements_are_kept_shown_and_taken_back(living):
    parts = [{"id": "2"}, {"vector": [0.5] * 6, "weight": -0.5}]
    given = {"parts": parts, "right": ["4", "6"], "wrong": ["3", "5"]}
    answer = living.post(f"{API}/judgements", json=given)
    assert answer.json() == {"right": ["4", "6"], "wrong": ["3", "5"]}
    again = living.post(f"{API}/judgements/of", json={"parts": parts[::-1]})
    assert set(again.json()["right"]) == {"4", "6"}
    found = ask(living, "judgements")
    assert found["counts"] == {"queries": 1, "right": 2, "wrong": 2}
    assert found["scores"]["queries"] == 1
    assert 0 <= found["scores"]["gradnet"]["low"] <= found["scores"]["gradnet"]["value"] <= 100
    assert found["queries"][0]["parts"][0] == {"id": "2", "text": None, "weight": 1.0}
    assert ask(living, "collection")["judged"] == found["counts"]
    given = {"parts": parts, "neither": ["3", "4", "5", "6"]}
    assert living.post(f"{API}/judgements", json=given).json() == {"right": [], "wrong": []}
    assert ask(living, "judgements") == {
        "counts": {"queries": 0, "right": 0, "wrong": 0}, "queries": [], "scores": None
    }  # fmt: skip


CHANGES = {
    "labels": {"ids": ["1"], "add": ["x"]},
    "items/remove": {"ids": ["1"]},
    "undo": {"step": 1},
    "judgements": {"parts": [{"id": "1"}], "right": ["2"]},
    "items": {"items": [{"vector": [1.0] * 6}]},
    "refit": {},
}


@pytest.mark.parametrize("path", CHANGES)
def test_nothing_is_written_without_permission(tmp_path, path):
    make_vectors(tmp_path / "c")
    before = files_of(tmp_path / "c")
    with TestClient(app_of(make_service(tmp_path / "c", tmp_path)), base_url=HOST) as client:
        answer = client.post(f"{API}/{path}", json=CHANGES[path])
        assert answer.status_code == 403
        assert answer.json()["hint"] == "start it with --allow-edit"
        assert client.post(f"{API}/judgements/of", json={"parts": [{"id": "1"}]}).json() == {"right": [], "wrong": []}
    assert files_of(tmp_path / "c") == before


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Rome 2019.PNG", "Rome 2019.PNG"),
        ("../../etc/passwd.png", "passwd.png"),
        ("C:\\pictures\\a.jpg", "a.jpg"),
        (".hidden.png", "hidden.png"),
        ("no suffix", "no suffix.png"),
        ("archive.zip", "archive.zip.png"),
        ("a\u202egnp.exe", "a gnp.exe.png"),
        ("line\nbreak\x00.png", "line break.png"),
        ("<b>bold</b>.png", "b>.png"),
        ("x" * 300 + ".png", "x" * 116 + ".png"),
        ("ü" * 200 + ".png", "ü" * 58 + ".png"),
        ("", None),
        ("...", None),
        ("/", None),
    ],
)
def test_a_picture_keeps_the_part_of_its_name_that_is_safe(editable, tmp_path, given, name):
    photos = tmp_path / "photos"
    before = set(photos.rglob("*"))
    answer = editable.post(
        f"{API}/pictures", params={"name": given}, content=png(77), headers={"content-type": "image/png"}
    )
    result = finished(editable, answer.json())["result"]
    (new,) = set(photos.rglob("*")) - before
    assert new.parent == photos
    assert new.name == result["name"] == result["ids"][0] == (name or new.name)
    assert name is not None or new.name.startswith("added-")
    assert ask(editable, "item", id=new.name)["fields"]["path"] == new.name


def test_pictures_of_one_name_stand_beside_each_other_and_the_same_content_is_added_once(editable, tmp_path):
    def add(data):
        answer = editable.post(f"{API}/pictures?name=a.png", content=data, headers={"content-type": "image/png"})
        return finished(editable, answer.json())["result"]

    results = [add(png(seed)) for seed in (71, 72, 73, 72)]
    assert [result["name"] for result in results[:3]] == ["a.png", "a (2).png", "a (3).png"]
    assert results[3] == {"ids": ["a (2).png"], "name": "a.png", "known": True}
    assert (tmp_path / "photos" / "a (3).png").read_bytes() == png(73)
    assert len(manifind.load(tmp_path / "pictures")) == 23


def test_words_are_judged_under_their_own_name(tmp_path):
    from images.themes import save_model, save_pictures
    from manifind.model.index_folder import index_folder

    photos, model = save_pictures(tmp_path / "themes"), save_model(tmp_path / "towers.py", 3.0)
    index_folder(photos, tmp_path / "c", model, {"n_neighbors": 8, "max_steps": 2})
    with TestClient(app_of(make_service(tmp_path / "c", tmp_path), True), base_url=HOST) as client:
        first, second, *_ = (item["id"] for item in ask(client, "items")["items"])
        given = {"parts": [{"text": "theme 3"}], "right": [first], "wrong": [second]}
        assert client.post(f"{API}/judgements", json=given).status_code == 200
        (query,) = ask(client, "judgements")["queries"]
        assert (query["label"], query["parts"][0]["text"]) == ("theme 3", "theme 3")
        answer = client.post(f"{API}/judgements/of", json={"parts": [{"text": "theme 3"}]})
        assert answer.json() == {"right": [first], "wrong": [second]}
    (stored,) = manifind.load(tmp_path / "c").judgements.all()
    assert stored.words == ("theme 3",)
    json.dumps(stored.right)
