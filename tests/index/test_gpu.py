"""The engine of a GPU, tried on the CPU: its neighbours are faiss's, its centres those of k-means."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.graph.anchors import kmeans_anchors
from manifind.graph.manifold import build_manifold
from manifind.index import exact as neighbours
from manifind.index.exact import graph_neighbours, nearest
from manifind.index.fit_context import FitContext, MemoryBudget
from manifind.index.gpu import GpuEngine, GpuIndex
from manifind.index.vector_index import EXACT_UP_TO, ExactIndex, make_index
from manifind.settings import GradNetSettings


def cloud(n, d, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return np.ascontiguousarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def on_device(X, metric="euclidean", bytes_=math.inf):
    return GpuIndex(X, metric, MemoryBudget("cpu", bytes_))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("k", [1, 7, 30])
def test_neighbours_are_those_of_faiss_bit_for_bit(metric, k):
    X, Q = cloud(500, 9), cloud(40, 9, 1)
    found, expected = on_device(X, metric).nearest(Q, k), nearest(Q, X, k, metric)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_ties_are_broken_by_position_as_everywhere(seed, k):
    """Whole numbers in few places: most distances are shared by many."""
    X = np.random.default_rng(seed).integers(0, 2, size=(200, 4)).astype(np.float32)
    expected = nearest(X[:20], X, k, "euclidean")
    np.testing.assert_array_equal(on_device(X).nearest(X[:20], k).ids, expected.ids)


def test_among_some_rows_it_finds_what_an_exact_index_finds():
    X, allowed = cloud(500, 5), np.arange(500) % 3 == 0
    found, expected = on_device(X).nearest(X[:9], 4, allowed), ExactIndex(X, "euclidean").nearest(X[:9], 4, allowed)
    np.testing.assert_array_equal(found.ids, expected.ids)


def test_the_graph_is_the_same(monkeypatch):
    X = cloud(300, 6)
    expected = graph_neighbours(X, 10)
    found = graph_neighbours(X, 10, search=on_device(X).nearest)
    np.testing.assert_array_equal(found.ids, expected.ids)
    monkeypatch.setattr(neighbours, "has_faiss", lambda: False)
    np.testing.assert_array_equal(graph_neighbours(X, 10).ids, expected.ids)


def test_rows_are_sent_once():
    index = on_device(cloud(300, 5))
    first = index._on_device(slice(0, 300))[0]
    assert index._on_device(slice(0, 300))[0] is first
    assert index._on_device(slice(0, 100))[0] is not first


def test_centres_are_means_of_those_nearest_to_them():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400, 3)) * 0.1 + np.repeat(np.eye(3) * 5, [100, 150, 150], axis=0)).astype(np.float32)
    U, again = (kmeans_anchors(X, 12, 1, GpuEngine(MemoryBudget())) for _ in range(2))
    np.testing.assert_array_equal(U, again)
    of = np.argmin(((X[:, None] - U[None]) ** 2).sum(2), axis=1)
    for centre in np.unique(of):
        np.testing.assert_allclose(U[centre], X[of == centre].mean(axis=0), atol=0.05)


def test_with_the_engine_of_a_gpu_large_databases_are_searched_exactly():
    index = make_index(cloud(EXACT_UP_TO + 1, 2), "euclidean", "auto", 5, engine=GpuEngine(MemoryBudget()))
    assert isinstance(index, GpuIndex)
    assert index.quality is None


def test_a_manifold_built_with_it_is_that_of_the_cpu():
    X, gpu = cloud(300, 6), FitContext(engine=GpuEngine(MemoryBudget()))
    one, two = (build_manifold(X, GradNetSettings(n_neighbors=7), context) for context in (gpu, FitContext()))
    np.testing.assert_array_equal(one.affinity.toarray(), two.affinity.toarray())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from(["euclidean", "cosine"]), st.booleans())
def test_a_database_that_does_not_fit_is_searched_in_parts_and_gives_the_same(seed, k, metric, has_ties):
    X = cloud(200, 4, seed)
    if has_ties:
        X = np.random.default_rng(seed).integers(0, 2, size=(200, 4)).astype(np.float32)
    expected = nearest(X[:20], X, k, metric)
    found = on_device(X, metric, 3 * 16 * 40).nearest(X[:20], k)  # a third of it holds 40 rows
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_centres_from_parts_of_the_rows_are_those_from_all():
    X = cloud(300, 4)
    whole, parts = (
        GpuEngine(budget).kmeans(X, 6, 5, seed=0) for budget in (MemoryBudget(), MemoryBudget("cpu", 3 * 88 * 40))
    )
    np.testing.assert_allclose(parts, whole, atol=1e-6)
