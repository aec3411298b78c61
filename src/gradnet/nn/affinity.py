"""Affinity estimation: how similar two nodes are in the learned features."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gradnet.nn.row_slices import row_slices


def cosine(H: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """s_ij = h_i . h_j / (|h_i| |h_j|) for many pairs of rows (Eq. 18).

    H: (V, D). i, j: (p,) rows of H. Returns (p,), zero where a row is zero.
    """
    unit = F.normalize(H, dim=1, eps=1e-12)
    products: Tensor = _PairedProducts.apply(unit, i, j)  # type: ignore[no-untyped-call]
    return products


class _PairedProducts(torch.autograd.Function):
    """u_i . u_j, a block of pairs at a time: the rows of all pairs side by side would be many times U.

    The gradient is summed in a fixed order, so that the same seed gives the same bits.
    """

    @staticmethod
    def forward(ctx: Any, U: Tensor, i: Tensor, j: Tensor) -> Tensor:
        ctx.save_for_backward(U, i, j)
        return torch.cat([torch.linalg.vecdot(U[i[pairs]], U[j[pairs]]) for pairs in row_slices(len(i))])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        U, i, j = ctx.saved_tensors
        dU = torch.zeros_like(U)
        for pairs in row_slices(len(i)):
            g = gradient[pairs, None]
            _add_rows(dU, i[pairs], U[j[pairs]].mul_(g))
            _add_rows(dU, j[pairs], U[i[pairs]].mul_(g))
        return dU, None, None


def _add_rows(total: Tensor, rows: Tensor, values: Tensor) -> None:
    """Add values to rows that may repeat. On each kind of device the other way has no fixed order."""
    if total.device.type == "cpu":
        total.index_add_(0, rows, values)
    else:
        total.index_put_((rows,), values, accumulate=True)
