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

    index_add, unlike the gradient of U[i], is summed in a fixed order on the CPU.
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
            dU.index_add_(0, i[pairs], U[j[pairs]].mul_(g))
            dU.index_add_(0, j[pairs], U[i[pairs]].mul_(g))
        return dU, None, None
