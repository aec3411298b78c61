"""Reads any file of vectors: the suffix chooses the reader; .fvecs is read here."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from manifind.errors import FileFormatError
from manifind.io.checks import Vectors, check_suffix, read_in_child, regular_file
from manifind.io.npy import read_npy, read_npz
from manifind.io.tables import read_table


def read_fvecs(path: Path) -> Vectors:
    """Vectors without ids, the rows float32 in C order."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        d = int.from_bytes(stream.read(4), "little", signed=True)
    row_bytes = 4 + 4 * d
    if d < 1 or size % row_bytes:
        expected = "expected .fvecs, where every row takes 4 bytes for d and 4 d for its numbers"
        problem = f"{path} has {size:,} bytes and a first row of {d} numbers; {expected}"
        raise FileFormatError(problem, "copy or save it again: it is cut short, or in another format")
    words = np.memmap(path, dtype="<i4", mode="r", shape=(size // row_bytes, 1 + d))
    differs = words[:, 0] != d
    if differs.any():
        row = int(differs.argmax())
        problem = f"{path} has {words[row, 0]} numbers in row {row} (counted from 0) but {d} in row 0"
        hint = "copy or save it again: it is damaged, or in another format"
        raise FileFormatError(f"{problem}; expected the same in every row", hint)
    return Vectors(np.array(words[:, 1:].view("<f4"), order="C", subok=False), None)


_READERS: dict[str, Callable[[Path], Vectors]] = {
    ".csv": read_table,
    ".fvecs": read_fvecs,
    ".h5": partial(read_in_child, "hdf5", "HDF5"),
    ".hdf5": partial(read_in_child, "hdf5", "HDF5"),
    ".mat": partial(read_in_child, "mat", "a MATLAB file"),
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": partial(read_in_child, "parquet", "Parquet"),
    ".tsv": read_table,
}

SUFFIXES: tuple[str, ...] = tuple(_READERS)
"""The suffixes that `read_vectors` accepts, in small letters."""


def read_vectors(path: str | os.PathLike[str]) -> Vectors:
    """Read vectors, and ids and queries where the file has them.

    Parameters
    ----------
    path : str or os.PathLike
        A file whose suffix, in small or capital letters, is one of .csv, .fvecs, .h5, .hdf5, .mat, .npy, .npz,
        .parquet, .tsv.

    Returns
    -------
    Vectors
        A named tuple: `rows` (n, d) in the type the file has, for .npy a read-only map of the file, not checked for
        NaN; `ids`, n distinct strings or integers, or None; `queries` (m, d) or None.

    Raises
    ------
    FileFormatError
        The file is missing, damaged, in another format, or would take far more memory than its size explains.
    MissingExtraError
        The format needs a package that is not installed.
    """
    with regular_file(path, f"expected a file of vectors: {', '.join(SUFFIXES)}") as file:
        hint = "rename it if it is one of these, or save the vectors with numpy.save as .npy"
        check_suffix(file, SUFFIXES, hint)
        return _READERS[file.suffix.lower()](file)
