"""The losses: known values, every reading of the print, gradients that exist and gradients that must not."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from manifind.model.losses import PAIRS, cosine, global_loss, local_loss, sextet_loss, total_loss
from manifind.settings import CONSTRAINTS, GradNetSettings
from reference.losses import global_by_loops, local_by_loops, sextet_loss_by_loops, total_by_loops

SETTINGS = GradNetSettings(
    local_loss="bpr",
    local_weight=1.0,
    temperature=1.0,
    beta=math.exp(5),
    global_coefficient="detached",
    global_weight=1.0,
    l2=1e-5,
)


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def cosines(*shape, seed=0):
    return 2 * torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 1


def sextet_inputs(H, sextets):
    """Similarities and edge weights of sextets given as (i, j, k, l, u, v, a_ij, a_kl)."""
    nodes = torch.tensor([[int(node) for node in sextet[:6]] for sextet in sextets]).T  # (6, b)
    similarities = [cosine([H], nodes[a], nodes[b]) for a, b in PAIRS]
    return similarities, *(torch.tensor([s[place] for s in sextets], dtype=H.dtype) for place in (6, 7))


def random_sextets(b, n, seed):
    rng = np.random.default_rng(seed)
    nodes, weights = rng.integers(0, n, size=(b, 6)), rng.uniform(0.1, 1, size=(b, 2))
    return [(*row.tolist(), *pair.tolist()) for row, pair in zip(nodes, weights, strict=True)]


# --- local smoothness


@pytest.mark.equation(19)
def test_a_neighbour_as_similar_as_a_stranger_costs_ln_two():
    for s in (-1.0, 0.0, 0.7):
        assert local_loss(tensor(s), tensor(s), SETTINGS).item() == pytest.approx(math.log(2))


@pytest.mark.equation(19)
def test_local_losses_by_hand():
    gap = math.log(3)  # sigmoid(ln 3) = 3/4
    assert local_loss(tensor(gap), tensor(0.0), SETTINGS).item() == pytest.approx(math.log(4 / 3))
    assert local_loss(tensor(0.0), tensor(gap), SETTINGS).item() == pytest.approx(math.log(4))
    half = replace(SETTINGS, temperature=0.5)
    assert local_loss(tensor(gap / 2), tensor(0.0), half).item() == pytest.approx(math.log(4 / 3))
    printed = replace(SETTINGS, local_loss="log")
    assert local_loss(tensor(0.75), tensor(0.25), printed).item() == pytest.approx(math.log(2))
    assert local_loss(tensor(1.0), tensor(0.0), printed).item() == pytest.approx(0)


@pytest.mark.equation(19)
@pytest.mark.parametrize("kind", CONSTRAINTS["local_loss"].choices)
@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_local_losses_equal_the_loops(kind, temperature):
    s_ij, s_iu = cosines(2, 50)
    out = local_loss(s_ij, s_iu, replace(SETTINGS, local_loss=kind, temperature=temperature))
    expected = [local_by_loops(a, b, kind, temperature) for a, b in zip(s_ij.tolist(), s_iu.tolist(), strict=True)]
    np.testing.assert_allclose(out, expected, rtol=1e-10)


@pytest.mark.equation(19)
@pytest.mark.parametrize("kind", CONSTRAINTS["local_loss"].choices)
def test_the_local_loss_never_rises_with_the_similarity_of_the_neighbour(kind):
    s_ij = torch.linspace(-1, 1, 101, dtype=torch.float64)
    losses = local_loss(s_ij, torch.zeros_like(s_ij), replace(SETTINGS, local_loss=kind))
    assert (losses.diff() <= 0).all()
    assert losses[-1] < losses[50]


@pytest.mark.equation(19)
@pytest.mark.parametrize("kind", CONSTRAINTS["local_loss"].choices)
def test_the_local_loss_is_finite_where_the_stranger_is_more_similar(kind):
    s_ij, s_iu = tensor(-1.0, 0.3, 0.5).requires_grad_(), tensor(1.0, 0.3, 0.50001)
    losses = local_loss(s_ij, s_iu, replace(SETTINGS, local_loss=kind, temperature=0.01))
    losses.sum().backward()
    assert torch.isfinite(losses).all()
    assert torch.isfinite(s_ij.grad).all()


@pytest.mark.equation(19)
def test_the_printed_logarithm_is_cut_off_just_above_zero():
    printed = replace(SETTINGS, local_loss="log")
    assert local_loss(tensor(0.0), tensor(1.0), printed).item() == pytest.approx(-math.log(1e-6))


@pytest.mark.equation(19)
def test_a_small_temperature_turns_the_loss_into_a_hinge():
    cold = replace(SETTINGS, temperature=1e-3)
    losses = local_loss(tensor(0.5, 0.0), tensor(0.0, 0.5), cold) * 1e-3
    np.testing.assert_allclose(losses, [0, 0.5], atol=1e-9)


# --- global order


@pytest.mark.equation(20)
@pytest.mark.parametrize("coefficient", ["detached", "attached"])
def test_the_global_loss_with_the_product_of_both_similarities_by_hand(coefficient):
    settings = replace(SETTINGS, beta=512.0, global_coefficient=coefficient)
    # 512 * 1/2 * 1/2 * (1/2 * 1/4) * (1/4)^2 = 1
    loss = global_loss(tensor(0.5), tensor(0.25), tensor(1.0), tensor(0.5), tensor(0.5), settings)
    assert loss.item() == pytest.approx(math.log(2))


@pytest.mark.equation(20)
def test_the_global_loss_as_printed_by_hand():
    settings = replace(SETTINGS, beta=128.0, global_coefficient="printed")
    # 128 * 1/2 * 1/2 * (1/2 * 1) * (1/4)^2 = 1
    loss = global_loss(tensor(0.5), tensor(0.25), tensor(1.0), tensor(0.5), tensor(0.5), settings)
    assert loss.item() == pytest.approx(math.log(2))


@pytest.mark.equation(20)
@pytest.mark.parametrize(
    ("coefficient", "beta", "expected"),
    [("detached", 512.0, (4, -4, 0)), ("attached", 512.0, (5, -2, 0)), ("printed", 128.0, (5, -4, 0.5))],
)
def test_gradients_of_the_global_loss_by_hand(coefficient, beta, expected):
    settings = replace(SETTINGS, beta=beta, global_coefficient=coefficient)
    s = [tensor(value).requires_grad_() for value in (0.5, 0.25, 1.0)]
    global_loss(*s, tensor(0.5), tensor(0.5), settings).backward()
    # d ln(1 + x) = dx / 2 where x = 1; x = beta / 4 * w * d^2, d = 1/4
    gradients = [0.0 if x.grad is None else x.grad.item() for x in s]
    assert gradients == pytest.approx(expected)


@pytest.mark.equation(20)
@pytest.mark.parametrize("coefficient", CONSTRAINTS["global_coefficient"].choices)
def test_global_losses_equal_the_loops(coefficient):
    s_ki, s_lj, s_li = cosines(3, 60)
    a_ij, a_kl = cosines(2, 60, seed=1).abs()
    out = global_loss(s_ki, s_lj, s_li, a_ij, a_kl, replace(SETTINGS, global_coefficient=coefficient))
    columns = zip(*(x.tolist() for x in (s_ki, s_lj, s_li, a_ij, a_kl)), strict=True)
    expected = [global_by_loops(*row, SETTINGS.beta, coefficient) for row in columns]
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.equation(20)
@pytest.mark.parametrize("coefficient", CONSTRAINTS["global_coefficient"].choices)
def test_two_neighbourhoods_that_agree_cost_nothing(coefficient):
    s, a = cosines(30), torch.ones(30, dtype=torch.float64)
    assert (global_loss(s, s, s, a, a, replace(SETTINGS, global_coefficient=coefficient)) == 0).all()


@pytest.mark.equation(20)
@pytest.mark.parametrize("coefficient", CONSTRAINTS["global_coefficient"].choices)
def test_a_negative_product_of_similarities_stays_finite(coefficient):
    settings = replace(SETTINGS, beta=1e5, global_coefficient=coefficient)
    s_ki, s_lj, s_li = (tensor(*v).requires_grad_() for v in ([1, -1, -0.9], [-1, 1, 0.9], [-1, 1, 0.5]))
    one = torch.ones(3, dtype=torch.float64)
    losses = global_loss(s_ki, s_lj, s_li, one, one, settings)
    losses.sum().backward()
    assert torch.isfinite(losses).all()
    assert (losses > 0).all()
    assert torch.isfinite(s_ki.grad).all()
    np.testing.assert_allclose(losses[0].item(), math.log(1 + 1e5 * 1e-6 * 4), rtol=1e-9)


@pytest.mark.equation(20)
def test_a_detached_coefficient_has_no_gradient():
    """Where both similarities are equal but for the coefficient, only the difference may be changed."""
    s_ki, s_lj = tensor(0.5).requires_grad_(), tensor(0.25).requires_grad_()
    one, unused = tensor(1.0), tensor(0.0)
    global_loss(s_ki, s_lj, unused, one, one, SETTINGS).backward()
    assert s_ki.grad.item() == pytest.approx(-s_lj.grad.item())
    w = 0.5 * 0.25
    expected = SETTINGS.beta * w * 2 * 0.25 / (1 + SETTINGS.beta * w * 0.25**2)
    assert s_ki.grad.item() == pytest.approx(expected)


@pytest.mark.equation(20)
def test_an_edge_without_weight_costs_nothing():
    s_ki, s_lj, s_li = cosines(3, 10)
    zero, one = torch.zeros(10, dtype=torch.float64), torch.ones(10, dtype=torch.float64)
    assert (global_loss(s_ki, s_lj, s_li, zero, one, SETTINGS) == 0).all()
    assert (global_loss(s_ki, s_lj, s_li, one, zero, SETTINGS) == 0).all()


# --- how they add up


@pytest.mark.equation(21)
def test_the_total_by_hand():
    settings = replace(SETTINGS, local_weight=3.0, global_weight=0.5, l2=0.1)
    assert total_loss(tensor(2.0), tensor(4.0), tensor(50.0), settings).item() == pytest.approx(6 + 2 + 5)


@pytest.mark.equation(21)
@pytest.mark.parametrize("seed", range(5))
def test_the_total_equals_the_loops(seed):
    local, global_, norm, w, alpha, l2 = cosines(6, seed=seed).abs().tolist()
    settings = replace(SETTINGS, local_weight=w, global_weight=alpha, l2=l2)
    out = total_loss(tensor(local), tensor(global_), tensor(norm), settings).item()
    assert out == pytest.approx(total_by_loops(local, global_, norm, w, alpha, l2))


@pytest.mark.equation(21)
def test_with_zero_weights_only_the_local_loss_is_left():
    settings = replace(SETTINGS, global_weight=0.0, l2=0.0)
    assert total_loss(tensor(2.5), tensor(9.0), tensor(7.0), settings).item() == 2.5


@pytest.mark.equation(22)
def test_one_sextet_of_axes_by_hand():
    H = torch.eye(6, dtype=torch.float64)[[0, 0, 0, 1, 1, 0]]  # i = j = k = v, l = u
    loss = sextet_loss(*sextet_inputs(H, [(0, 1, 2, 3, 4, 5, 1.0, 0.5)]), tensor(2.0).sum(), SETTINGS)
    # s_ij = 1, s_iu = 0; s_kl = 0, s_kv = 1; s_ki = 1, s_lj = 0, so w is kept at 1e-6
    local = math.log(1 + math.exp(-1)) + math.log(1 + math.exp(1))
    global_ = math.log(1 + SETTINGS.beta * 0.5 * 1e-6)
    assert loss.local.item() == pytest.approx(local)
    assert loss.global_.item() == pytest.approx(global_)
    assert loss.total.item() == pytest.approx(local + global_ + 2e-5)


@pytest.mark.equation(22)
@pytest.mark.parametrize("coefficient", CONSTRAINTS["global_coefficient"].choices)
@pytest.mark.parametrize("kind", CONSTRAINTS["local_loss"].choices)
def test_the_loss_of_a_batch_equals_the_loops(kind, coefficient):
    settings = replace(
        SETTINGS,
        local_loss=kind,
        local_weight=1.5,
        temperature=0.5,
        global_coefficient=coefficient,
        global_weight=0.7,
        l2=0.01,
    )
    H = cosines(12, 5, seed=2) + 0.5
    sextets = random_sextets(16, 12, seed=3)
    loss = sextet_loss(*sextet_inputs(H, sextets), tensor(3.0).sum(), settings)
    total, local, global_ = sextet_loss_by_loops(H.tolist(), sextets, 3.0, settings)
    assert loss.total.item() == pytest.approx(total)
    assert loss.local.item() == pytest.approx(local)
    assert loss.global_.item() == pytest.approx(global_)


@pytest.mark.equation(22)
def test_a_batch_twice_over_costs_the_same():
    H, sextets = cosines(12, 5, seed=4), random_sextets(8, 12, seed=5)
    once, twice = (sextet_loss(*sextet_inputs(H, sextets * n), tensor(3.0).sum(), SETTINGS) for n in (1, 2))
    assert once.total.item() == pytest.approx(twice.total.item())


@pytest.mark.equation(22)
def test_the_order_of_the_batch_and_the_lengths_of_the_features_do_not_matter():
    H, sextets = cosines(12, 5, seed=6), random_sextets(8, 12, seed=7)
    expected = sextet_loss(*sextet_inputs(H, sextets), tensor(3.0).sum(), SETTINGS).total.item()
    scaled = H * torch.linspace(0.1, 10, 12, dtype=torch.float64)[:, None]
    assert sextet_loss(*sextet_inputs(scaled, sextets[::-1]), tensor(3.0).sum(), SETTINGS).total.item() == (
        pytest.approx(expected)
    )


@pytest.mark.equation(22)
def test_equal_features_cost_two_ln_two():
    H = torch.ones(6, 3, dtype=torch.float64)
    loss = sextet_loss(*sextet_inputs(H, [(0, 1, 2, 3, 4, 5, 1.0, 1.0)]), tensor(0.0).sum(), SETTINGS)
    assert loss.total.item() == pytest.approx(2 * math.log(2))


@pytest.mark.equation(19, 20, 22)
def test_gradients_of_the_loss_agree_with_finite_differences():
    settings = replace(SETTINGS, global_coefficient="attached")
    sextets = random_sextets(4, 8, seed=8)
    H = (cosines(8, 3, seed=9) + 2).requires_grad_()

    def total(H):
        return sextet_loss(*sextet_inputs(H, sextets), H.square().sum(), settings).total

    assert torch.autograd.gradcheck(total, (H,))
