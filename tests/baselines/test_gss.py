"""Guided similarity separation: its loss, and that it separates."""

import numpy as np
import pytest
import torch

from manifind.baselines import gss
from manifind.baselines.gss import GSS, NearIdentity, separation_loss
from reference.graphs import clusters


def unit(n, d, seed=0):
    e = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(e)


def test_the_loss_of_two_rows_by_hand():
    e = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    # Similarities 1 on the diagonal and 0 beside it; beta = 0.25.
    assert separation_loss(e, 0.25).item() == pytest.approx(-0.5 * (2 * 0.75**2 + 2 * 0.25**2) / 4)


@pytest.mark.parametrize("rows", [2, 1024])
def test_the_loss_in_blocks_equals_that_over_all_pairs(monkeypatch, rows):
    monkeypatch.setattr(gss, "_ROWS_PER_BLOCK", rows)
    e = unit(7, 3)
    expected = -0.5 * ((e @ e.T).clamp_min(0) - 0.3).square().mean()
    torch.testing.assert_close(separation_loss(e, 0.3), expected)


def test_the_gradient_agrees_with_finite_differences():
    e = unit(7, 3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda e: separation_loss(e, 0.3), e)


def test_the_network_begins_near_the_identity():
    W = NearIdentity(6, 2, torch.Generator().manual_seed(0)).weights[0]
    torch.testing.assert_close(W.data, torch.eye(6), atol=1e-4, rtol=0)
    assert not torch.equal(W.data, torch.eye(6))


def test_training_drives_similarities_apart():
    X = clusters(60, 8, 4, seed=0)
    before, after = (GSS(steps=steps, learning_rate=1e-2, random_state=0).fit(X).features_ for steps in (0, 60))
    assert np.var(after @ after.T) > 1.2 * np.var(before @ before.T)
    np.testing.assert_allclose(np.linalg.norm(after, axis=1), 1, atol=1e-5)
