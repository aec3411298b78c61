"""The three similarities: values, symmetry, and what happens to opposite directions."""

import math

import numpy as np
import pytest

from manifind.errors import InputError
from manifind.graph.knn_graph import neighbour_similarity
from manifind.index.exact import graph_neighbours
from manifind.settings import SIMILARITY
from reference.affinity import similarity_by_loops


def case(n=40, d=4, k=6, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return X, *graph_neighbours(X, k)


def test_euclidean_similarity_is_one_over_one_plus_distance():
    ids, distances = np.array([[1, 2]]), np.array([[1.0, 3.0]], dtype=np.float32)
    X = np.zeros((3, 1), dtype=np.float32)
    assert neighbour_similarity("euclidean", X[:1], X, ids, distances).tolist() == [[0.5, 0.25]]


def test_gaussian_similarity_by_hand():
    X = np.zeros((3, 1), dtype=np.float32)
    ids, distances = np.array([[1, 2]]), np.array([[1.0, 3.0]], dtype=np.float32)
    scales = np.array([2.0, 4.0, 6.0], dtype=np.float32)  # own mean 2, so widths 0.35 * 3 and 0.35 * 4
    expected = [math.exp(-0.5 * (1 / 1.05) ** 2), math.exp(-0.5 * (3 / 1.4) ** 2)]
    out = neighbour_similarity("gaussian", X[:1], X, ids, distances, scales)
    np.testing.assert_allclose(out, [expected], rtol=1e-6)
    own = neighbour_similarity("gaussian", X[:1], X, ids, distances)
    np.testing.assert_allclose(own, [[math.exp(-0.5 * (d / 0.7) ** 2) for d in (1, 3)]], rtol=1e-6)


def test_cosine_similarity_by_hand():
    X = np.array([[2, 0], [3, 3], [0, 1], [-1, 0]], dtype=np.float32)
    ids = np.array([[1, 2, 3]])
    distances = np.ones((1, 3), dtype=np.float32)
    out = neighbour_similarity("cosine", X[:1], X, ids, distances)
    np.testing.assert_allclose(out, [[0.5**0.5, 0, 0]], rtol=1e-6)


@pytest.mark.parametrize("kind", SIMILARITY.choices)
@pytest.mark.parametrize("with_scales", [True, False])
def test_every_similarity_equals_the_loops(kind, with_scales):
    X, ids, distances = case()
    scales = distances.mean(axis=1) if with_scales else None
    out = neighbour_similarity(kind, X, X, ids, distances, scales)
    expected = similarity_by_loops(kind, X, X, ids, distances, scales)
    np.testing.assert_allclose(out, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("kind", SIMILARITY.choices)
def test_similarities_lie_between_zero_and_one_and_are_float32(kind):
    X, ids, distances = case(seed=1)
    out = neighbour_similarity(kind, X, X, ids, distances, distances.mean(axis=1))
    assert out.dtype == np.float32
    assert (out >= 0).all()
    assert (out <= 1 + 1e-6).all()


@pytest.mark.parametrize("kind", SIMILARITY.choices)
def test_similarity_is_the_same_from_both_ends(kind):
    X, ids, distances = case(n=25, k=24, seed=2)
    weights = neighbour_similarity(kind, X, X, ids, distances, distances.mean(axis=1))
    dense = np.zeros((25, 25), dtype=np.float32)
    np.put_along_axis(dense, ids, weights, axis=1)
    np.testing.assert_allclose(dense, dense.T, rtol=1e-6, atol=1e-7)


def test_gaussian_similarity_is_exactly_symmetric():
    X, ids, distances = case(n=25, k=24, seed=3)
    weights = neighbour_similarity("gaussian", X, X, ids, distances, distances.mean(axis=1))
    dense = np.zeros((25, 25), dtype=np.float32)
    np.put_along_axis(dense, ids, weights, axis=1)
    np.testing.assert_array_equal(dense, dense.T)


@pytest.mark.parametrize("kind", ["euclidean", "gaussian", "sharp"])
def test_nearer_is_more_similar(kind):
    X, ids, distances = case(seed=4)
    out = neighbour_similarity(kind, X, X, ids, distances)
    assert (np.diff(out, axis=1) <= 0).all()


def test_a_very_distant_neighbour_keeps_a_positive_gaussian_weight():
    X = np.zeros((3, 1), dtype=np.float32)
    ids, distances = np.array([[1, 2]]), np.array([[1e-6, 1e6]], dtype=np.float32)
    scales = np.full(3, 1e-6, dtype=np.float32)
    out = neighbour_similarity("gaussian", X[:1], X, ids, distances[:, ::-1].copy(), scales)
    assert (out > 0).all()


@pytest.mark.parametrize("kind", ["euclidean", "gaussian", "sharp"])
def test_neighbours_at_distance_zero_have_similarity_one(kind):
    X = np.ones((3, 2), dtype=np.float32)
    ids, distances = np.array([[1, 2]]), np.zeros((1, 2), dtype=np.float32)
    out = neighbour_similarity(kind, X[:1], X, ids, distances, np.zeros(3, dtype=np.float32))
    assert out.tolist() == [[1, 1]]


def test_a_zero_vector_has_cosine_zero_to_everything():
    X = np.array([[0, 0], [1, 0]], dtype=np.float32)
    ids, distances = np.array([[1], [0]]), np.ones((2, 1), dtype=np.float32)
    assert neighbour_similarity("cosine", X, X, ids, distances).tolist() == [[0], [0]]


def test_an_unknown_similarity_is_refused_with_the_known_ones():
    X, ids, distances = case()
    with pytest.raises(InputError, match=r"'manhattan'.*'euclidean', 'gaussian', 'cosine'"):
        neighbour_similarity("manhattan", X, X, ids, distances)
