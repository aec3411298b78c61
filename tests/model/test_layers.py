"""The diffusion layer and the GCN layer: messages by hand and by loops, gradients, limits."""

import numpy as np
import pytest
import torch

from manifind.graph.knn_graph import renormalised, transition
from manifind.model import layers as diffusion_layer
from manifind.model import layers as row_slices
from manifind.model.layers import DiffusionLayer, GCNLayer, Propagation, first_order, second_order, xavier_uniform
from reference.graphs import as_csr, path_of_three, random_affinity
from reference.layers import diffusion_layer_by_loops, first_order_by_loops, gcn_layer_by_loops, second_order_by_loops

CPU = torch.device("cpu")
HAND_H = [[1.0, 2.0], [3.0, -1.0], [2.0, 4.0]]  # on the path 0 - 1 - 2 with weights 1/2 and 1/4
HAND_SH = [[1.5, -0.5], [1.0, 2.0], [0.75, -0.25]]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=generator(seed), dtype=dtype)


def hop(S):
    return Propagation(S, CPU)


def diffusion_layer_with(W1, W2, self_weight=1.0):
    layer = DiffusionLayer(*np.shape(W1), self_weight, generator())
    layer.W1.data, layer.W2.data = torch.as_tensor(W1), torch.as_tensor(W2)
    return layer


def gcn_layer_with(W, self_weight=1.0):
    layer = GCNLayer(*np.shape(W), self_weight, generator())
    layer.W.data = torch.as_tensor(W)
    return layer


def composed(S, H, W1, W2, self_weight):
    """The layer's formula in plain autograd, with a dense S."""
    SH = S @ H
    return (self_weight * H + SH) @ W1 + S @ (SH * H) @ W2


@pytest.mark.equation(12, 13)
def test_first_order_messages_on_a_path_of_three_by_hand():
    H, SH = torch.tensor(HAND_H), hop(path_of_three()) @ torch.tensor(HAND_H)
    assert SH.tolist() == HAND_SH
    assert first_order(H, SH, 0.0).tolist() == HAND_SH
    assert first_order(H, SH, 1.0).tolist() == [[2.5, 1.5], [4, 1], [2.75, 3.75]]


@pytest.mark.equation(14, 15)
def test_second_order_messages_on_a_path_of_three_by_hand():
    S, H = hop(path_of_three()), torch.tensor(HAND_H)
    through = second_order(H, S @ H)
    assert through.tolist() == [[1.5, -1], [3, -2], [1.5, -1]]
    assert (S @ through).tolist() == [[1.5, -1], [1.125, -0.75], [0.75, -0.5]]


@pytest.mark.equation(11, 16)
def test_the_diffusion_layer_on_a_path_of_three_by_hand():
    S = hop(path_of_three())
    layer = diffusion_layer_with([[1.0], [1.0]], [[2.0], [0.0]])
    assert layer(S, S, torch.tensor(HAND_H)).tolist() == [[4 + 3], [5 + 2.25], [6.5 + 1.5]]


@pytest.mark.equation(6)
def test_the_gcn_layer_on_a_path_of_three_by_hand():
    S = hop(path_of_three())
    layer = gcn_layer_with([[1.0], [2.0]])
    assert layer(S, S, torch.tensor(HAND_H)).tolist() == [[5.5], [6], [10.25]]
    layer = gcn_layer_with([[1.0], [2.0]], self_weight=0.0)
    assert layer(S, S, torch.tensor(HAND_H)).tolist() == [[0.5], [5], [0.25]]


@pytest.mark.equation(12, 13)
@pytest.mark.parametrize("self_weight", [0.0, 1.0])
def test_first_order_messages_equal_the_loops(self_weight):
    S, H, W1 = transition(random_affinity(9, 3, 0)), normal(9, 3), normal(3, 4, seed=1)
    out = first_order(H, hop(S) @ H, self_weight) @ W1
    np.testing.assert_allclose(out, first_order_by_loops(S.toarray(), H, W1, self_weight), atol=1e-5)


@pytest.mark.equation(14, 15)
def test_second_order_messages_equal_the_loops_over_paths():
    S, H, W2 = transition(random_affinity(9, 3, 1)), normal(9, 3), normal(3, 4, seed=1)
    out = hop(S) @ second_order(H, hop(S) @ H) @ W2
    np.testing.assert_allclose(out, second_order_by_loops(S.toarray(), H, W2), atol=1e-5)


