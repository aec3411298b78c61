"""Rows in blocks, so that the temporaries of a long computation do not count beside its results."""

from __future__ import annotations

import torch

from gradnet.arrays import row_blocks

_ROWS_PER_BLOCK = 1024


def row_slices(n: int, device: torch.device) -> list[slice]:
    """n rows in blocks of a thousand: large enough for the matrix product, small beside the whole.

    On a GPU all at once: there each block costs a launch, and memory is what it has.
    """
    return row_blocks(n, _ROWS_PER_BLOCK if device.type == "cpu" else max(n, 1))
