"""Vectors in NumPy's .npy format, mapped and not loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from gradnet.formats.checks import Vectors, check_shape
from gradnet.formats.npy_header import read_header


def read_npy(path: Path) -> Vectors:
    """Vectors without ids, the rows a read-only map of the file."""
    where = str(path)
    with path.open("rb") as stream:
        header = read_header(stream, where)
    dtype = header.dtype(where, "fiub", "real numbers")
    check_shape(where, header.shape)
    header.check_size(where, dtype, path.stat().st_size - header.length)
    order: Literal["F", "C"] = "F" if header.fortran_order else "C"
    rows = np.memmap(path, dtype=dtype, mode="r", offset=header.length, shape=header.shape, order=order)
    return Vectors(np.require(rows, requirements="A"), None)  # an odd header leaves the data misaligned