@pytest.mark.equation(11, 16)
@pytest.mark.parametrize("self_loops", ["identity", "renormalised"])
def test_the_diffusion_layer_equals_the_loops(self_loops):
    A = random_affinity(9, 3, 2)
    S, self_weight = (transition(A), 1.0) if self_loops == "identity" else (renormalised(A), 0.0)
    H, layer = normal(9, 3), DiffusionLayer(3, 4, self_weight, generator(3))
    expected = diffusion_layer_by_loops(S.toarray(), H, layer.W1.detach(), layer.W2.detach(), self_weight)
    np.testing.assert_allclose(layer(hop(S), hop(S), H).detach(), expected, atol=1e-5)
    constants = torch.cat(layer.messages(hop(S), H), dim=1) @ layer.weights()
    np.testing.assert_allclose(constants.detach(), expected, atol=1e-5)


@pytest.mark.equation(6)
@pytest.mark.parametrize("self_loops", ["identity", "renormalised"])
def test_the_gcn_layer_equals_the_loops(self_loops):
    A = random_affinity(9, 3, 3)
    S, self_weight = (transition(A), 1.0) if self_loops == "identity" else (renormalised(A), 0.0)
    H, layer = normal(9, 3), GCNLayer(3, 4, self_weight, generator(3))
    expected = gcn_layer_by_loops(S.toarray(), H, layer.W.detach(), self_weight)
    np.testing.assert_allclose(layer(hop(S), hop(S), H).detach(), expected, atol=1e-5)
    constants = torch.cat(layer.messages(hop(S), H), dim=1) @ layer.weights()
    np.testing.assert_allclose(constants.detach(), expected, atol=1e-5)


@pytest.mark.equation(6, 11, 16)
@pytest.mark.parametrize("self_weight", [0.0, 1.0])
def test_the_diffusion_layer_without_second_weights_is_the_gcn_layer(self_weight):
    S, H, W = hop(transition(random_affinity(30, 4, 4))), normal(30, 6), normal(6, 5, seed=1)
    diffusion = diffusion_layer_with(W, torch.zeros_like(W), self_weight)(S, S, H)
    gcn = gcn_layer_with(W, self_weight)(S, S, H)
    torch.testing.assert_close(diffusion, gcn, rtol=1e-5, atol=1e-6)


@pytest.mark.equation(6, 16)
@pytest.mark.parametrize("layer", [DiffusionLayer(6, 5, 1.0, generator()), GCNLayer(6, 5, 1.0, generator())])
def test_a_layer_on_a_graph_without_edges_is_a_plain_product(layer):
    S, H = hop(as_csr(np.zeros((4, 4)))), normal(4, 6)
    W = layer.W1 if isinstance(layer, DiffusionLayer) else layer.W
    torch.testing.assert_close(layer(S, S, H), H @ W, rtol=1e-5, atol=1e-6)


@pytest.mark.equation(12, 13, 14, 15)
def test_a_message_reaches_two_hops_by_the_second_order_and_one_by_the_first():
    A = np.diag(np.ones(4), 1)
    S = hop(transition(as_csr(A + A.T)))  # the path 0 - 1 - 2 - 3 - 4
    H = normal(5, 3)

    def changed(layer, at):
        other = H.clone()
        other[at] += 1.0
        difference = (layer(S, S, other) - layer(S, S, H)).abs().amax(dim=1)
        return (difference > 1e-6).tolist()

    second = DiffusionLayer(3, 4, 1.0, generator())
    first = diffusion_layer_with(normal(3, 4), torch.zeros(3, 4))
    assert changed(first, 0) == [True, True, False, False, False]
    assert changed(second, 0) == [True, True, True, False, False]
    only_paths = diffusion_layer_with(torch.zeros(3, 4), normal(3, 4), self_weight=0.0)
    assert changed(only_paths, 4) == [False, False, True, True, True]


@pytest.mark.equation(14, 15)
def test_second_order_messages_grow_with_the_square_of_the_features():
    S, H = hop(transition(random_affinity(20, 4, 5))), normal(20, 3)
    one, three = (S @ second_order(scale * H, S @ (scale * H)) for scale in (1, 3))
    torch.testing.assert_close(three, 9 * one)


