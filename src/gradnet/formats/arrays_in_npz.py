"""Any arrays of an .npz file by name, with the checks that vectors get: no pickles, no bombs, no lies."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.checks import check_expansion
from gradnet.formats.naming import strings
from gradnet.formats.npy_header import Header
from gradnet.formats.npz import _DAMAGED, _Archive, _data, _header


def read_npz_headers(path: Path) -> dict[str, Header]:
    """What each array claims to be, by name; no array is read."""
    with _opened(path) as archive:
        return {name: _header(archive, name) for name in archive.members}


def read_npz_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """These arrays, of numbers in any shape or of strings in one dimension; read-only."""
    with _opened(path) as archive:
        unpacked = sum(archive.members[name].file_size for name in names)
        check_expansion(str(path), unpacked, path.stat().st_size)  # members may share their packed bytes
        return {name: _array(archive, name) for name in names}


def _array(archive: _Archive, name: str) -> np.ndarray[Any, Any]:
    where, header = archive.where(name), _header(archive, name)
    dtype = header.dtype(where, "fiubUS", "numbers or strings")
    if dtype.kind not in "US":
        return _data(archive, name, header, dtype)
    if len(header.shape) != 1:
        raise FileFormatError(
            f"{where} has shape {header.shape}; expected one string for each item", "save it as one dimension"
        )
    return np.array(strings(_data(archive, name, header, dtype), where), dtype=np.str_)


@contextmanager
def _opened(path: Path) -> Iterator[_Archive]:
    try:
        with zipfile.ZipFile(path) as file:
            members = {info.filename[:-4]: info for info in file.infolist() if info.filename.endswith(".npy")}
            yield _Archive(path, file, members)
    except FileFormatError:
        raise
    except _DAMAGED as error:
        raise FileFormatError(
            f"{path} cannot be read as the zip file that .npz is: {str(error)[:200]}",
            "copy or save it again: it is cut short, damaged or encrypted",
        ) from error
