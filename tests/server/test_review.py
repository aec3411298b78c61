"""Looking through a whole collection: duplicates, times, places, groups, colours of the map, whatever metadata says."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from starlette.testclient import TestClient

from images.painted import paint_many
from manifind.collection.clusters import find_clusters
from manifind.model.index_folder import index_folder
from manifind.server import review
from manifind.server.errors import RefusedError
from manifind.server.overviews import MOST_LABELS, OTHER, colours, places, timeline
from server.made import HOST, SMALL, app_of, make_service, make_vectors
from server.test_api import ask, finished


def twice(folder):
    """Twenty pictures, a copy of one and a smaller one of another, some with dates and places."""
    photos = paint_many(folder / "photos")
    (photos / "copy.png").write_bytes((photos / "north" / "01.png").read_bytes())
    Image.open(photos / "south" / "02.png").resize((48, 36)).save(photos / "small.png")
    collection = index_folder(photos, folder / "c", "pixels", SMALL).collection
    ids = collection.ids.tolist()
    where = {"north": (41.9, 12.5), "south": (-33.9, 151.2)}
    fields = [{"taken": f"20{10 + at % 3}-0{1 + at % 9}-15 10:00:00"} for at in range(len(ids))]
    for id_, own in zip(ids, fields, strict=True):
        if "/" in id_:
            own["latitude"], own["longitude"] = where[id_.split("/")[0]]
            own["place"] = {"north": "Rome", "south": "Sydney"}[id_.split("/")[0]]
    collection.update(ids, metadata=fields)
    return collection


@pytest.fixture(scope="module")
def pictured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review")
    twice(folder)
    with TestClient(app_of(make_service(folder / "c", folder)), base_url=HOST) as client:
        yield client


@pytest.fixture
def changing(tmp_path):
    twice(tmp_path)
    with TestClient(app_of(make_service(tmp_path / "c", tmp_path), True), base_url=HOST) as client:
        yield client


def made(client, path, **parameters):
    """An answer that a job may have to make first."""
    while (answer := client.get(f"/api/v1/{path}", params=parameters)).status_code == 202:
        assert finished(client, answer.json())["state"] == "done"
    assert answer.status_code == 200, answer.text
    return answer.json()


def removed(client, *ids):
    job = client.post("/api/v1/items/remove", json={"ids": ids}).json()
    assert finished(client, job)["state"] == "done"


def test_duplicates_come_in_groups_with_the_best_copy_and_its_reason(pictured):
    found = made(pictured, "duplicates")
    assert (found["total"], found["items"]) == (2, 4)
    same, near = found["groups"]
    assert [same["kind"], near["kind"]] == ["same", "near"]
    assert {one["id"]: one["best"] for one in near["items"]} == {"small.png": False, "south/02.png": True}
    assert {one["reason"] for one in near["items"]} == {"64 x 48, the largest", ""}
    assert near["items"][0]["fields"]["width"] == 48
    assert "fingerprint" not in near["items"][0]["fields"]
    assert made(pictured, "duplicates", offset=1, limit=1)["groups"] == [near]


def test_after_a_removal_duplicates_are_known_at_once_and_after_an_addition_looked_for_again(changing):
    made(changing, "duplicates")
    removed(changing, "copy.png")
    assert ask(changing, "duplicates")["total"] == 1
    removed(changing, "small.png")
    assert ask(changing, "duplicates") == {"total": 0, "items": 0, "groups": []}
    picture = (changing.get("/api/v1/picture", params={"id": "north/03.png"})).content
    added = changing.post("/api/v1/pictures", content=picture, headers={"content-type": "image/jpeg"}).json()
    assert finished(changing, added)["state"] == "done"
    assert made(changing, "duplicates")["total"] == 1


def test_equal_vectors_are_duplicates(tmp_path):
    collection, X = make_vectors(tmp_path / "v")
    collection.add(X[[3, 3]])
    with TestClient(app_of(make_service(tmp_path / "v", tmp_path)), base_url=HOST) as client:
        (group,) = made(client, "duplicates")["groups"]
        assert [one["id"] for one in group["items"]] == ["3", "40", "41"]
        assert [one["reason"] for one in group["items"]] == ["the first of them", "", ""]


def test_a_compressed_collection_has_no_descriptors_to_compare(tmp_path):
    collection, _ = make_vectors(tmp_path / "v")
    collection.export(tmp_path / "small", "compressed")
    with TestClient(app_of(make_service(tmp_path / "small", tmp_path)), base_url=HOST) as client:
        assert "compressed" in ask(client, "duplicates", 409)["error"]


def test_months_are_counted_with_and_without_a_filter(pictured):
    found = ask(pictured, "timeline")
    assert sum(one["items"] for one in found["months"]) == 22
    assert found["undated"] == 0
    assert [one["month"] for one in found["months"]] == sorted(one["month"] for one in found["months"])
    some = ask(pictured, "timeline", where="place = 'Rome'")
    assert sum(one["items"] for one in some["months"]) == 10
    for one in some["months"]:
        inside = f"place = 'Rome' and taken >= '{one['month']}-01' and taken < '{one['month']}-32'"
        assert ask(pictured, "items", where=inside)["total"] == one["items"]
    assert "'" in ask(pictured, "timeline", 400, where="place >")["hint"]


def test_places_are_counted_in_cells_that_a_filter_finds_again(pictured):
    found = ask(pictured, "places", degrees=10)
    assert found["unplaced"] == 2
    south, north = found["cells"]
    assert (south["latitude"], south["longitude"], south["items"]) == (-33.9, 151.2, 10)
    assert north["id"].startswith("north/")
    assert north["box"] == [40, 10, 50, 20]
    assert ask(pictured, "places", where="place = 'Rome'")["cells"][0]["items"] == 10
    assert ask(pictured, "places", 422, degrees=0)


def test_of_a_part_of_the_earth_only_its_cells_come(pictured):
    some = ask(pictured, "places", degrees=10, south=30, north=60, west=-20, east=20)
    assert [one["box"] for one in some["cells"]] == [[40, 10, 50, 20]]
    assert some["unplaced"] == 2
    assert ask(pictured, "places", 422, south=-91)
    assert ask(pictured, "places", 422, west="nan")


ANGLES = st.floats(-90, 90) | st.integers(-90, 90)


@settings(max_examples=300)
@given(ANGLES, st.floats(0.001, 90))
def test_whatever_is_in_a_cell_satisfies_the_comparisons_with_its_ends(angle, degrees):
    items = Items([{"latitude": angle, "longitude": angle}])
    (cell,) = places(items, None, degrees)["cells"]
    south, west, north, east = cell["box"]
    assert south <= angle < north
    assert west <= angle < east


class Items:
    """As much of a table of items as overviews need."""

    def __init__(self, fields):
        self.rows = np.arange(len(fields))
        self.fitted, self.later = Block(fields), Block([])
        self.kinds = {name: set() for one in fields for name in one}

    def added_place(self, row):
        return None

    def ids_of(self, rows):
        return rows


class Block:
    def __init__(self, fields):
        self.fields = fields


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40)
PLAIN |= st.sampled_from(["2019-07-31 12:30:00", "2019-13-01", "0000-00-00 00:00:00", "2020-02-31", 1 << 1020, -200.0])
FIELDS = st.dictionaries(
    st.sampled_from(["taken", "latitude", "longitude", "place", "path"]), PLAIN | st.lists(PLAIN, max_size=4)
)


@settings(max_examples=300)
@given(st.lists(FIELDS, min_size=1, max_size=15), st.sampled_from(["taken", "latitude", "place", "path", "nothing"]))
def test_whatever_metadata_says_every_item_is_counted_once(described, field):
    items = Items(described)
    months = timeline(items, None)
    assert sum(one["items"] for one in months["months"]) + months["undated"] == len(described)
    cells = places(items, None, 10.0)
    assert sum(one["items"] for one in cells["cells"]) + cells["unplaced"] == len(described)
    assert all(abs(one["latitude"]) <= 90 and abs(one["longitude"]) <= 180 for one in cells["cells"])
    if all(one.get(field) is None for one in described):
        with pytest.raises(RefusedError, match="no item has a value"):
            colours(items, field)
        return
    found = colours(items, field)
    assert len(found["values"]) == len(described)
    assert json.dumps(found, allow_nan=False)
    if found["kind"] not in ("number", "date"):
        assert {value for value in found["values"] if value is not None} <= set(range(len(found["labels"])))


@pytest.mark.parametrize(
    ("taken", "month"),
    [
        ("2019-07-31 12:30:00", "2019-07"),
        ("2019-07-31T12:30:00Z", "2019-07"),
        ("2019-07-31", "2019-07"),
        ("2019-07", None),
        ("2019-13-01", None),
        ("2019:07:31 12:30:00", None),
        ("0000-01-01 00:00:00", None),
        ("2019-07-311", None),
        ("in 2019-07", None),
        ("\u0662\u0660\u0661\u0669-07-31", None),
        (20190731, None),
        (["2019-07-31"], None),
    ],
)
def test_a_date_may_have_a_time_or_not(taken, month):
    found = timeline(Items([{"taken": taken}]), None)
    assert [one["month"] for one in found["months"]] == [month] * (month is not None)


@pytest.mark.parametrize(
    "place", [(True, 10), ("41.9", "12.5"), (91, 0), (0, 180.1), (None, 5), (5, None), ([5], 5), (1 << 1000, 0)]
)
def test_what_is_nowhere_on_earth_is_unplaced(place):
    assert places(Items([dict(zip(("latitude", "longitude"), place, strict=True))]), None, 5.0) == {
        "cells": [],
        "unplaced": 1,
    }


def test_groups_have_names_reasons_and_examples_and_their_items_can_be_asked_for(pictured):
    found = made(pictured, "clusters")["clusters"]
    assert [one["number"] for one in found] == list(range(1, len(found) + 1))
    assert sum(one["items"] for one in found) == 22
    assert all(1 <= len(one["examples"]) <= 6 for one in found)
    assert all(one["name"] for one in found)
    assert found == made(pictured, "clusters")["clusters"]


def test_the_rows_of_a_group_are_those_of_its_items(tmp_path):
    collection, _ = make_vectors(tmp_path / "v")
    service = make_service(tmp_path / "v", tmp_path)
    with pytest.raises(RefusedError, match="not found yet"):
        review.cluster_rows(service.maps, collection.version, 1)
    with TestClient(app_of(service), base_url=HOST) as client:
        found = made(client, "clusters")["clusters"]
        numbers = find_clusters(collection.features).numbers
        for one in found:
            rows = review.cluster_rows(service.maps, service.view().version, one["number"])
            assert rows.tolist() == np.flatnonzero(numbers == one["number"]).tolist()
        with pytest.raises(RefusedError, match="no group 77"):
            review.cluster_rows(service.maps, service.view().version, 77)


def test_groups_stay_where_items_go_and_new_items_join_the_nearest(tmp_path):
    collection, X = make_vectors(tmp_path / "v")
    service = make_service(tmp_path / "v", tmp_path)
    with TestClient(app_of(service, True), base_url=HOST) as client:
        made(client, "clusters")
        before = service.maps.clusters(service.view().version).numbers
        removed(client, "4", "9")
        after = service.maps.clusters(service.view().version).numbers
        assert after.tolist() == np.delete(before, [4, 9]).tolist()
        collection.refresh()
        collection.add(X[[4]])
        service.collection.refresh()
        made(client, "clusters")
        assert service.maps.clusters(service.view().version).numbers[-1] == before[4]


def test_the_map_stays_where_items_go_and_new_items_are_beside_the_nearest(tmp_path):
    _, X = make_vectors(tmp_path / "v")
    service = make_service(tmp_path / "v", tmp_path)
    collection = service.collection
    with TestClient(app_of(service), base_url=HOST) as client:
        for space in ("features", "descriptors"):
            before = map_of(client, space)
            collection.remove([collection.ids[5]])
            assert (map_of(client, space) == np.delete(before, 5, axis=0)).all()
            collection.add(X[collection.ids[[7]].astype(int)])
            after = map_of(client, space)
            assert 0 < np.abs(after[-1] - after[7]).max() < 0.01
            assert (after[:-1] == np.delete(before, 5, axis=0)).all()


def test_tags_and_other_metadata_ask_for_no_new_map_and_no_new_groups(tmp_path):
    make_vectors(tmp_path / "v")
    service = make_service(tmp_path / "v", tmp_path)
    with TestClient(app_of(service), base_url=HOST) as client:
        before, numbers = map_of(client, "features"), made(client, "clusters")["clusters"]
        duplicates = made(client, "duplicates")
        service.collection.update([3, 4], metadata=[{"place": "Rome"}, {"place": "Oslo"}])
        assert (map_of(client, "features") == before).all()
        assert [one["items"] for one in ask(client, "clusters")["clusters"]] == [one["items"] for one in numbers]
        assert ask(client, "duplicates") == duplicates


def map_of(client, space):
    while (answer := client.get("/api/v1/map", params={"space": space})).status_code == 202:
        assert finished(client, answer.json())["state"] == "done"
    return np.frombuffer(answer.content, "<f4").reshape(-1, 2)


@pytest.mark.parametrize("content", [b"", b"nonsense", np.zeros((40, 3)), np.full((40, 3), np.nan), np.zeros(5)])
def test_a_cache_that_holds_something_else_is_made_anew(tmp_path, content):
    make_vectors(tmp_path / "v")
    service = make_service(tmp_path / "v", tmp_path)
    with TestClient(app_of(service), base_url=HOST) as client:
        first = made(client, "clusters")
        (file,) = service.cache.iterdir()
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            np.save(file, content)
        assert client.get("/api/v1/clusters").status_code == 202
        assert made(client, "clusters") == first


def test_items_are_coloured_by_numbers_days_and_labels():
    dated = colours(Items([{"taken": "2019-07-31 12:00:00"}, {"taken": "2019-08-02"}, {}]), "taken")
    assert (dated["kind"], dated["low"], dated["high"]) == ("date", "2019-07-31", "2019-08-02")
    assert [dated["values"][1] - dated["values"][0], dated["values"][2]] == [2, None]
    numbers = colours(Items([{"year": 1990}, {"year": 2001.5}, {"year": None}]), "year")
    assert numbers == {"kind": "number", "low": 1990, "high": 2001.5, "labels": [], "values": [1990, 2001.5, None]}
    truth = colours(Items([{"seen": True}, {"seen": False}, {"seen": True}]), "seen")
    assert (truth["kind"], truth["labels"], truth["values"]) == ("truth", ["true", "false"], [0, 1, 0])
    tags = colours(Items([{"tags": ["rare", "often"]}, {"tags": ["often"]}, {"tags": []}]), "tags")
    assert (tags["kind"], tags["labels"], tags["values"]) == ("text", ["often", "rare"], [0, 0, None])
    folders = colours(Items([{"path": "a/b/1.png"}, {"path": "2.png"}, {"path": "a/b/3.png"}]), "path")
    assert (folders["labels"], folders["values"]) == (["a/b", "(no folder)"], [0, 1, 0])


def test_of_many_labels_the_last_stands_for_all_others():
    items = Items([{"place": f"p{max(0, at - 20):02}"} for at in range(40)])
    found = colours(items, "place")
    assert len(found["labels"]) == MOST_LABELS
    assert found["labels"][0] == "p00"
    assert found["labels"][-1] == OTHER
    assert found["values"][-1] == MOST_LABELS - 1


def test_a_field_that_no_item_has_is_refused_with_a_suggestion(pictured):
    assert "place" in ask(pictured, "map/colours", 404, field="plcae")["hint"]
    assert ask(pictured, "map/colours", 404, field="sha256")
    assert len(ask(pictured, "map/colours", field="place")["values"]) == 22


def test_ids_come_in_the_order_of_the_items(pictured):
    every = [one["id"] for one in ask(pictured, "items", limit=500)["items"]]
    assert ask(pictured, "map/ids")["ids"] == every
    assert ask(pictured, "map/ids", where="place = 'Rome'")["ids"] == [id_ for id_ in every if "north" in id_]


def test_a_filter_on_an_unknown_field_is_said_in_words(pictured):
    for path in ("timeline", "places"):
        assert "place" in ask(pictured, path, 400, where="plcae = 'Rome'")["hint"]
