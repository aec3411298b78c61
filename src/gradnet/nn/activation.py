"""What every layer's output goes through: LeakyReLU, unit rows, dropout, as one step with its gradient."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gradnet.nn.gpu_products import WIDEST, activate_backward, activate_forward, has_kernel
from gradnet.nn.row_slices import row_slices

_LANES = 4  # 16-bit numbers in one random 64-bit word
_LEVELS = 1 << 16
_SMALLEST_LENGTH = 1e-12


def activate(
    Y: Tensor, slope: float, dropout: float, generator: torch.Generator | None, n_wanted: int
) -> tuple[Tensor, Tensor]:
    """LeakyReLU of Y, its rows scaled to length 1, then entries dropped with probability `dropout`.

    What is kept is scaled up by 1 / (1 - dropout). generator: None leaves the dropout out. A row of
    zeros stays as it is. slope must be positive: the gradient reads the sign of Y off the result.
    Returns the result, for the next layer, and a copy of its first n_wanted rows, for the features: a
    slice would bring back a gradient as large as the whole, nearly all of it zeros. Where no gradient is asked for
    and all rows are wanted, Y itself becomes both.
    """
    if not torch.is_grad_enabled() and generator is None and n_wanted == len(Y):
        out = _unit_rows(F.leaky_relu_(Y, slope))[0]
        return out, out
    kept = None if generator is None or dropout == 0 else _draw(Y, dropout, generator)
    if has_kernel() and Y.is_cuda and Y.shape[1] <= WIDEST:
        out = _ActivateRows.apply(Y, slope, kept, 1.0 / (1.0 - dropout))  # type: ignore[no-untyped-call]
        return out, out[:n_wanted] if n_wanted < len(out) else out
    both: tuple[Tensor, Tensor] = _Activate.apply(Y, slope, kept, 1.0 / (1.0 - dropout), n_wanted)  # type: ignore[no-untyped-call]
    return both


def _draw(Y: Tensor, dropout: float, generator: torch.Generator) -> Tensor:
    """A mask of kept entries; 16 random bits decide each, so that one 64-bit word serves four."""
    words = torch.empty((Y.numel() + _LANES - 1) // _LANES, dtype=torch.int64, device=Y.device)
    words.random_(-(2**63), None, generator=generator)
    lanes = words.view(torch.int16)[: Y.numel()].view(Y.shape)
    return lanes >= round(dropout * _LEVELS) - _LEVELS // 2


def _unit_rows(Y: Tensor) -> tuple[Tensor, Tensor]:
    """Y, scaled where it lies to rows of length 1, and (V, 1) the lengths that they had."""
    lengths = Y.norm(dim=1, keepdim=True).clamp_min_(_SMALLEST_LENGTH)
    return Y.div_(lengths), lengths


class _Activate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, Y: Tensor, slope: float, kept: Tensor | None, scale: float, n_wanted: int
    ) -> tuple[Tensor, Tensor]:
        unit, lengths = _unit_rows(F.leaky_relu(Y, slope))
        ctx.save_for_backward(unit, lengths, kept)
        ctx.slope, ctx.scale = slope, scale
        out = unit if kept is None else (unit * kept).mul_(scale)
        return out, out[:n_wanted].clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, of_wanted: Tensor) -> tuple[Tensor, None, None, None, None]:
        unit, lengths, kept = ctx.saved_tensors
        dY = torch.empty_like(unit)
        for rows in row_slices(len(unit), unit.device):
            u, g = unit[rows], gradient[rows].clone()
            head = of_wanted[rows]
            g[: len(head)] += head
            if kept is not None:
                g.mul_(kept[rows]).mul_(ctx.scale)
            along = torch.linalg.vecdot(g, u).unsqueeze(1)
            d_row = g.addcmul_(u, along, value=-1).div_(lengths[rows])
            d_row.masked_fill_(
                lengths[rows] <= _SMALLEST_LENGTH, 0.0
            )  # a row of zeros has no direction to turn
            torch.where(u > 0, d_row, d_row * ctx.slope, out=dY[rows])
        return dY, None, None, None, None


class _ActivateRows(torch.autograd.Function):
    """The same on a GPU, a row at a time in one pass over memory for each direction."""

    @staticmethod
    def forward(ctx: Any, Y: Tensor, slope: float, kept: Tensor | None, scale: float) -> Tensor:
        out, unit, lengths = activate_forward(Y, slope, kept, scale, _SMALLEST_LENGTH)
        ctx.save_for_backward(unit, lengths, kept)
        ctx.slope, ctx.scale = slope, scale
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        unit, lengths, kept = ctx.saved_tensors
        dY = activate_backward(gradient, unit, lengths, kept, ctx.slope, ctx.scale, _SMALLEST_LENGTH)
        return dY, None, None, None
