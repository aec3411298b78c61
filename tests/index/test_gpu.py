"""The engine of a GPU, tried on the CPU: its neighbours are faiss's, its centres those of k-means."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.graph.anchors import kmeans_anchors
from manifind.index import exact as neighbours
from manifind.index.exact import current_backend, graph_neighbours, nearest, search_backend
from manifind.index.gpu import DeviceSearch, MemoryBudget
from manifind.index.vector_index import EXACT_UP_TO, VectorIndex

CPU = torch.device("cpu")


def cloud(n, d, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return np.ascontiguousarray(X / np.linalg.norm(X, axis=1, keepdims=True))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("k", [1, 7, 30])
def test_neighbours_are_those_of_faiss_bit_for_bit(metric, k):
    X, Q = cloud(500, 9), cloud(40, 9, 1)
    expected = nearest(Q, X, k, metric)
    with search_backend(DeviceSearch(MemoryBudget(CPU))):
        found = nearest(Q, X, k, metric)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_ties_are_broken_by_position_as_everywhere(seed, k):
    """Whole numbers in few places: most distances are shared by many."""
    X = np.random.default_rng(seed).integers(0, 2, size=(200, 4)).astype(np.float32)
    expected = nearest(X[:20], X, k, "euclidean")
    with search_backend(DeviceSearch(MemoryBudget(CPU))):
        found = nearest(X[:20], X, k, "euclidean")
    np.testing.assert_array_equal(found.ids, expected.ids)


def test_the_graph_is_the_same(monkeypatch):
    X = cloud(300, 6)
    expected = graph_neighbours(X, 10)
    with search_backend(DeviceSearch(MemoryBudget(CPU))):
        found = graph_neighbours(X, 10)
    np.testing.assert_array_equal(found.ids, expected.ids)
    monkeypatch.setattr(neighbours, "has_faiss", lambda: False)
    np.testing.assert_array_equal(graph_neighbours(X, 10).ids, expected.ids)


def test_a_database_is_sent_once_and_another_one_anew():
    engine = DeviceSearch(MemoryBudget(CPU))
    X, Y = cloud(300, 5), cloud(300, 5, 2)
    first = engine._on_device(X)[0]
    assert engine._on_device(X[:])[0] is first
    assert engine._on_device(Y)[0] is not first


def test_centres_are_means_of_those_nearest_to_them():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400, 3)) * 0.1 + np.repeat(np.eye(3) * 5, [100, 150, 150], axis=0)).astype(np.float32)
    with search_backend(DeviceSearch(MemoryBudget(CPU))):
        U = kmeans_anchors(X, 12, seed=1)
        again = kmeans_anchors(X, 12, seed=1)
    np.testing.assert_array_equal(U, again)
    of = np.argmin(((X[:, None] - U[None]) ** 2).sum(2), axis=1)
    for centre in np.unique(of):
        np.testing.assert_allclose(U[centre], X[of == centre].mean(axis=0), atol=0.05)


def test_with_an_engine_large_databases_are_searched_exactly_and_afterwards_as_before():
    X = cloud(EXACT_UP_TO + 1, 2)
    with search_backend(DeviceSearch(MemoryBudget(CPU))):
        assert VectorIndex(X, "euclidean", "auto", 5).quality is None
    assert current_backend() is None


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from(["euclidean", "cosine"]), st.booleans())
def test_a_database_that_finds_no_room_is_searched_in_parts_and_gives_the_same(seed, k, metric, has_ties):
    X = cloud(200, 4, seed)
    if has_ties:
        X = np.random.default_rng(seed).integers(0, 2, size=(200, 4)).astype(np.float32)
    expected = nearest(X[:20], X, k, metric)
    with search_backend(DeviceSearch(MemoryBudget(CPU, 3 * 16 * 40))):  # a third of it holds 40 rows
        found = nearest(X[:20], X, k, metric)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_centres_from_parts_of_the_rows_are_those_from_all():
    X = cloud(300, 4)
    whole, parts = (
        DeviceSearch(room).centres(X, 6, 5, seed=0) for room in (MemoryBudget(CPU), MemoryBudget(CPU, 3 * 88 * 40))
    )
    np.testing.assert_allclose(parts, whole, atol=1e-6)
