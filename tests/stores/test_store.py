"""A table of vectors does in each database what the interface says: the same answers, whatever ids and metadata say."""

import numpy as np
import pytest

from manifind.errors import InputError, StoreError
from manifind.graph.preprocess import unit_rows
from manifind.index.exact import nearest
from manifind.stores.store import Shape

HOSTILE = [
    "'; DROP TABLE items; --",
    '" or 1 == 1',
    "it's",
    'say "x"',
    "back\\slash",
    "\\",
    "line\nbreak\r\ttab",
    "{curly} %s %(x)s $1",
    "\x01\x1f\x7f",
    "猫 🐱 é e\u0301",
    " ",
    "null",
    "x" * 4096,
    "🐱" * 4096,
]


def close(found, expected):
    np.testing.assert_allclose(found.scores, expected.scores, atol=2e-6)
    assert found.ids.tolist() == expected.ids.tolist()


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_best_are_those_of_an_exact_search(made, vectors, metric):
    rows = unit_rows(vectors) if metric == "cosine" else vectors
    store = made(rows[20:], metric=metric)
    close(store.search(rows[:20], 10), nearest(rows[:20], rows[20:], 10, metric))
    assert store.count() == 480


def test_rows_are_replaced_and_taken_away_by_their_ids(made, vectors):
    store = made(vectors[:50], ids=[f"item {i}" for i in range(50)], metadata=[{"n": i} for i in range(50)])
    store.upsert(["item 3", "new"], vectors[60:62], [{"n": 100}, None])
    store.delete(["item 4", "nobody"])
    store.delete(["item 4"])
    assert store.count() == 50
    assert sorted(store.ids()) == sorted({f"item {i}" for i in range(50)} - {"item 4"} | {"new"})
    rows = store.rows(["new", "item 3"])
    np.testing.assert_array_equal(rows.vectors, vectors[[61, 60]])
    assert rows.metadata == [{}, {"n": 100}]
    assert store.search(vectors[60:61], 1).ids.tolist() == [["item 3"]]
    assert store.count("n = 3") == 0


def test_nothing_put_taken_or_asked_changes_nothing(made, vectors):
    store = made(vectors[:5])
    store.upsert([], vectors[:0])
    store.delete([])
    assert store.count() == 5
    assert store.rows([]).vectors.shape == (0, 12)
    assert store.search(vectors[:0], 3).ids.shape[0] == 0


def test_fewer_than_k_are_found_where_there_are_fewer(made, vectors):
    store = made(vectors[:7], metadata=[{"n": i} for i in range(7)])
    assert store.search(vectors[:2], 10).ids.shape == (2, 7)
    assert store.search(vectors[:2], 10, "n < 3").ids.shape == (2, 3)
    assert store.search(vectors[:2], 10, "n > 30").ids.shape == (2, 0)


def test_every_id_is_kept_found_and_taken_away_as_it_is(made, vectors):
    store = made(vectors[: len(HOSTILE)], ids=HOSTILE)
    assert sorted(store.ids()) == sorted(HOSTILE)
    assert store.search(vectors[: len(HOSTILE)], 1).ids[:, 0].tolist() == HOSTILE
    np.testing.assert_array_equal(store.rows(HOSTILE[::-1]).vectors, vectors[: len(HOSTILE)][::-1])
    for left, id_ in enumerate(HOSTILE[::-1]):
        store.delete([id_])
        assert store.count() == len(HOSTILE) - 1 - left


def test_every_name_and_text_of_metadata_is_kept_and_found(made, vectors):
    metadata_of = [{text[:200]: text[:3000], "list": [text[:3000], "x"]} for text in HOSTILE]
    store = made(vectors[: len(metadata_of)], metadata=metadata_of)
    assert store.rows(list(range(len(metadata_of)))).metadata == metadata_of
    for row, text in enumerate(HOSTILE):
        quoted = ["'" + part.replace("\\", "\\\\").replace("'", "\\'") + "'" for part in (text[:200], text[:3000])]
        for where in (f"{quoted[0]} = {quoted[1]}", f"list = 'y' or {quoted[0]} in ('y', {quoted[1]})"):
            assert store.search(vectors[:1], 20, where).ids.tolist() == [[row]], text


