"""What is Milvus's own: parameters by size, limits that are named, and an index that is not believed blindly."""

import numpy as np
import pytest

from manifind.errors import InputError, StoreError
from manifind.graph.preprocess import unit_rows
from manifind.index.exact import nearest
from manifind.stores.address import parse_address
from manifind.stores.milvus import key_of, stored_metadata
from manifind.stores.store import Shape
from stores.strangers import everything, make_stranger

milvus_module = pytest.importorskip("manifind.stores.milvus")


@pytest.fixture(scope="module")
def database(milvus):
    opened = milvus_module.MilvusDatabase(parse_address(milvus.address))
    yield opened
    opened.close()


def rows(n, seed=0):
    return unit_rows(np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32))


@pytest.mark.parametrize(
    ("n", "kind", "parameters"),
    [
        (None, "FLAT", {}),
        (20_001, "HNSW", {"M": 16, "efConstruction": 128}),
        (1_000_000, "HNSW", {"M": 32, "efConstruction": 256}),
    ],
)
def test_the_index_is_chosen_for_the_size(n, kind, parameters):
    (index,) = milvus_module.index_parameters(Shape(6, "cosine", "text"), n)
    summary = index.to_dict()
    assert (summary["index_type"], summary["metric_type"]) == (kind, "COSINE")
    assert {name: value for name, value in summary.items() if name in ("M", "efConstruction")} == parameters


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_an_index_that_lost_rows_is_not_believed(database, name, metric, monkeypatch):
    store = database.create(name, Shape(6, metric, "number"))
    store.upsert(range(100), rows(100), [{"n": i} for i in range(100)])
    ask = type(store)._ask
    monkeypatch.setattr(type(store), "_ask", lambda *given: [row[:2] for row in ask(*given)])
    found, exact = store.search(rows(3, 1), 10), nearest(rows(3, 1), rows(100), 10, metric)
    assert found.ids.tolist() == exact.ids.tolist()
    assert sorted(store.search(rows(3, 1), 10, "n in (4, 50, 60)").ids[0].tolist()) == [4, 50, 60]


def test_more_results_than_milvus_gives_are_refused_where_there_are_so_many(database, name, monkeypatch):
    store = database.create(name, Shape(6, "cosine", "number"))
    store.upsert(range(5), rows(5))
    assert sorted(store.search(rows(1), 16_385).ids[0].tolist()) == [0, 1, 2, 3, 4]
    monkeypatch.setattr(milvus_module, "_MOST_RESULTS", 4)
    with pytest.raises(InputError, match="k = 5; Milvus answers with at most 4"):
        store.search(rows(1), 16_385)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"hash": 2**53 + 1}, "'hash' of 7?.* is 9007199254740993, a number that Milvus would round"),
        ({"hashes": ["x", -(2**63)]}, "'hashes'"),
        ({"text": "🐱" * 9000}, "more than the 65536 bytes"),
    ],
)
def test_metadata_that_milvus_would_change_is_refused_by_name(database, name, fields, problem):
    store = database.create(name, Shape(6, "cosine", "number"))
    with pytest.raises(InputError, match=problem):
        store.upsert([7], rows(1), [fields])
    assert store.count() == 0


def test_metadata_is_kept_by_kind_and_as_it_was():
    fields = {"year": 1990, "a b": "x", "sold": True, "tags": ["red", 3, True, None], "none": None}
    assert stored_metadata(fields, "x") == {
        "said": fields,
        "number": {"year": 1990},
        "text": {"a%20b": "x"},
        "truth": {"sold": True},
        "texts": {"tags": ["red"]},
        "numbers": {"tags": [3]},
        "truths": {"tags": [True]},
    }


def test_different_names_have_different_keys_in_plain_letters():
    names = ["a b", "a_b", "a%20b", "ab", "é", "e\u0301", '"', "'", "\\", "/", "~", ".", "", "%", "猫"]
    keys = [key_of(name) for name in names]
    assert len(set(keys)) == len(names)
    assert all(key.isascii() and not set(key) & set("\"'\\/~. ") for key in keys)


@pytest.mark.parametrize("target", ["stranger", "ours"])
def test_an_alias_is_not_taken_for_the_collection_behind_it(milvus, database, name, target):
    if target == "ours":
        database.create(f"{name}_target", Shape(6, "cosine", "number")).upsert(range(9), rows(9))
    else:
        make_stranger(milvus, f"{name}_target", 6)
    database.client.create_alias(f"{name}_target", name)
    before = everything(milvus, name)
    for shape in (Shape(6, "cosine", "number"), Shape(3, "cosine", "text")):
        with pytest.raises(StoreError, match=f"{name} in .* was not made by manifind"):
            database.create(name, shape)
    assert everything(milvus, name) == before


def test_the_mark_is_known_where_only_the_description_is_kept(database, name, monkeypatch):
    """As by servers that keep no property of others; Milvus Lite keeps properties alone."""
    database.create(name, Shape(6, "cosine", "number"))
    client = database.client
    describe = client.describe_collection(name)
    moved = {**describe, "description": describe["properties"]["gradnet.mark"], "properties": {}}
    monkeypatch.setattr(client, "describe_collection", lambda name: moved)
    assert database.open(name, "cosine") is not None
    monkeypatch.setattr(client, "describe_collection", lambda name: {**moved, "description": ""})
    with pytest.raises(StoreError, match="was not made by manifind"):
        database.open(name, "cosine")


@pytest.mark.parametrize(("failures", "is_open"), [(1, True), (2, False)])
def test_a_connection_that_the_server_closed_while_it_was_idle_is_asked_for_again(
    milvus, monkeypatch, failures, is_open
):
    client, tries = milvus_module.MilvusClient, []

    def closed_at_first(**parameters):
        tries.append(parameters)
        if len(tries) <= failures:
            raise milvus_module.MilvusException(message="Fail connecting to server")
        return client(**parameters)

    monkeypatch.setattr(milvus_module, "MilvusClient", closed_at_first)
    if is_open:
        milvus_module.MilvusDatabase(parse_address(milvus.address)).close()
    else:
        with pytest.raises(StoreError, match="cannot be asked: Fail connecting to server"):
            milvus_module.MilvusDatabase(parse_address(milvus.address))
    assert len(tries) == 2
