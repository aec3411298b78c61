"""The part of the graph within some hops, and its matrix in the new order."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.graph.subgraph import breadth_first, neighbours_of, rows_in_new_order
from reference.graphs import path_of_three, random_affinity
from reference.subgraph import hops_by_loops


def test_hops_along_a_path_of_three():
    S = path_of_three()
    assert breadth_first(S, np.array([2]), 0)[0].tolist() == [2]
    assert breadth_first(S, np.array([2]), 1)[0].tolist() == [2, 1]
    nodes, counts = breadth_first(S, np.array([2]), 2)
    assert nodes.tolist() == [2, 1, 0]
    assert counts.tolist() == [1, 2, 3]


@settings(max_examples=60)
@given(st.integers(1, 25), st.floats(0, 4), st.integers(0, 5), st.integers(0, 2**16))
def test_breadth_first_equals_the_loops(n, mean_degree, hops, seed):
    A = random_affinity(n, mean_degree, seed)
    rng = np.random.default_rng(seed)
    seeds = rng.choice(n, size=rng.integers(1, min(n, 4) + 1), replace=False)
    nodes, counts = breadth_first(A, seeds, hops)
    distance = hops_by_loops(A.toarray(), seeds, hops)
    assert sorted(nodes.tolist()) == sorted(distance)
    assert [distance[node] for node in nodes.tolist()] == sorted(distance.values())
    expected = [sum(value <= hop for value in distance.values()) for hop in range(hops + 1)]
    assert counts.tolist() == expected


def test_seeds_keep_their_order_and_later_nodes_rise():
    A = random_affinity(40, 3, 1)
    seeds = np.array([30, 4, 17])
    nodes, counts = breadth_first(A, seeds, 2)
    assert nodes[:3].tolist() == [30, 4, 17]
    for start, end in itertools.pairwise(counts):
        shell = nodes[start:end].tolist()
        assert shell == sorted(shell)


def test_a_node_without_an_edge_reaches_only_itself():
    A = random_affinity(5, 0, 0)
    nodes, counts = breadth_first(A, np.array([3]), 4)
    assert nodes.tolist() == [3]
    assert counts.tolist() == [1] * 5


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_listed_one_node_after_the_other(seed):
    A = random_affinity(15, 3, seed)
    nodes = np.array([7, 2, 7, 14])
    expected = [other for node in nodes for other in range(15) if A[node, other] != 0]
    assert neighbours_of(A, nodes).tolist() == expected
    assert neighbours_of(A, np.array([], dtype=np.int64)).tolist() == []


@pytest.mark.parametrize("seed", range(5))
def test_rows_in_new_order_are_the_dense_submatrix(seed):
    A = random_affinity(30, 3, seed)
    nodes, counts = breadth_first(A, np.array([3, 21]), 3)
    n_rows = counts[2]
    block = rows_in_new_order(A, nodes, n_rows)
    assert block.shape == (n_rows, len(nodes))
    np.testing.assert_array_equal(block.toarray(), A.toarray()[np.ix_(nodes[:n_rows], nodes)])


def test_no_rows_at_all_is_an_empty_block():
    block = rows_in_new_order(random_affinity(10, 3, 0), np.array([4, 2]), 0)
    assert block.shape == (0, 2)
    assert block.nnz == 0


def test_the_graph_is_not_written_to():
    A = random_affinity(30, 3, 6)
    before = A.toarray()
    nodes, counts = breadth_first(A, np.array([3]), 4)
    rows_in_new_order(A, nodes, counts[-2])
    np.testing.assert_array_equal(A.toarray(), before)
