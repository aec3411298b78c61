"""Mutual and union graphs: which neighbours become edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.errors import GraphError, InputError
from manifind.graph.knn_graph import local_graph, mutual_affinity, union_affinity, without_weak
from manifind.index.exact import Neighbours, graph_neighbours
from manifind.settings import GRAPH, SIMILARITY
from reference.affinity import mutual_by_loops, union_by_loops
from reference.graphs import as_csr, clusters


def lists(n, k, seed):
    """Random neighbour lists and a symmetric random similarity for them."""
    rng = np.random.default_rng(seed)
    pairs = rng.uniform(0.1, 1, size=(n, n)).astype(np.float32)
    pairs = np.maximum(pairs, pairs.T)
    ids = np.stack([rng.choice(np.delete(np.arange(n), i), size=k, replace=False) for i in range(n)])
    return ids, np.take_along_axis(pairs, ids, axis=1)


@pytest.mark.equation(8)
def test_three_points_on_a_line_by_hand():
    X = np.array([[0], [1], [3]], dtype=np.float32)  # 0 and 1 choose each other; 3 chooses 1, unanswered
    nearest_one = graph_neighbours(X, 1)
    mutual = local_graph(X, nearest_one, "mutual", "euclidean").toarray()
    np.testing.assert_array_equal(mutual, [[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]])
    union = local_graph(X, nearest_one, "union", "euclidean").toarray()
    np.testing.assert_allclose(union, [[0, 0.5, 0], [0.5, 0, 1 / 3], [0, 1 / 3, 0]], rtol=1e-6)


@pytest.mark.equation(8)
@settings(max_examples=50)
@given(st.integers(2, 14), st.integers(0, 2**16), st.data())
def test_both_graphs_equal_the_loops(n, seed, data):
    ids, similarities = lists(n, data.draw(st.integers(1, n - 1)), seed)
    np.testing.assert_array_equal(mutual_affinity(ids, similarities).toarray(), mutual_by_loops(ids, similarities))
    np.testing.assert_array_equal(union_affinity(ids, similarities).toarray(), union_by_loops(ids, similarities))


@pytest.mark.equation(8)
@pytest.mark.parametrize("similarity", SIMILARITY.choices)
@pytest.mark.parametrize("kind", GRAPH.choices)
def test_both_graphs_are_exactly_symmetric_with_a_zero_diagonal(kind, similarity):
    X = clusters(120, 6, 5, seed=0)
    A = local_graph(X, graph_neighbours(X, 7), kind, similarity)
    assert A.dtype == np.float32
    np.testing.assert_array_equal(A.toarray(), A.toarray().T)
    assert (A.diagonal() == 0).all()
    assert (A.data > 0).all()
    assert A.has_sorted_indices


@pytest.mark.equation(8)
@pytest.mark.parametrize("similarity", SIMILARITY.choices)
def test_mutual_edges_are_among_the_union_edges_with_the_same_weight(similarity):
    X = clusters(120, 6, 5, seed=1)
    found = graph_neighbours(X, 7)
    mutual, union = (local_graph(X, found, kind, similarity).toarray() for kind in ("mutual", "union"))
    assert 0 < np.count_nonzero(mutual) < np.count_nonzero(union)
    np.testing.assert_array_equal(mutual[mutual > 0], union[mutual > 0])


@pytest.mark.equation(8)
def test_everyone_a_neighbour_of_everyone_makes_the_complete_graph():
    X = clusters(12, 3, 2, seed=2)
    A = local_graph(X, graph_neighbours(X, 11), "mutual", "euclidean").toarray()
    distances = np.linalg.norm(X[:, None].astype(np.float64) - X[None], axis=2)
    np.testing.assert_allclose(A, (1 - np.eye(12)) / (1 + distances), rtol=1e-6)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_no_node_has_more_than_k_mutual_edges(k):
    X = clusters(80, 4, 3, seed=3)
    degrees = np.diff(local_graph(X, graph_neighbours(X, k), "mutual", "euclidean").indptr)
    assert degrees.max() <= k


@pytest.mark.parametrize("k", [1, 3, 8])
def test_no_node_of_the_union_graph_has_fewer_than_k_edges(k):
    X = clusters(80, 4, 3, seed=3)
    degrees = np.diff(local_graph(X, graph_neighbours(X, k), "union", "euclidean").indptr)
    assert degrees.min() >= k


def test_an_edge_between_opposite_directions_vanishes_under_cosine():
    X = np.array([[1, 0], [1, 0.1], [-1, 0]], dtype=np.float32)
    found = graph_neighbours(X, 2)
    assert local_graph(X, found, "mutual", "euclidean").nnz == 6
    A = local_graph(X, found, "mutual", "cosine")
    assert A.nnz == 2
    assert A[0, 1] > 0.9


@pytest.mark.parametrize("kind", GRAPH.choices)
def test_a_graph_without_an_edge_is_refused(kind):
    X = np.array([[1, 0], [-1, 0]], dtype=np.float32)
    with pytest.raises(GraphError, match=f"the {kind} graph of 1 neighbour over 2 items has not a single edge"):
        local_graph(X, graph_neighbours(X, 1), kind, "cosine")


def test_a_circle_of_unanswered_choices_has_no_mutual_edge():
    ids, distances = np.array([[1], [2], [0]]), np.ones((3, 1), dtype=np.float32)
    X = np.eye(3, dtype=np.float32)
    with pytest.raises(GraphError) as refusal:
        local_graph(X, Neighbours(ids, distances), "mutual", "euclidean")
    assert "union" in refusal.value.hint
    assert local_graph(X, Neighbours(ids, distances), "union", "euclidean").nnz == 6


def test_an_unknown_graph_is_refused_with_the_known_ones():
    X = clusters(10, 2, 2, seed=4)
    with pytest.raises(InputError, match=r"'directed'.*'mutual', 'union'"):
        local_graph(X, graph_neighbours(X, 2), "directed", "euclidean")


def test_an_unknown_similarity_is_refused():
    X = clusters(10, 2, 2, seed=4)
    with pytest.raises(InputError, match="similarity = 'dot'"):
        local_graph(X, graph_neighbours(X, 2), "mutual", "dot")


def test_an_edge_stays_if_it_matters_to_either_end_by_hand():
    A = as_csr([[0, 1, 0.05, 0], [1, 0, 0, 0.05], [0.05, 0, 0, 0.04], [0, 0.05, 0.04, 0]])
    kept = without_weak(A, 0.5).toarray()  # 0.05 is little to the first two, and the most that the others have
    np.testing.assert_array_equal(kept, A.toarray())
    kept = without_weak(as_csr([[0, 1, 0.05], [1, 0, 1], [0.05, 1, 0]]), 0.5).toarray()
    np.testing.assert_array_equal(kept, [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_no_node_loses_its_strongest_edge_and_the_rest_stays_symmetric(share):
    X = clusters(80, 4, 5, seed=1)
    A = local_graph(X, graph_neighbours(X, 8), "union", "gaussian")
    kept = without_weak(A, share)
    dense = kept.toarray()
    np.testing.assert_array_equal(dense, dense.T)
    np.testing.assert_array_equal(dense.max(axis=1), A.toarray().max(axis=1))
    assert kept.has_sorted_indices
    if share == 0:
        assert kept.nnz == A.nnz
