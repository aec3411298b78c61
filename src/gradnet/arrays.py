"""Names for the few kinds of array that pass between the packages."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
"""Descriptors, features, scores: float32, C order."""

Doubles: TypeAlias = NDArray[np.float64]
"""Intermediate values that need the precision."""

Ints: TypeAlias = NDArray[np.int64]
"""Positions of items or nodes."""

Mask: TypeAlias = NDArray[np.bool_]

Sparse: TypeAlias = Any
"""A scipy.sparse.csr_array of float32; SciPy publishes no types."""


def row_blocks(n_rows: int, rows_per_block: int) -> list[slice]:
    """Cut n_rows into slices of at most rows_per_block, in order."""
    return [slice(start, min(start + rows_per_block, n_rows)) for start in range(0, n_rows, rows_per_block)]
