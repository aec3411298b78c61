"""The door for every file of vectors: the suffix chooses the reader."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gradnet.errors import FileFormatError
from gradnet.formats.checks import Vectors
from gradnet.formats.delimited import read_csv, read_tsv
from gradnet.formats.fvecs import read_fvecs
from gradnet.formats.npy import read_npy
from gradnet.formats.npz import read_npz
from gradnet.formats.parquet import read_parquet

__all__ = ["SUFFIXES", "Vectors", "read_vectors"]

_READERS: dict[str, Callable[[Path], Vectors]] = {
    ".csv": read_csv,
    ".fvecs": read_fvecs,
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
    try:
        _check_file(file)
        return _reader(file)(file)
    except OSError as error:
        raise FileFormatError(
            f"{file} cannot be read: {error.strerror or error}",
            "check that it is yours to read and its disk is there",
        ) from error


def _check_file(file: Path) -> None:
    expected = f"expected a file of vectors: {', '.join(SUFFIXES)}"
    if not file.exists():
        raise FileFormatError(f"{file} does not exist; {expected}", "check the spelling and the folder")
    if file.is_dir():
        raise FileFormatError(f"{file} is a folder; {expected}", "name one file inside it")
    if not file.is_file():  # reading a pipe or a device could wait for ever
        raise FileFormatError(f"{file} is not a regular file; {expected}", "save the vectors to a file first")
    if file.stat().st_size == 0:
        raise FileFormatError(
            f"{file} is empty (0 bytes); {expected}", "write it again: saving was interrupted"
        )


def _reader(file: Path) -> Callable[[Path], Vectors]:
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise FileFormatError(
            f"{file} has the suffix {file.suffix!r}; expected one of {', '.join(SUFFIXES)}",
            "rename it if it is one of these, or save the vectors with numpy.save as .npy",
        )
    return reader
