"""Tensor product graph diffusion, by hand, against loops, and against the linear system over all pairs."""

import numpy as np
import pytest

import manifind
from manifind.baselines import diffusion as tensor_product
from manifind.baselines.diffusion import TensorProduct, tensor_diffusion
from manifind.graph.knn_graph import row_normalised, with_loops
from reference.graphs import as_csr, clusters, random_affinity
from reference.peers import tensor_by_loops


def substochastic(n, seed):
    """Q and W of a random graph, each row of Q short of some of the row of W."""
    W = row_normalised(with_loops(random_affinity(n, 5, seed)))
    Q = 0.98 * W
    Q.data[np.random.default_rng(seed).random(Q.nnz) < 0.3] *= 0.25
    return Q, W


@pytest.mark.equation(5)
def test_one_and_two_steps_on_a_path_of_three_by_hand():
    Q = as_csr([[0, 0.5, 0], [0.5, 0, 0.25], [0, 0.25, 0]])
    W = as_csr(np.eye(3))
    one = [[5 / 4, 0, 1 / 8], [0, 21 / 16, 0], [1 / 8, 0, 17 / 16]]  # Q Q^T + I
    np.testing.assert_allclose(tensor_diffusion(Q, W, np.eye(3), 1), one, rtol=1e-12)
    two = np.diag([1 + 21 / 64, 1 + 5 / 16 + 1 / 32 + 17 / 256, 1 + 21 / 256])
    two[0, 2] = two[2, 0] = 21 / 128
    np.testing.assert_allclose(tensor_diffusion(Q, W, np.eye(3), 2), two, rtol=1e-12)


@pytest.mark.equation(5)
@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_all_rows_equal_the_recursion_on_the_whole_matrix(steps):
    Q, W = substochastic(10, 0)
    whole = tensor_by_loops(Q.toarray(), W.toarray(), steps)
    np.testing.assert_allclose(tensor_diffusion(Q, W, np.eye(10), steps), whole, rtol=1e-10)


@pytest.mark.equation(5)
def test_the_limit_solves_the_linear_system_over_all_pairs():
    Q, W = substochastic(9, 1)
    q = Q.toarray()
    vec = np.linalg.solve(np.eye(81) - np.kron(q, q), np.eye(9).ravel())
    np.testing.assert_allclose(tensor_diffusion(Q, W, np.eye(9), 2000), vec.reshape(9, 9), rtol=1e-9)


@pytest.mark.equation(5)
def test_the_limit_does_not_depend_on_where_the_recursion_began():
    Q, W = substochastic(15, 2)
    from_W, from_zero = (tensor_diffusion(Q, M, np.eye(15), 2000) for M in (W, 0 * W))
    np.testing.assert_allclose(from_W, from_zero, rtol=1e-9)


def test_the_kept_edges_are_those_of_the_graph_and_rows_lose_what_lies_beyond():
    X = clusters(60, 6, 3, 0)
    model = TensorProduct(n_neighbors=4, graph="mutual").fit(X)
    narrow = TensorProduct.__mro__[1]._affinity(model, model.nodes_.descriptors, model.neighbours_)
    np.testing.assert_array_equal(model.local_.toarray() > 0, with_loops(narrow).toarray() > 0)
    kept = model.local_.toarray()[model.local_.toarray() > 0]
    np.testing.assert_array_equal(kept, model.wide_.toarray()[model.local_.toarray() > 0])
    np.testing.assert_allclose(model.wide_.sum(axis=1), 1, rtol=1e-12)
    assert (model.local_.sum(axis=1) < 1 - 1e-6).all()


@pytest.mark.equation(5)
@pytest.mark.parametrize("graph", ["mutual", "union"])
def test_the_default_width_and_steps_come_to_the_limit_where_neighbours_weigh_much(graph):
    model = TensorProduct(n_neighbors=4, graph=graph, similarity="euclidean").fit(clusters(24, 6, 3, 1))
    Q = model.local_.toarray()
    vec = np.linalg.solve(np.eye(24**2) - np.kron(Q, Q), np.eye(24).ravel())
    np.testing.assert_allclose(model._scores(model._at(np.arange(24))).ravel(), vec, atol=1e-9)


@pytest.mark.parametrize("graph", ["mutual", "union"])
@pytest.mark.parametrize("similarity", ["gaussian", "euclidean", "cosine", "cubed"])
def test_the_default_width_lets_the_sum_converge(graph, similarity):
    model = TensorProduct(n_neighbors=5, graph=graph, similarity=similarity).fit(clusters(80, 6, 4, 1))
    assert abs(np.linalg.eigvals(model.local_.toarray())).max() < 1 - 1e-6


def test_the_width_is_cut_to_the_items_there_are():
    X = clusters(12, 4, 2, 0)
    model = TensorProduct(n_neighbors=11, steps=30).fit(X)
    assert (model.wide_.toarray() > 0).all()
    assert np.isfinite(model.search(k=12).scores).all()


def test_a_width_that_leaves_nothing_out_is_refused():
    with pytest.raises(manifind.InputError, match="n_normalised = 8; expected more than n_neighbors = 8"):
        TensorProduct(n_neighbors=8, n_normalised=8).fit(clusters(30, 4, 3, 0))


def test_a_query_is_answered_alike_alone_and_among_others(monkeypatch):
    model = TensorProduct(n_neighbors=4, steps=20).fit(clusters(40, 6, 3, 0))
    together = model._scores(model._at(np.arange(40)))
    for row in (0, 17, 39):
        np.testing.assert_array_equal(model._scores(model._at(np.array([row])))[0], together[row])
    monkeypatch.setattr(tensor_product, "_NUMBERS_KEPT", 7 * 40 * 21)  # seven queries at a time
    np.testing.assert_array_equal(model._scores(model._at(np.arange(40))), together)
