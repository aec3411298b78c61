"""Parts of a graph: as many nodes as asked for, around those they grow from, and the edges between them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from manifind.graph.subgraph import induced, sample_subgraph
from reference.graphs import as_csr, path_of_three, random_affinity


def path(n):
    A = np.zeros((n, n), dtype=np.float32)
    A[np.arange(n - 1), np.arange(1, n)] = 1
    return as_csr(A + A.T)


@given(st.integers(2, 60), st.integers(1, 80), st.integers(0, 2**32 - 1))
def test_a_part_has_as_many_nodes_as_asked_for_each_once_and_rising(n, most, seed):
    part = sample_subgraph(random_affinity(n, 1, seed % 7), most, seed)
    assert len(part) == min(most, n)
    assert (np.diff(part) > 0).all()
    assert ((part >= 0) & (part < n)).all()


@given(st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_a_part_of_a_path_is_one_piece(most, seed):
    """It grows from one node for each hundred, so here from one."""
    part = sample_subgraph(path(60), most, seed)
    assert (np.diff(part) == 1).all()


def test_where_nothing_more_is_near_it_begins_again_elsewhere():
    A = as_csr(np.kron(np.eye(10, dtype=np.float32), path_of_three().toarray()))
    part = sample_subgraph(A, 12, seed=0)
    assert len(part) == 12
    pieces = np.unique(part // 3, return_counts=True)[1]
    assert (pieces == 3).sum() >= 3


def test_the_same_seed_draws_the_same_part_and_another_another():
    A = random_affinity(200, 4, 0)
    np.testing.assert_array_equal(sample_subgraph(A, 50, 1), sample_subgraph(A, 50, 1))
    assert (sample_subgraph(A, 50, 1) != sample_subgraph(A, 50, 2)).any()


def test_neighbours_are_inside_more_often_than_by_chance():
    A = path(1000)
    part = sample_subgraph(A, 200, seed=0)
    assert induced(A, part).nnz > 0.9 * A[part].nnz


@given(st.integers(3, 30), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_what_a_part_has_of_the_edges_are_all_those_between_its_nodes(n, most, seed):
    A = random_affinity(n, 3, seed % 11)
    part = sample_subgraph(A, most, seed)
    np.testing.assert_array_equal(induced(A, part).toarray(), A.toarray()[np.ix_(part, part)])
