"""The door for every file of vectors: the suffix chooses the reader."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gradnet.errors import FileFormatError
from gradnet.formats.checks import Vectors
from gradnet.formats.delimited import read_csv, read_tsv
from gradnet.formats.fvecs import read_fvecs
from gradnet.formats.hdf5 import read_hdf5
from gradnet.formats.matlab import read_mat
from gradnet.formats.npy import read_npy
from gradnet.formats.npz import read_npz
from gradnet.formats.parquet import read_parquet
from gradnet.formats.regular_file import check_regular_file, readable

__all__ = ["SUFFIXES", "Vectors", "read_vectors"]

_READERS: dict[str, Callable[[Path], Vectors]] = {
    ".csv": read_csv,
    ".fvecs": read_fvecs,
    ".h5": read_hdf5,
    ".hdf5": read_hdf5,
    ".mat": read_mat,
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".tsv": read_tsv,
}

SUFFIXES: tuple[str, ...] = tuple(_READERS)
"""The suffixes that `read_vectors` accepts, in small letters."""


def read_vectors(path: str | os.PathLike[str]) -> Vectors:
    """Vectors of a file in any accepted format, or a FileFormatError that says why not.

    path: a file whose suffix, in small or capital letters, is one of SUFFIXES.
    """
    file = Path(path)
    with readable(file):
        check_regular_file(file, f"expected a file of vectors: {', '.join(SUFFIXES)}")
        return _reader(file)(file)


def _reader(file: Path) -> Callable[[Path], Vectors]:
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise FileFormatError(
            f"{file} has the suffix {file.suffix!r}; expected one of {', '.join(SUFFIXES)}",
            "rename it if it is one of these, or save the vectors with numpy.save as .npy",
        )
    return reader
