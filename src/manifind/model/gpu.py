"""What a GPU does by kernels of our own: sparse times dense in a fixed order, and activation in one pass."""

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

_COLUMNS = 512  # of the result that one program computes
_SIZE = 4096  # numbers that one program of an element-wise kernel takes
WIDEST = 4096  # rows that one program can hold


def multiply(block: Tensor, H: Tensor, beside: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """A sparse CSR tensor times a dense one, (n, d); sums go along each row, so the same bits come out always.

    beside: (n, d) that is added. out: where it goes. Without Triton the library's product serves, which is slower
    and not reproducible to the last bit.
    """
    if not has_kernel():
        product = block @ H
        return product if beside is None else product + beside
    H = H.contiguous()
    n, d = block.shape[0], H.shape[1]
    out = H.new_empty(n, d) if out is None else out
    if n == 0 or d == 0:
        return out
    columns = min(_COLUMNS, 1 << (d - 1).bit_length())
    grid = (n, -(-d // columns))
    _kernels().rows_times_dense[grid](
        block.crow_indices(), block.col_indices(), block.values(), H, H if beside is None else beside, out, d,
        ADDS=beside is not None, COLUMNS=columns, num_warps=4,
    )  # fmt: skip
    return out


def both_orders(H: Tensor, SH: Tensor, self_weight: float) -> Tensor:
    """(2, n, d): S H * H, and S H + self_weight H."""
    both = H.new_empty(2, *H.shape)
    _kernels().two_orders[(-(-H.numel() // _SIZE),)](H, SH, both, H.numel(), self_weight, SIZE=_SIZE)
    return both


def both_orders_back(gradient: Tensor, H: Tensor, SH: Tensor, self_weight: float) -> tuple[Tensor, Tensor]:
    """The gradients of H and of S H, (n, d) each, from (2, n, d)."""
    dH, dSH = torch.empty_like(H), torch.empty_like(H)
    grid = (-(-H.numel() // _SIZE),)
    _kernels().two_orders_back[grid](gradient, H, SH, dH, dSH, H.numel(), self_weight, SIZE=_SIZE)
    return dH, dSH


def activate_forward(
    Y: Tensor, slope: float, kept: Tensor | None, scale: float, smallest: float
) -> tuple[Tensor, Tensor, Tensor]:
    """LeakyReLU, unit rows, dropout: the result, the unit rows before dropout, and (n, 1) the lengths."""
    Y = Y.contiguous()
    n, d = Y.shape
    unit, lengths = torch.empty_like(Y), Y.new_empty(n, 1)
    out = unit if kept is None else torch.empty_like(Y)
    mask = unit if kept is None else kept  # of no meaning where nothing is dropped
    _kernels().activate_rows[(n,)](
        Y, mask, unit, lengths, out, d, slope, scale, smallest,
        DROPS=kept is not None, WIDTH=1 << (d - 1).bit_length(), num_warps=4,
    )  # fmt: skip
    return out, unit, lengths


def activate_backward(
    gradient: Tensor, unit: Tensor, lengths: Tensor, kept: Tensor | None, slope: float, scale: float, smallest: float
) -> Tensor:
    """The gradient of Y from that of the result."""
    gradient = gradient.contiguous()
    n, d = unit.shape
    dY = torch.empty_like(unit)
    mask = unit if kept is None else kept
    _kernels().activate_rows_back[(n,)](
        gradient, mask, unit, lengths, dY, d, slope, scale, smallest,
        DROPS=kept is not None, WIDTH=1 << (d - 1).bit_length(), num_warps=4,
    )  # fmt: skip
    return dY


@lru_cache(maxsize=1)
def _kernels() -> Any:
    return import_module("manifind.model.kernels")


@lru_cache(maxsize=1)
def has_kernel() -> bool:
    """Whether products can be captured and repeated."""
    return find_spec("triton") is not None and torch.cuda.is_available()