@pytest.mark.equation(15)
def test_second_order_messages_of_ones_are_the_weights_of_all_paths_of_two():
    S = transition(random_affinity(20, 4, 6))
    ones = torch.ones(20, 1)
    paths = hop(S) @ second_order(ones, hop(S) @ ones)
    np.testing.assert_allclose(paths, (S.toarray() @ S.toarray()).sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.equation(12, 13)
def test_first_order_messages_keep_the_root_of_the_degrees_doubled():
    A = random_affinity(20, 4, 7)
    root = torch.from_numpy(np.sqrt(A.toarray().sum(axis=1, keepdims=True)))
    torch.testing.assert_close(first_order(root, hop(transition(A)) @ root, 1.0), 2 * root)


@pytest.mark.equation(11, 16)
@pytest.mark.parametrize("self_weight", [0.0, 1.0])
@pytest.mark.parametrize("blocks", ["one", "several"])
def test_gradients_of_the_diffusion_layer_equal_plain_autograd(self_weight, blocks, monkeypatch):
    if blocks == "several":
        monkeypatch.setattr(row_slices, "_ROWS_PER_BLOCK", 7)
        monkeypatch.setattr(diffusion_layer, "_COLUMNS_PER_BLOCK", 4)
    n, d, d_out = 25, 6, 5
    S = transition(random_affinity(n, 4, 8))
    dense, G = torch.from_numpy(S.toarray()), normal(n, d_out, seed=9)
    layer = DiffusionLayer(d, d_out, self_weight, generator(1))
    H = normal(n, d).requires_grad_()
    out = layer(hop(S), hop(S), H)
    out.backward(G)
    H2, W1, W2 = (x.detach().clone().requires_grad_() for x in (H, layer.W1, layer.W2))
    expected = composed(dense, H2, W1, W2, self_weight)
    expected.backward(G)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    for ours, theirs in ((H.grad, H2.grad), (layer.W1.grad, W1.grad), (layer.W2.grad, W2.grad)):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.equation(6)
def test_gradients_of_the_gcn_layer_equal_plain_autograd():
    S, H, G = transition(random_affinity(25, 4, 9)), normal(25, 6).requires_grad_(), normal(25, 5, seed=9)
    layer = GCNLayer(6, 5, 1.0, generator(1))
    layer(hop(S), hop(S), H).backward(G)
    H2, W = (x.detach().clone().requires_grad_() for x in (H, layer.W))
    ((H2 + torch.from_numpy(S.toarray()) @ H2) @ W).backward(G)
    torch.testing.assert_close(H.grad, H2.grad, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(layer.W.grad, W.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.equation(11, 16)
@pytest.mark.parametrize("self_weight", [0.0, 1.0])
def test_gradients_of_the_diffusion_layer_agree_with_finite_differences(self_weight):
    S = Propagation(transition(random_affinity(7, 3, 10)).astype(np.float64), CPU)
    values = [
        normal(*shape, seed=s, dtype=torch.float64).requires_grad_() for s, shape in enumerate([(7, 3), (3, 2), (3, 2)])
    ]

    def apply(H, W1, W2):
        return diffusion_layer._Diffuse.apply(S, S, H, W1, W2, self_weight)

    assert torch.autograd.gradcheck(apply, values, fast_mode=True)


@pytest.mark.equation(16)
@pytest.mark.parametrize("kind", [DiffusionLayer, GCNLayer])
def test_blocks_of_a_larger_matrix_give_the_same_rows(kind):
    S = transition(random_affinity(40, 4, 11))
    H = normal(40, 6).requires_grad_()
    layer = kind(6, 5, 1.0, generator(1))
    block = layer(hop(S), Propagation(S[:4], CPU), H)
    torch.testing.assert_close(block, layer(hop(S), hop(S), H)[:4], rtol=1e-5, atol=1e-6)
    assert block.shape == (4, 5)


@pytest.mark.parametrize(("d_in", "d_out"), [(200, 100), (3, 500)])
def test_weights_begin_uniform_within_the_bound_of_xavier(d_in, d_out):
    W = xavier_uniform(d_in, d_out, generator()).detach()
    bound = (6 / (d_in + d_out)) ** 0.5
    assert W.shape == (d_in, d_out)
    assert W.abs().max() <= bound
    assert W.abs().max() > 0.99 * bound
    assert W.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
    assert abs(W.mean().item()) < 0.05 * bound


def test_the_generator_decides_the_weights():
    one, two, other = (DiffusionLayer(4, 3, 1.0, generator(seed)) for seed in (5, 5, 6))
    assert torch.equal(one.W1, two.W1)
    assert torch.equal(one.W2, two.W2)
    assert not torch.equal(one.W1, one.W2)
    assert not torch.equal(one.W1, other.W1)
