"""Affinity estimation: the cosine of learned features."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manifind.model.losses import _distinct
from manifind.model.losses import cosine as cosine_of_rows
from reference.losses import cosine_by_loops


def cosine(h_i, h_j):
    """Row by row: both sides in one matrix, as the loss has them."""
    rows = torch.arange(len(h_i))
    return cosine_of_rows([torch.cat([h_i, h_j])], rows, rows + len(h_i))


def pairs(p, n, seed=0):
    return torch.randint(0, n, (2, p), generator=torch.Generator().manual_seed(seed))


@pytest.mark.equation(18)
def test_gradients_of_repeated_pairs_equal_those_of_plain_indexing():
    H = torch.randn(9, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64, requires_grad=True)
    weights = torch.randn(40, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    i, j = pairs(40, 9)
    (ours,) = torch.autograd.grad((cosine_of_rows([H], i, j) * weights).sum(), H)
    plain = torch.nn.functional.cosine_similarity(H[i], H[j], dim=1)
    (theirs,) = torch.autograd.grad((plain * weights).sum(), H)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.equation(18)
def test_parts_side_by_side_are_one_matrix_and_a_constant_part_gets_no_gradient():
    draw = torch.Generator().manual_seed(5)
    parts = [torch.randn(9, d, generator=draw, dtype=torch.float64) for d in (4, 3, 2)]
    for part in parts[1:]:
        part.requires_grad_()
    weights = torch.randn(40, generator=draw, dtype=torch.float64)
    i, j = pairs(40, 9)
    ours = cosine_of_rows(parts, i, j)
    H = torch.cat(parts, dim=1)
    plain = torch.nn.functional.cosine_similarity(H[i], H[j], dim=1)
    torch.testing.assert_close(ours, plain)
    for one, other in zip(
        torch.autograd.grad((ours * weights).sum(), parts[1:]),
        torch.autograd.grad((plain * weights).sum(), parts[1:]),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
    assert parts[0].grad is None


def test_a_row_with_itself_has_a_gradient_of_zero():
    H = torch.randn(3, 4, generator=torch.Generator().manual_seed(4), requires_grad=True)
    cosine_of_rows([H], torch.arange(3), torch.arange(3)).sum().backward()
    torch.testing.assert_close(H.grad, torch.zeros(3, 4), atol=1e-6, rtol=0)


@pytest.mark.equation(18)
def test_cosines_by_hand():
    h_i = torch.tensor([[3.0, 4.0], [1.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    h_j = torch.tensor([[4.0, 3.0], [0.0, 5.0], [-2.0, -2.0], [1.0, 1.0]])
    torch.testing.assert_close(cosine(h_i, h_j), torch.tensor([24 / 25, 0, -1, 0.5**0.5]))


@pytest.mark.equation(18)
def test_cosines_equal_the_loops():
    h_i, h_j = torch.randn(2, 20, 7, generator=torch.Generator().manual_seed(0))
    expected = [cosine_by_loops(a, b) for a, b in zip(h_i, h_j, strict=True)]
    np.testing.assert_allclose(cosine(h_i, h_j), expected, atol=1e-6)


@pytest.mark.equation(18)
def test_cosines_are_symmetric_and_do_not_depend_on_lengths():
    h_i, h_j = torch.randn(2, 20, 7, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(cosine(h_i, h_j), cosine(h_j, h_i))
    torch.testing.assert_close(cosine(3e4 * h_i, 1e-4 * h_j), cosine(h_i, h_j))
    torch.testing.assert_close(cosine(h_i, h_i), torch.ones(20))
    torch.testing.assert_close(cosine(h_i, -h_i), -torch.ones(20))


@pytest.mark.equation(18)
def test_the_cosine_with_a_zero_row_is_zero_and_its_gradient_finite():
    h_i, h_j = torch.zeros(1, 3, requires_grad=True), torch.ones(1, 3, requires_grad=True)
    s = cosine(h_i, h_j)
    s.sum().backward()
    assert s.item() == 0
    assert torch.isfinite(h_i.grad).all()
    assert torch.isfinite(h_j.grad).all()


@given(st.lists(st.integers(0, 2**50), max_size=30).flatmap(lambda keys: st.permutations(keys + keys[::2])))
def test_distinct_keys_are_those_of_a_set_in_order(keys):
    distinct, place = _distinct(torch.tensor(keys, dtype=torch.int64))
    assert distinct.tolist() == sorted(set(keys))
    assert distinct[place].tolist() == keys
