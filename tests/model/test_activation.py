"""LeakyReLU, unit rows and dropout in one step: values, gradient, and the statistics of what is dropped."""

import numpy as np
import pytest
import torch
from torch.nn.functional import leaky_relu, normalize

from manifind.model import layers as row_slices
from manifind.model.layers import activate as activate_both
from reference.layers import leaky_relu_by_loops, unit_rows_by_loops

SLOPE = 0.2


def activate(Y, slope, dropout, generator):
    """The result for the next layer alone."""
    return activate_both(Y, slope, dropout, generator, 1)[0]


def test_the_wanted_rows_are_those_of_the_result_and_their_gradients_add_up():
    Y = normal(3000, 5).requires_grad_()
    out, head = activate_both(Y, SLOPE, 0.3, generator(4), 2000)
    assert torch.equal(head, out[:2000])
    weights, head_weights = normal(3000, 5, seed=1), normal(2000, 5, seed=2)
    ((out * weights).sum() + (head * head_weights).sum()).backward()
    both = Y.grad.clone()
    Y.grad = None
    out = activate(Y, SLOPE, 0.3, generator(4))
    ((out * weights).sum() + (out[:2000] * head_weights).sum()).backward()
    torch.testing.assert_close(both, Y.grad)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=generator(seed), dtype=dtype)


def composed(Y, slope):
    return normalize(leaky_relu(Y, slope), dim=1, eps=1e-12)


@pytest.mark.equation(16)
def test_sigma_and_unit_rows_by_hand():
    Y = torch.tensor([[3.0, 4.0], [-5.0, 0.0], [0.0, 0.0], [3.0, -20.0]])
    out = activate(Y, SLOPE, 0.3, None)
    torch.testing.assert_close(out, torch.tensor([[0.6, 0.8], [-1, 0], [0, 0], [0.6, -0.8]]))


@pytest.mark.equation(16)
@pytest.mark.parametrize("slope", [0.01, 0.2])
def test_sigma_and_unit_rows_equal_the_loops(slope):
    Y = normal(20, 5)
    expected = unit_rows_by_loops(leaky_relu_by_loops(Y, slope))
    np.testing.assert_allclose(activate(Y, slope, 0.0, None), expected, atol=1e-6)


@pytest.mark.equation(16)
def test_every_row_has_length_one_whatever_its_scale():
    Y = normal(50, 8) * torch.logspace(-8, 8, 50)[:, None]
    torch.testing.assert_close(activate(Y, SLOPE, 0.0, None).norm(dim=1), torch.ones(50))


@pytest.mark.parametrize("blocks", ["one", "several"])
@pytest.mark.parametrize("slope", [0.01, 0.2])
def test_value_and_gradient_equal_the_composition_in_autograd(slope, blocks, monkeypatch):
    if blocks == "several":
        monkeypatch.setattr(row_slices, "_ROWS_PER_BLOCK", 7)
    Y = normal(30, 6).requires_grad_()
    Y2, G = Y.detach().clone().requires_grad_(), normal(30, 6, seed=1)
    ours, theirs = activate(Y, slope, 0.0, None), composed(Y2, slope)
    ours.backward(G)
    theirs.backward(G)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(Y.grad, Y2.grad, rtol=1e-5, atol=1e-6)


def test_value_and_gradient_with_dropout_equal_the_composition_with_the_same_mask():
    Y = normal(30, 6).requires_grad_()
    Y2, G = Y.detach().clone().requires_grad_(), normal(30, 6, seed=1)
    ours = activate(Y, SLOPE, 0.3, generator(2))
    ours.backward(G)
    mask = (ours != 0).float().detach()
    theirs = composed(Y2, SLOPE) * mask / 0.7
    theirs.backward(G)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(Y.grad, Y2.grad, rtol=1e-5, atol=1e-6)


def test_the_gradient_agrees_with_finite_differences():
    Y = normal(5, 4, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda Y: activate(Y, SLOPE, 0.0, None), (Y,))


def test_the_gradient_never_points_along_the_row_itself():
    Y = (normal(10, 6).abs() + 0.1).requires_grad_()  # positive, so that sigma is the identity
    activate(Y, SLOPE, 0.0, None).backward(normal(10, 6, seed=1))
    torch.testing.assert_close((Y.grad * Y).sum(dim=1), torch.zeros(10), atol=1e-5, rtol=0)


def test_a_row_of_zeros_passes_no_gradient_that_grows_without_bound():
    Y = torch.zeros(1, 4, requires_grad=True)
    activate(Y, SLOPE, 0.0, None).sum().backward()
    assert Y.grad.abs().max() < 1e3


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_dropout_keeps_about_one_minus_p_and_scales_it_up(p):
    Y = torch.ones(500, 401)
    out = activate(Y, SLOPE, p, generator())
    kept = out != 0
    n = Y.numel()
    assert kept.float().mean().item() == pytest.approx(1 - p, abs=5 * (p * (1 - p) / n) ** 0.5)
    unit = 401**-0.5
    torch.testing.assert_close(out[kept], torch.full_like(out[kept], unit / (1 - p)))
    assert out.mean().item() == pytest.approx(unit, rel=0.02)


def test_dropout_is_unbiased_for_every_entry():
    Y = normal(3, 5)
    shared = generator(4)
    mean = torch.stack([activate(Y, SLOPE, 0.3, shared) for _ in range(4000)]).mean(dim=0)
    torch.testing.assert_close(mean, activate(Y, SLOPE, 0.0, None), atol=0.05, rtol=0)


def test_entries_are_dropped_independently_of_their_neighbours():
    kept = (activate(torch.ones(400, 400), SLOPE, 0.5, generator(5)) != 0).float().flatten()
    for distance in (1, 2, 3, 4, 400):
        together = (kept[:-distance] * kept[distance:]).mean().item()
        assert together == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 3), (2, 2)])
def test_dropout_draws_a_mask_for_any_number_of_entries(shape):
    assert activate(torch.ones(shape), SLOPE, 0.5, generator()).shape == shape


def test_the_generator_decides_what_is_dropped():
    Y = normal(20, 20)
    one, two, other = (activate(Y, SLOPE, 0.3, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_two_draws_of_one_generator_differ():
    shared, Y = generator(), normal(20, 20)
    assert not torch.equal(activate(Y, SLOPE, 0.3, shared), activate(Y, SLOPE, 0.3, shared))


def test_without_a_generator_nothing_is_dropped_and_nothing_is_scaled():
    Y = normal(20, 20)
    assert torch.equal(activate(Y, SLOPE, 0.3, None), activate(Y, SLOPE, 0.0, None))
    assert torch.equal(activate(Y, SLOPE, 0.0, generator()), activate(Y, SLOPE, 0.0, None))


def test_the_global_random_state_is_left_alone():
    state = torch.get_rng_state()
    activate(normal(5, 5), SLOPE, 0.3, generator())
    assert torch.equal(torch.get_rng_state(), state)


def test_the_input_is_not_written_to():
    Y = normal(5, 5)
    before = Y.clone()
    activate(Y, SLOPE, 0.3, generator())
    assert torch.equal(Y, before)
