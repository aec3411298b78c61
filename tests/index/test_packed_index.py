"""Indexes as plain arrays: unpacked they search bit for bit as before, also among some rows only, and never crash."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.errors import InputError
from manifind.index import vector_index as spaces
from manifind.index.exact import nearest
from manifind.index.ivf import FEWEST, InvertedFile
from manifind.index.vector_index import DecodedRows, make_index, to_array
from reference.graphs import clusters
from reference.neighbours import nearest_by_loops

METRICS = ["euclidean", "cosine"]
CODES = ["sq8", "pq"]
MASKS = ["few", "some", "many", "all", "far away", "the last"]


def unit(X):
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def rows(n, d=16, seed=0):
    return unit(clusters(n, d, max(n // 20, 1), seed=seed))


def again(index, X, metric, database):
    return InvertedFile.from_packed(index.packed(), index.quality, *X.shape, metric, database)


def same(one, other):
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.scores, other.scores)


@pytest.fixture(scope="module", params=[(codes, metric) for codes in CODES for metric in METRICS])
def made(request):
    codes, metric = request.param
    X = rows(1200)
    return X, rows(60, seed=1), metric, InvertedFile(X, metric, codes, 10)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("codes", "n", "d"),
    [("sq8", 1, 3), ("sq8", 2, 1), ("sq8", 41, 5), ("sq8", 500, 24), ("pq", 256, 1), ("pq", 300, 12), ("pq", 700, 32)],
)
def test_an_unpacked_index_searches_bit_for_bit_as_before(metric, codes, n, d):
    X = np.random.default_rng(n).normal(size=(n, d)).astype(np.float32)
    Q = np.concatenate([X[:3], np.random.default_rng(9).normal(size=(5, d)).astype(np.float32)])
    index = InvertedFile(X, metric, codes, 5)
    beside, alone = again(index, X, metric, X), again(index, X, metric, None)
    assert beside.quality == alone.quality == index.quality
    assert len(beside) == len(alone) == n
    for k in {1, min(7, n), n}:
        same(beside.nearest(Q, k), index.nearest(Q, k))
        same(beside.nearest_by_codes(Q, k), index.nearest_by_codes(Q, k))
        same(alone.nearest(Q, k), alone.nearest_by_codes(Q, k))
    same(alone.nearest_by_codes(Q, 1), index.nearest_by_codes(Q, 1))
    np.testing.assert_array_equal(alone.decoded(np.arange(n)), index.decoded(np.arange(n)))


def test_packing_what_was_unpacked_gives_the_same_arrays(made):
    X, _, metric, index = made
    first, second = index.packed(), again(index, X, metric, None).packed()
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
        assert array.dtype == second[name].dtype


def test_the_arrays_are_copies_that_outlive_the_index(made):
    X, Q, metric, index = made
    packed = index.packed()
    copies = {name: array.copy() for name, array in packed.items()}
    other = InvertedFile.from_packed(packed, index.quality, *X.shape, metric, None)
    expected = other.nearest_by_codes(Q, 9)
    for array in packed.values():
        array[...] = 0
    same(other.nearest_by_codes(Q, 9), expected)
    again_packed = index.packed()
    for name, array in copies.items():
        np.testing.assert_array_equal(again_packed[name], array)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("codes", CODES)
def test_lists_that_nobody_is_in_do_no_harm(metric, codes):
    X = np.repeat(rows(3), 200, axis=0)  # three points, and fifteen lists around them
    index = InvertedFile(X, metric, codes, 5)
    assert (index.packed()["sizes"] == 0).any()
    other = again(index, X, metric, X)
    same(other.nearest(X[::200], 9), index.nearest(X[::200], 9))
    np.testing.assert_allclose(other.nearest(X[::200], 9).scores, 0 if metric == "euclidean" else 1, atol=1e-6)


def test_fewer_rows_than_codes_can_be_learned_from_are_searched_exactly():
    X = rows(FEWEST["pq"] - 1)
    with pytest.raises(InputError, match="codes 'pq' need at least 256"):
        InvertedFile(X, "euclidean", "pq", 5)
    space = make_index(X, "euclidean", "pq", 5)
    assert space.quality is None
    same(space.nearest(X[:3], 4), nearest(X[:3], X, 4, "euclidean"))


def masks(n):
    """Which rows may be found: few, many, all, and those around one place only."""
    rng = np.random.default_rng(0)
    far = np.zeros(n, dtype=np.bool_)
    far[np.argsort(-np.linalg.norm(rows(n) - rows(60, seed=1)[:1], axis=1))[: n // 8]] = True
    return {
        "few": np.isin(np.arange(n), rng.choice(n, 12, replace=False)),
        "some": rng.random(n) < 0.1,
        "many": rng.random(n) < 0.7,
        "all": np.ones(n, dtype=np.bool_),
        "far away": far,
        "the last": np.arange(n) >= n - 15,
    }


@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize("index", ["exact", "sq8", "pq"])
@pytest.mark.parametrize("metric", METRICS)
def test_among_some_rows_a_small_space_finds_exactly_the_best_of_them(metric, index, which):
    X, Q = rows(600), rows(60, seed=1)[:7]
    allowed = masks(600)[which]
    some = np.flatnonzero(allowed)
    space = make_index(X, metric, index, 5)
    for k in (1, 5, len(some)):
        found = space.nearest(Q, k, allowed)
        ids, scores = nearest_by_loops(Q, X[some], k, metric)
        np.testing.assert_array_equal(found.ids, some[ids])
        np.testing.assert_allclose(found.scores, scores, atol=1e-6)


@pytest.mark.parametrize("which", ["some", "many", "all", "far away"])
def test_among_some_rows_of_a_large_space_lists_are_looked_into_until_enough_is_found(made, which, monkeypatch):
    X, Q, metric, index = made
    monkeypatch.setattr(spaces, "EXACT_UP_TO", 0)
    allowed = masks(len(X))[which]
    space = make_index(X, metric, index.quality.codes, 10, index)
    found = space.nearest(Q, 10, allowed)
    true = nearest(Q, X[allowed], 10, metric)
    assert allowed[found.ids].all()
    exact = np.einsum("md,mkd->mk", Q.astype(float), X[found.ids].astype(float))
    if metric == "euclidean":
        exact = -np.linalg.norm(Q[:, None].astype(float) - X[found.ids], axis=2)
    np.testing.assert_allclose(found.scores, exact, atol=1e-6)
    assert (found.scores[:, -1:] <= true.scores + 1e-6).all(axis=1).mean() > 0.9
    recall = np.mean(
        [len(set(a) & set(b)) / 10 for a, b in zip(found.ids, np.flatnonzero(allowed)[true.ids], strict=True)]
    )
    assert recall > 0.9


@pytest.mark.parametrize("which", MASKS)
def test_by_codes_alone_as_many_as_are_wanted_are_found_and_all_may_be(made, which):
    X, Q, metric, index = made
    allowed = masks(len(X))[which]
    k = min(10, int(allowed.sum()))
    found = again(index, X, metric, None).nearest(Q, k, allowed)
    assert found.ids.min() >= 0
    assert allowed[found.ids].all()
    assert all(len(set(ids)) == k for ids in found.ids)
    assert (np.diff(found.scores, axis=1) <= 0).all()


def test_decoded_rows_are_indexed_as_an_array_is(made):
    X, _, metric, index = made
    decoded = DecodedRows(again(index, X, metric, None), X.shape[1])
    array = to_array(decoded)
    assert decoded.shape == array.shape == X.shape
    assert len(decoded) == len(X)
    mask = np.arange(len(X)) % 7 == 0
    nobody = np.array([], dtype=np.int64)
    for some in (slice(3, 9), slice(-4, None), np.array([5, 2, 5]), np.array([-1]), mask, [4, 1], nobody):
        np.testing.assert_array_equal(decoded[some], array[some])
    ids = np.array([[1, 2, 3], [9, 9, 0]])
    np.testing.assert_array_equal(decoded.take(ids, axis=0), array.take(ids, axis=0))
    error = np.linalg.norm(array - X, axis=1)
    assert error.max() < (0.1 if index.quality.codes == "sq8" else 1.5)
    with pytest.raises(IndexError):
        decoded[len(X)]


def test_what_the_codes_say_is_what_a_search_by_codes_scores(made):
    X, Q, metric, index = made
    small = again(index, X, metric, None)
    found = small.nearest(Q, 10)
    decoded = small.decoded(found.ids.ravel()).reshape(*found.ids.shape, -1)
    exact = np.einsum("md,mkd->mk", Q, decoded) if metric == "cosine" else -np.linalg.norm(Q[:, None] - decoded, axis=2)
    np.testing.assert_allclose(found.scores, exact, atol=1e-3)


def test_a_space_of_decoded_rows_ranks_everything_by_them(made):
    X, Q, metric, index = made
    small = again(index, X, metric, None)
    decoded = DecodedRows(small, X.shape[1])
    space = make_index(decoded, metric, index.quality.codes, 10, small)
    same(space.nearest(Q, len(X)), nearest(Q, to_array(decoded), len(X), metric))
    some = np.arange(len(X)) % 9 == 0
    expected = nearest(Q, to_array(decoded)[some], 5, metric)
    same(space.nearest(Q, 5, some), expected._replace(ids=np.flatnonzero(some)[expected.ids]))


VALUES = st.sampled_from([0, 1, -1, 2, 299, 300, 2**31, 2**62, -(2**63), np.nan, np.inf, 1e18, 3e38])


@given(data=st.data())
@settings(max_examples=200, derandomize=True)
def test_whatever_the_arrays_are_they_are_refused_or_answer_with_rows_that_there_are(data):
    Q = rows(5, 8, seed=1)
    codes = data.draw(st.sampled_from(CODES))
    index = index_of(codes)
    packed = dict(index.packed())
    for name in data.draw(st.lists(st.sampled_from(sorted(packed)), min_size=1, max_size=2)):
        packed[name] = data.draw(spoilt(packed[name]))
    n, d = data.draw(st.sampled_from([(300, 8)] * 6 + [(299, 8), (0, 8), (300, 7), (2**39, 8), (300, 2**39)]))
    lie = data.draw(st.sampled_from([{}] * 6 + [{"n_probes": 0}, {"n_probes": 2**40}, {"codes": "x"}, {"n_lists": 3}]))
    try:
        other = InvertedFile.from_packed(packed, index.quality._replace(**lie), n, d, "euclidean", None)
    except (ValueError, TypeError):
        return
    found = other.nearest(Q, 9)
    assert found.ids.min() >= 0
    assert found.ids.max() < 300
    assert all(len(set(ids)) == 9 for ids in found.ids)
    assert np.isfinite(found.scores).all()


@cache
def index_of(codes):
    return InvertedFile(rows(300, 8), "euclidean", codes, 5)


def spoilt(array):
    """Arrays like this one but for a value, a type, a shape, or the order of their rows."""

    def with_value(given):
        place, value = given
        out = array.copy()
        if not out.size:
            return out
        with np.errstate(all="ignore"):
            out.reshape(-1)[place % out.size] = np.array(value).astype(out.dtype)
        return out

    types = st.sampled_from(["<f8", "<i4", "<u8", "|u1", ">i8", "<f4", "<U2"])
    return st.one_of(
        st.tuples(st.integers(0, 10**6), VALUES).map(with_value),
        types.map(lambda dtype: np.zeros_like(array, dtype=dtype)),
        st.integers(0, 400).map(lambda length: np.resize(array, (length, *array.shape[1:]))),
        st.just(array[::-1]),
        st.just(array[None]),
        st.just(np.zeros_like(array)),
        st.just(np.asfortranarray(array)),
    )
