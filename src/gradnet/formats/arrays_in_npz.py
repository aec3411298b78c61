"""Any arrays of an .npz file by name, with the checks that vectors get: no pickles, no bombs, no lies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.checks import check_expansion
from gradnet.formats.naming import strings
from gradnet.formats.npy_header import Header
from gradnet.formats.npz_archive import Archive, opened_npz


def read_npz_headers(path: Path) -> dict[str, Header]:
    """What each array claims to be, by name; no array is read."""
    with opened_npz(path) as archive:
        return {name: archive.header(name) for name in archive.members}


def read_npz_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """These arrays, of numbers in any shape or of strings in one dimension; read-only."""
    with opened_npz(path) as archive:
        unpacked = sum(archive.members[name].file_size for name in names)
        check_expansion(str(path), unpacked, path.stat().st_size)  # members may share their packed bytes
        return {name: _array(archive, name) for name in names}


def read_stored_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """All arrays of a file that packs none of them: together they take no more memory than the file has bytes."""
    with opened_npz(path) as archive:
        unpacked = sum(info.file_size for info in archive.members.values())
        if unpacked > path.stat().st_size:
            raise FileFormatError(
                f"{path} would grow from {path.stat().st_size:,} bytes to {unpacked:,}",
                "save it again with numpy.savez, which packs nothing",
            )
        return {name: _array(archive, name) for name in archive.members}


def _array(archive: Archive, name: str) -> np.ndarray[Any, Any]:
    where, header = archive.where(name), archive.header(name)
    dtype = header.dtype(where, "fiubUS", "numbers or strings")
    if dtype.kind not in "US":
        return archive.data(name, header, dtype)
    if len(header.shape) != 1:
        raise FileFormatError(
            f"{where} has shape {header.shape}; expected one string for each item", "save it as one dimension"
        )
    return np.array(strings(archive.data(name, header, dtype), where), dtype=np.str_)
