"""Self-diffusion, row by row."""

import numpy as np
import pytest

import manifind
from manifind.baselines.diffusion import SelfDiffusion, self_diffusion
from manifind.graph.knn_graph import with_loops
from reference.graphs import as_csr, clusters, random_affinity
from reference.peers import looped_by_loops, self_diffusion_by_loops


def test_one_step_on_two_neighbours_and_a_lone_node_by_hand():
    W = with_loops(as_csr([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]]))  # row sums 3/2, 3/2, 1
    # W P = [[5/6, 2/3, 0], [2/3, 5/6, 0], [0, 0, 1]]; plus I; columns over the row sums
    expected = [[11 / 9, 4 / 9, 0], [4 / 9, 11 / 9, 0], [0, 0, 2]]
    np.testing.assert_allclose(self_diffusion(W, np.eye(3), 1), expected, rtol=1e-12)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_all_rows_equal_the_recursion_on_the_whole_matrix(steps):
    A = random_affinity(12, 3, 0)
    whole = self_diffusion_by_loops(looped_by_loops(A.toarray()), steps)
    np.testing.assert_allclose(self_diffusion(with_loops(A), np.eye(12), steps), whole, rtol=1e-10)


def test_after_very_many_steps_only_the_component_of_the_query_counts():
    A = as_csr(np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3)))
    scores = self_diffusion(with_loops(A), np.eye(6), 500)
    inside = np.kron(np.eye(2), np.ones((3, 3))) > 0
    assert (scores[~inside] == 0).all()
    np.testing.assert_allclose(scores[inside], 500 / 9, rtol=0.02)  # 1 / 3 a step, over a row sum of 3


def test_the_diffused_affinity_is_symmetric_up_to_its_first_term():
    A = random_affinity(20, 4, 1)
    W = with_loops(A)
    both = self_diffusion(W, np.eye(20), 9) - self_diffusion(W, np.eye(20), 8)  # P^9 D^-1 and what W_0 adds
    degrees = W.sum(axis=1)
    P = W.toarray() / degrees[:, None]
    first = degrees[:, None] * (np.linalg.matrix_power(P, 10) - np.linalg.matrix_power(P, 9)) / degrees
    np.testing.assert_allclose(both - first, (both - first).T, atol=1e-12)


def test_a_query_is_answered_alike_alone_and_among_others():
    model = SelfDiffusion(n_neighbors=4).fit(clusters(40, 6, 3, 0))
    together = model._scores(model._at(np.arange(40)))
    for row in (0, 17, 39):
        np.testing.assert_array_equal(model._scores(model._at(np.array([row])))[0], together[row])


def test_a_node_without_an_edge_is_followed_by_what_is_nearest():
    X = np.array([[0, 0], [0, 1], [1, 0], [1.1, 1], [50, 0], [0, 90]], dtype=np.float32)
    model = SelfDiffusion(preprocess="none", n_neighbors=2, graph="mutual").fit(X)
    assert model.affinity_[[4]].nnz == 0
    ids, scores = model.search(X[4:5], k=6)
    assert ids[0].tolist() == [4, 3, 2, 0, 1, 5]
    assert scores[0, 0] > 0 > scores[0, 1]


@pytest.mark.parametrize("steps", [-1, 1.5, None])
def test_a_number_of_steps_that_is_none_is_refused(steps):
    with pytest.raises(manifind.InputError, match=r"steps = .*expected a whole number of at least 0"):
        SelfDiffusion(steps=steps).fit(clusters(30, 4, 3, 0))