def test_numbers_at_the_ends_of_their_range_are_ids(made, vectors):
    ids = [-(2**63), -1, 0, 2**63 - 1]
    store = made(vectors[:4], ids=ids)
    assert store.search(vectors[:4], 1).ids[:, 0].tolist() == ids
    store.delete(ids[:3])
    assert store.ids() == [2**63 - 1]


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        (["a\0b"], "not valid text"),
        (["\ud800"], "not valid text"),
        ([""], "0 characters"),
        (["x" * 4097], "4097 characters"),
        ([5], "is no text"),
    ],
)
def test_an_id_that_no_database_keeps_is_refused(made, vectors, ids, problem):
    store = made(vectors[:1], ids=["a"])
    for refused in (lambda: store.upsert(ids, vectors[:1]), lambda: store.delete(ids)):
        with pytest.raises(InputError, match=problem):
            refused()
    assert store.ids() == ["a"]


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda rows: rows[:, :5], "expected \\(any, 12\\)"),
        (lambda rows: rows * np.nan, "row 0 holds NaN"),
        (lambda rows: rows / 0.0, "row 0 holds NaN"),
        (lambda rows: rows * 0, "row 0 is zero"),
        (lambda rows: rows[0], "shape"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_vector_that_cannot_be_compared_is_refused(made, vectors, spoil, problem):
    store = made(vectors[:3])
    for refused in (lambda rows: store.upsert([7], rows), lambda rows: store.search(rows, 1)):
        with pytest.raises(InputError, match=problem):
            refused(spoil(vectors[:1]))
    assert store.count() == 3


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_a_k_that_is_none_is_refused(made, vectors, k):
    with pytest.raises(InputError, match="k = "):
        made(vectors[:3]).search(vectors[:1], k)


def test_a_table_of_another_shape_is_made_anew_and_one_of_the_same_stays(database, made, name, vectors):
    made(vectors[:5])
    assert database.create(name, Shape(12, "cosine", "number")).count() == 5
    assert database.create(name, Shape(12, "cosine", "text")).count() == 0
    assert database.create(name, Shape(3, "cosine", "text")).shape.width == 3
    assert database.open(name, "cosine").shape == Shape(3, "cosine", "text")
    assert database.open("nothing_there", "cosine") is None


def test_a_row_that_is_not_there_is_named(made, vectors):
    with pytest.raises(StoreError, match="no row 77"):
        made(vectors[:5]).rows([1, 77])


@pytest.mark.parametrize("name", ["", "Museum", "a-b", "1st", "x" * 55, 'x"; DROP TABLE y', "müll", None])
def test_a_name_that_is_none_is_refused(database, name):
    with pytest.raises(InputError, match="name = "):
        database.open(name, "cosine")


def test_an_index_that_is_none_is_refused(made, vectors):
    with pytest.raises(InputError, match="index = 'ivf'"):
        made(vectors[:5]).build_index("ivf")


def test_few_rows_are_searched_exactly_unless_an_index_is_wanted(made, vectors):
    store = made(vectors)
    assert store.build_index("auto") == "exact"
    assert store.build_index("hnsw") == "hnsw"
    assert store.build_index("exact") == "exact"


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_a_filter_loses_nothing_with_an_index(made, metric):
    rng = np.random.default_rng(1)
    rows = unit_rows(rng.normal(size=(3000, 12)).astype(np.float32))
    store = made(rows, metadata=[{"n": i, "far": bool(rows[i, 0] < -0.45)} for i in range(3000)], metric=metric)
    assert store.build_index("hnsw") == "hnsw"
    query = np.eye(12, dtype=np.float32)[:1]  # all who are far are far from it, too
    far = np.flatnonzero(rows[:, 0] < -0.45)
    for where, allowed in (("far = true", far), ("n in (5, 2000, 2999)", [5, 2000, 2999]), ("n < 40", range(40))):
        allowed = np.array(allowed)
        found = store.search(query, len(allowed) + 5, where)
        assert sorted(found.ids[0].tolist()) == allowed.tolist()
        best = nearest(query, rows[allowed], min(3, len(allowed)), metric)
        assert store.search(query, 3, where).ids[0].tolist() == allowed[best.ids[0]].tolist()


def test_most_of_the_true_best_are_found_with_an_index(made):
    rows = unit_rows(np.random.default_rng(2).normal(size=(3000, 12)).astype(np.float32))
    store = made(rows[50:])
    store.build_index("hnsw")
    exact = nearest(rows[:50], rows[50:], 10, "cosine")
    found = store.search(rows[:50], 10)
    shared = [len(set(a) & set(b)) for a, b in zip(found.ids.tolist(), exact.ids.tolist(), strict=True)]
    assert sum(shared) >= 490
    store.upsert([5000], rows[:1])
    store.delete([int(found.ids[1, 0])])
    assert store.search(rows[:1], 1).ids.tolist() == [[5000]]
    assert found.ids[1, 0] not in store.search(rows[1:2], 10).ids
