"""Query feature expansion: weights, unit rows, a second pass, and queries that nothing resembles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.graph.preprocess import unit_rows
from manifind.index.vector_index import make_index
from manifind.search import feature_model as qfe
from manifind.search.feature_model import QuerySettings, weighted_features
from reference.qfe import expanded_by_loops, weighted_by_loops


def expand_queries(Q, X, h, k, similarity, passes):
    spaces = make_index(X, "euclidean", "exact", k), make_index(h, "cosine", "exact", k)
    return qfe.expand_queries(Q, *spaces, QuerySettings(k, similarity, passes)).features


KINDS = ["euclidean", "gaussian", "cosine"]
AXES = np.eye(3, dtype=np.float32)
LINE = np.array([[0], [1], [4]], dtype=np.float32)  # three nodes on a line


def random_rows(n, d, seed):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


@pytest.mark.equation(23)
def test_the_weights_are_the_similarities_and_the_sum_is_scaled_to_length_1():
    ids = np.array([[0, 1], [1, 2]])
    s = np.array([[0.3, 0.4], [1.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(weighted_features(AXES, ids, s), [[0.6, 0.8, 0], [0, 1, 0]], rtol=1e-6)


@pytest.mark.equation(23)
def test_a_query_between_three_nodes_leans_to_the_nearer_one():
    # From 2 the distances are 2, 1 and 2: similarities 1/3, 1/2 and 1/3, a direction of (2, 3, 2).
    expected = np.array([[2, 3, 2]]) / np.sqrt(17)
    found = expand_queries(np.array([[2]], dtype=np.float32), LINE, AXES, 3, "euclidean", 1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.equation(23)
def test_the_second_pass_looks_for_neighbours_among_the_features():
    # From 3 the nodes at 4 and 1 have similarities 1/2 and 1/3, and opposite features: (0, 1) comes out.
    # There the node at 4 is at distance 0 and the node at 0 at sqrt(2): similarities 1 and sqrt(2) - 1.
    h, query = np.array([[1, 0], [0, -1], [0, 1]], dtype=np.float32), np.array([[3]], dtype=np.float32)
    np.testing.assert_allclose(expand_queries(query, LINE, h, 2, "euclidean", 1), [[0, 1]], atol=1e-7)
    expected = [[np.sin(np.pi / 8), np.cos(np.pi / 8)]]
    np.testing.assert_allclose(expand_queries(query, LINE, h, 2, "euclidean", 2), expected, rtol=1e-6)


@pytest.mark.equation(23)
@pytest.mark.parametrize("passes", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_expansion_equals_the_loops(kind, passes):
    X, h, Q = random_rows(90, 4, 0), unit_rows(random_rows(90, 5, 1)), random_rows(7, 4, 2)
    found = expand_queries(Q, X, h, 4, kind, passes)
    for query, row in zip(Q, found, strict=True):
        np.testing.assert_allclose(row, expanded_by_loops(query, X, h, 4, kind, passes), rtol=0, atol=2e-5)


@pytest.mark.equation(23)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), m=st.integers(1, 5))
@settings(max_examples=60, derandomize=True)
def test_weighted_features_equal_the_loops(seed, k, m):
    rng = np.random.default_rng(seed)
    h = unit_rows(rng.normal(size=(6, 3)).astype(np.float32))
    ids = np.array([rng.permutation(6)[:k] for _ in range(m)])
    s = np.maximum(rng.uniform(-0.5, 1, size=(m, k)), 0).astype(np.float32)
    found = weighted_features(h, ids, s)
    for row in range(m):
        np.testing.assert_allclose(found[row], weighted_by_loops(h, ids[row], s[row]), rtol=0, atol=1e-5)


@pytest.mark.equation(23)
@pytest.mark.parametrize("kind", KINDS)
def test_with_one_neighbour_the_query_takes_the_feature_of_that_item(kind):
    X, h = random_rows(40, 4, 3), unit_rows(random_rows(40, 6, 4))
    nearest = [7, 31, 7]
    Q = X[nearest] * np.float32(1.01)
    np.testing.assert_allclose(expand_queries(Q, X, h, 1, kind, 1), h[nearest], rtol=0, atol=2e-7)


@pytest.mark.equation(23)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), passes=st.integers(1, 2))
@settings(max_examples=40, derandomize=True)
def test_expanded_rows_have_length_1(seed, kind, passes):
    X, h, Q = random_rows(30, 3, seed), unit_rows(random_rows(30, 4, seed + 1)), random_rows(6, 3, seed + 2)
    lengths = np.linalg.norm(expand_queries(Q, X, h, 5, kind, passes).astype(np.float64), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)


@pytest.mark.equation(23)
@given(seed=st.integers(0, 10**6), factor=st.floats(0.01, 100))
@settings(max_examples=40, derandomize=True)
def test_the_scale_of_the_similarities_does_not_matter(seed, factor):
    rng = np.random.default_rng(seed)
    h = unit_rows(rng.normal(size=(8, 5)).astype(np.float32))
    ids, s = rng.permutation(8)[None, :4], rng.uniform(0.1, 1, size=(1, 4)).astype(np.float32)
    scaled = weighted_features(h, ids, s * np.float32(factor))
    np.testing.assert_allclose(scaled, weighted_features(h, ids, s), rtol=0, atol=1e-5)


@pytest.mark.equation(23)
@pytest.mark.parametrize("passes", [1, 2])
def test_a_query_opposite_to_everything_takes_its_neighbours_alike(passes):
    X = unit_rows(np.array([[1, 0.1], [1, 0.2], [1, 0.3]], dtype=np.float32))
    query = np.array([[-1, 0]], dtype=np.float32)  # every cosine is negative
    found = expand_queries(query, X, AXES, 3, "cosine", passes)
    np.testing.assert_allclose(found, [[3**-0.5] * 3], rtol=1e-6)


def test_a_zero_query_is_no_nan():
    query = np.zeros((1, 2), dtype=np.float32)
    for kind in KINDS:
        found = expand_queries(query, unit_rows(random_rows(5, 2, 0)), np.eye(5, dtype=np.float32), 3, kind, 2)
        assert np.isfinite(found).all()
        assert np.linalg.norm(found) == pytest.approx(1)


def test_features_that_cancel_give_zeros_and_no_nan():
    h = np.array([[1, 0], [-1, 0]], dtype=np.float32)
    s = np.array([[0.5, 0.5]], dtype=np.float32)
    np.testing.assert_array_equal(weighted_features(h, np.array([[0, 1]]), s), [[0, 0]])


def test_more_neighbours_than_items_take_all_items():
    X, h, Q = random_rows(4, 3, 0), unit_rows(random_rows(4, 5, 1)), random_rows(2, 3, 2)
    all_of_them = expand_queries(Q, X, h, 4, "euclidean", 1)
    np.testing.assert_array_equal(expand_queries(Q, X, h, 50, "euclidean", 1), all_of_them)


def test_nothing_given_is_written_to():
    given_arrays = random_rows(30, 3, 0), unit_rows(random_rows(30, 4, 1)), random_rows(5, 3, 2)
    X, h, Q = (array.copy() for array in given_arrays)
    for array in (X, h, Q):
        array.flags.writeable = False
    expand_queries(Q, X, h, 4, "cosine", 2)
    for array, before in zip((X, h, Q), given_arrays, strict=True):
        np.testing.assert_array_equal(array, before)
