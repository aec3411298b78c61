"""Arrays in NumPy's .npy format, mapped and not loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from gradnet.formats.checks import Vectors, check_shape
from gradnet.formats.npy_header import read_header


def read_npy(path: Path) -> Vectors:
    """Vectors without ids, the rows a read-only map of the file."""
    with path.open("rb") as stream:  # before it is mapped: nothing of size 0 can be
        check_shape(str(path), read_header(stream, str(path)).shape)
    return Vectors(map_npy(path, "fiub", "real numbers"), None)


def map_npy(path: Path, kinds: str, expected: str) -> np.ndarray[Any, Any]:
    """The array as a read-only map of the file, if its type is one of `kinds`. expected: these in words."""
    where = str(path)
    with path.open("rb") as stream:
        header = read_header(stream, where)
    dtype = header.dtype(where, kinds, expected)
    if header.check_size(where, dtype, path.stat().st_size - header.length) == 0:
        return np.empty(header.shape, dtype)
    order: Literal["F", "C"] = "F" if header.fortran_order else "C"
    rows = np.memmap(path, dtype=dtype, mode="r", offset=header.length, shape=header.shape, order=order)
    return np.require(rows, requirements="A")  # an odd header leaves the data misaligned
