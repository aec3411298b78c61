"""Walks: their leading directions against the whole inverse, cosines and ends of them, and what weights mean."""

import numpy as np
import pytest
import torch

from manifind.graph.knn_graph import local_graph, transition
from manifind.index.exact import graph_neighbours
from manifind.index.fit_context import FitContext
from manifind.model import walks as walk_features
from manifind.model.walks import ALPHA, beside, find_walks
from reference.graphs import as_csr, clusters, path_of_three, random_affinity

CPU = torch.device("cpu")


def inverse(S, alpha=ALPHA):
    return np.linalg.inv(np.eye(S.shape[0]) - alpha * S.toarray().astype(np.float64))


def some_graph(n=120, n_clusters=6, seed=0):
    X = clusters(n, 6, n_clusters, seed)
    return transition(local_graph(X, graph_neighbours(X, 8), "union", "gaussian"))


def test_walks_on_a_path_of_three_are_the_rows_of_the_inverse():
    S = transition(path_of_three())
    walks = find_walks(S, 3, CPU, FitContext())
    U = walks.features * walks.lengths / walks.gains
    W = (U * walks.gains) @ U.T
    np.testing.assert_allclose(W, inverse(S), rtol=1e-4)


@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_shorter_walks_are_the_inverse_with_another_alpha(alpha):
    S = some_graph()
    W = inverse(S, alpha)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    F = find_walks(S, 120, CPU, FitContext(), alpha).features.numpy()
    np.testing.assert_allclose(F @ F.T, W @ W.T, atol=2e-4)


def test_features_of_full_width_have_the_cosines_of_the_rows_of_the_inverse():
    S = some_graph()
    W = inverse(S)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    F = find_walks(S, 120, CPU, FitContext()).features.numpy()
    np.testing.assert_allclose(F @ F.T, W @ W.T, atol=2e-4)


@pytest.mark.parametrize("width", [50, 100])
def test_narrow_features_keep_who_is_near(width):
    S = some_graph(200, 10, seed=1)
    W = inverse(S)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    F = find_walks(S, width, CPU, FitContext()).features.numpy()
    assert F.shape == (200, width)
    assert (np.linalg.norm(F, axis=1) <= 1 + 1e-5).all()
    true, found = (np.argsort(-(M @ M.T), axis=1)[:, :11] for M in (W, F))
    shared = np.mean([len(set(a) & set(b)) / 11 for a, b in zip(true, found, strict=True)])
    assert shared > 0.9


def test_ends_are_the_largest_entries_of_the_inverse_and_never_oneself():
    S = some_graph(60, 3, seed=2)
    W = inverse(S)
    np.fill_diagonal(W, 0)
    ends = find_walks(S, 60, CPU, FitContext()).ends("exact", None, FitContext()).toarray()
    assert (np.diag(ends) == 0).all()
    assert (ends >= 0).all()
    assert ((ends > 0).sum(axis=1) <= 20).all()
    np.testing.assert_allclose(ends.max(axis=1), 1, rtol=1e-6)
    for i in range(60):
        j = np.flatnonzero(ends[i])
        np.testing.assert_allclose(ends[i, j], W[i, j] / W[i, j].max(), rtol=2e-2, atol=1e-3)


def test_a_node_without_an_edge_walks_nowhere():
    A = random_affinity(30, 4, 0).toarray()
    A[7] = A[:, 7] = 0
    walks = find_walks(transition(as_csr(A)), 30, CPU, FitContext())
    assert walks.ends("exact", None, FitContext())[[7]].nnz == 0
    F = walks.features
    others = torch.cat([F[:7], F[8:]])
    assert (others @ F[7]).abs().max() < 1e-4


def test_the_same_seed_gives_the_same_walks():
    S = some_graph()
    first, second = (find_walks(S, 8, CPU, FitContext(5)).features for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_the_cosine_is_one_part_of_the_layers_and_a_weight_of_the_others_by_hand():
    parts = [torch.tensor([[2.0], [1.0]]), torch.tensor([[0.0], [1.0]])]
    others = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    H = torch.cat(beside(parts, others, 3.0), dim=1)
    cosine = torch.nn.functional.cosine_similarity(H[:1], H[1:]).item()
    assert cosine == pytest.approx((0.5**0.5 + 3 * 0.6) / (1 + 3), abs=1e-6)


@pytest.mark.parametrize("columns", [1, 5, 37])
def test_walks_found_a_few_columns_at_a_time_are_the_same(monkeypatch, columns):
    S = some_graph()
    expected = find_walks(S, 30, CPU, FitContext())
    monkeypatch.setattr(walk_features, "_FEWEST_COLUMNS", columns)
    monkeypatch.setattr(walk_features, "_FLOATS_PER_BLOCK", 1)
    found = find_walks(S, 30, CPU, FitContext())
    torch.testing.assert_close(found.gains, expected.gains, rtol=1e-4, atol=0)
    torch.testing.assert_close(
        found.features @ found.features.T, expected.features @ expected.features.T, rtol=0, atol=1e-4
    )


def test_ends_among_some_nodes_are_those_among_all_less_what_is_missing():
    walks, nodes = find_walks(some_graph(60, 3, seed=2), 60, CPU, FitContext()), np.arange(0, 60, 2)
    all_ends = walks.ends("exact", None, FitContext()).toarray()
    assert (all_ends[nodes][:, 1::2] > 0).any()
    np.testing.assert_array_equal(walks.ends("exact", nodes, FitContext()).toarray(), all_ends[np.ix_(nodes, nodes)])
