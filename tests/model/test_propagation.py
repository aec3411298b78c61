"""Sparse times dense, forwards and backwards."""

import numpy as np
import pytest
import torch

from manifind.graph.knn_graph import transition
from manifind.graph.subgraph import breadth_first, rows_in_new_order
from manifind.model.layers import Propagation
from reference.graphs import path_of_three, random_affinity

CPU = torch.device("cpu")


def test_one_hop_along_a_path_of_three_by_hand():
    S = Propagation(path_of_three(), CPU)
    out = S @ torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]])
    assert out.tolist() == [[0, 1], [1.5, 1], [0, 0.5]]
    assert len(S) == 3


@pytest.mark.parametrize("seed", range(3))
def test_a_hop_and_its_gradient_equal_the_dense_product(seed):
    A = random_affinity(30, 3, seed)
    nodes, counts = breadth_first(A, np.array([1, 5]), 3)
    block = rows_in_new_order(transition(A), nodes, counts[1])  # a wide block, columns unsorted
    S, dense = Propagation(block, CPU), torch.from_numpy(block.toarray())
    H = torch.randn(len(nodes), 4, generator=torch.Generator().manual_seed(seed), requires_grad=True)
    G = torch.randn(len(S), 4, generator=torch.Generator().manual_seed(seed + 1))
    out = S @ H
    out.backward(G)
    torch.testing.assert_close(out, dense @ H, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(H.grad, dense.T @ G, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(S.backwards(G), dense.T @ G, rtol=1e-5, atol=1e-6)


def test_a_symmetric_matrix_is_its_own_transpose():
    S = Propagation(transition(random_affinity(20, 3, 4)), CPU, symmetric=True)
    assert S.transpose is S.block
    G = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(S.backwards(G), S @ G)


def test_features_need_not_be_contiguous():
    S = Propagation(transition(random_affinity(20, 3, 5)), CPU)
    H = torch.randn(6, 20, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(S @ H.T, S @ H.T.contiguous())


def test_the_gradient_agrees_with_finite_differences():
    S = Propagation(random_affinity(8, 3, 6).astype(np.float64), CPU)
    H = torch.randn(8, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(lambda H: S @ H, (H,))
