"""What a GPU does, tried on the CPU: sextets by the same rules, the same cosines, steps in one go as one by one."""

import math

import numpy as np
import pytest
import torch

from manifind.model.losses import PAIRS, cosine, gathered_cosines
from manifind.model.sampling import DeviceSampler
from manifind.model.trainer import CudaGraphSteps
from model.test_trainer import SETTINGS, manifold, trainer
from reference.graphs import as_csr

CPU = torch.device("cpu")
__all__ = ["manifold"]


def ring(n):
    """Every node next to the one before and the one behind it, with weights that differ."""
    edges = {}
    for node in range(n):
        edges[node, (node + 1) % n] = edges[(node + 1) % n, node] = 0.2 + node / n / 2
    dense = np.zeros((n, n), np.float32)
    for (a, b), weight in edges.items():
        dense[a, b] = weight
    return as_csr(dense), dense


def test_sextets_are_edges_and_strangers_with_their_weights():
    A, dense = ring(30)
    drawn = DeviceSampler(A, None, CPU).draw_steps(steps=20, b=50, seed=3)
    assert drawn.nodes.shape == (20, 50, 6)
    i, j, k, end, u, v = drawn.nodes.reshape(-1, 6).T.numpy()
    assert (dense[i, j] > 0).all()
    assert (dense[k, end] > 0).all()
    np.testing.assert_array_equal(drawn.a_ij.numpy().ravel(), dense[i, j])
    np.testing.assert_array_equal(drawn.a_kl.numpy().ravel(), dense[k, end])
    for stranger in (u, v):
        for node in (i, j, k, end):
            assert (stranger != node).all()
            assert (dense[stranger, node] == 0).all()
    assert len(np.unique(i)) == 30
    steps = drawn.nodes.reshape(20, -1)
    assert (torch.diff(torch.gather(steps, 1, drawn.order), dim=1) >= 0).all()


def test_the_same_seed_draws_the_same_sextets_and_another_seed_others():
    sampler = DeviceSampler(ring(20)[0], None, CPU)
    first, same, other = (sampler.draw_steps(2, 30, seed).nodes for seed in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_ends_of_walks_are_drawn_in_proportion_to_their_weights():
    A, _ = ring(12)
    dense = np.zeros((12, 12), np.float32)
    dense[0, 4], dense[0, 5], dense[1, 6] = 0.9, 0.3, 1.0
    drawn = DeviceSampler(A, as_csr(dense), CPU).draw_steps(1, 20_000, 0)
    i, j = drawn.nodes[0, :, 0].numpy(), drawn.nodes[0, :, 1].numpy()
    assert set(np.unique(i)) == {0, 1}
    assert np.isin(j[i == 0], [4, 5]).all()
    share = (j[i == 0] == 4).mean()
    assert abs(share - 0.75) < 4 * math.sqrt(0.75 * 0.25 / (i == 0).sum())


def test_a_graph_without_strangers_still_gives_sextets():
    dense = np.ones((4, 4), np.float32) - np.eye(4, dtype=np.float32)
    nodes = DeviceSampler(as_csr(dense), None, CPU).draw_steps(3, 10, 0).nodes.reshape(-1, 6).T
    assert (nodes[4] != nodes[0]).all()
    assert (nodes[4] != nodes[1]).all()


def test_gathered_cosines_and_their_gradients_are_the_others():
    generator = torch.Generator().manual_seed(0)
    parts = [torch.randn(40, width, generator=generator) for width in (7, 5, 3)]
    parts[0][3] = 0
    parts[1][3] = 0
    parts[2][3] = 0
    for part in parts[1:]:
        part.requires_grad_()
    nodes = torch.randint(40, (60, 6), generator=generator)
    order = nodes.reshape(-1).argsort(stable=True)
    pairs = torch.tensor(PAIRS)
    expected = cosine(parts, nodes[:, pairs[:, 0]].T.reshape(-1), nodes[:, pairs[:, 1]].T.reshape(-1)).view(7, -1)
    found = gathered_cosines(parts, nodes, order)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    weights = torch.randn(7, 60, generator=generator)
    touched = (nodes != 3).all(dim=1)  # a row of zeros has no gradient worth the name
    a = torch.autograd.grad((expected * weights)[:, touched].sum(), parts[1:], retain_graph=True)
    b = torch.autograd.grad((found * weights)[:, touched].sum(), parts[1:])
    for one, other in zip(a, b, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_the_loss_on_the_device_is_that_of_the_whole_graph(manifold):
    made = trainer(manifold)
    made.network.dropout = 0.0
    sextets = made._sampler.draw(16)
    nodes = torch.from_numpy(sextets.nodes).T.contiguous()
    order = nodes.reshape(-1).argsort(stable=True)
    weights = (torch.from_numpy(part) for part in (sextets.a_ij, sextets.a_kl))
    found, expected = made._loss_on_device(nodes, order, *weights), made.whole_graph_loss(sextets, False)
    for part in ("total", "local", "global_"):
        torch.testing.assert_close(getattr(found, part), getattr(expected, part), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("most", [1, 3, 8])
def test_steps_in_one_go_are_those_one_by_one(manifold, most):
    """The same sextets with the same dropout give the same losses, in however many parts they are taken."""
    sampler = DeviceSampler(manifold.affinity, None, CPU)
    sextets = sampler.draw_steps(8, 16, 5)
    curves = []
    for at_once in (8, most):
        made = trainer(manifold)
        made.network.dropout = 0.0
        adam = torch.optim.Adam(made.network.parameters(), lr=1e-3, weight_decay=2e-5)
        steps = CudaGraphSteps(made._loss_on_device, adam, torch.Generator(), at_once, 16)
        parts = [type(sextets)(*(part[a : a + at_once] for part in sextets)) for a in range(0, 8, at_once)]
        curves.append(torch.cat([steps.run(part, 0) for part in parts]))
    torch.testing.assert_close(*curves, rtol=0, atol=0)
    assert curves[0].shape == (8, 3)
    assert len(torch.unique(curves[0][:, 0])) == 8


def test_the_decay_of_adam_is_the_gradient_of_the_squared_weights(manifold):
    """What the loss on the device leaves out, and what the optimiser adds."""
    made = trainer(manifold)
    expected = torch.autograd.grad(SETTINGS.l2 * made.network.squared_norm(), list(made.network.parameters()))
    for weight, gradient in zip(made.network.parameters(), expected, strict=True):
        torch.testing.assert_close(gradient, 2 * SETTINGS.l2 * weight)


def test_a_cpu_trains_one_step_at_a_time(manifold):
    assert not trainer(manifold).uses_cuda_graph
