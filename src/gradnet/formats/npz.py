"""Vectors and ids in NumPy's .npz format: a zip of named arrays, none of them pickled."""

from __future__ import annotations

import reprlib
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.checks import Vectors, check_expansion, check_ids, check_shape
from gradnet.formats.npy_header import Header, read_header

_ROWS_NAMES = ("vectors", "descriptors", "X", "features", "embeddings")
_IDS_NAMES = ("ids", "names")
_NUMPY_WRITES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # other methods unpack without a bound on memory
_UTF_32 = {"<": "utf-32-le", ">": "utf-32-be"}  # by NumPy's letter for the order of bytes
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError)


class _Archive(NamedTuple):
    path: Path
    zip: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]

    def where(self, name: str) -> str:
        return f"the array {name!r} in {self.path}"


def read_npz(path: Path) -> Vectors:
    """Vectors from the array with a name that tells, or else from the only matrix; ids where there are any.

    Names that tell: `vectors`, `descriptors`, `X`, `features`, `embeddings`, in this order; for the ids
    `ids`, `names`.
    """
    try:
        with zipfile.ZipFile(path) as file:
            members = {info.filename[:-4]: info for info in file.infolist() if info.filename.endswith(".npy")}
            return _read(_Archive(path, file, members))
    except FileFormatError:
        raise
    except _DAMAGED as error:
        raise FileFormatError(
            f"{path} cannot be read as the zip file that .npz is: {str(error)[:200]}",
            "copy or save it again: it is cut short, damaged or encrypted",
        ) from error


def _read(archive: _Archive) -> Vectors:
    name = _first_present(_ROWS_NAMES, archive) or _only_matrix(archive)
    header = _header(archive, name)
    check_shape(archive.where(name), header.shape)
    dtype = header.dtype(archive.where(name), "fiub", "real numbers")
    rows = _data(archive, name, header, dtype)
    return Vectors(rows, _ids(archive, len(rows)))


def _first_present(names: Iterable[str], archive: _Archive) -> str | None:
    return next((name for name in names if name in archive.members), None)


def _only_matrix(archive: _Archive) -> str:
    headers = {name: _header(archive, name) for name in archive.members if name not in _IDS_NAMES}
    matrices = [name for name, header in headers.items() if header.kind in "fiub" and len(header.shape) == 2]
    if len(matrices) != 1:
        names = ", ".join(map(repr, archive.members))[:500]
        found = "several matrices" if matrices else "no matrix of numbers"
        raise FileFormatError(
            f"{archive.path} has {found} among its arrays ({names or 'none at all'}); "
            f"expected one, or one that is called {', '.join(_ROWS_NAMES)}",
            "save it again as numpy.savez(path, vectors=X, ids=names)",
        )
    return matrices[0]


def _ids(archive: _Archive, n: int) -> list[str] | list[int] | None:
    name = _first_present(_IDS_NAMES, archive)
    if name is None:
        return None
    where, header = archive.where(name), _header(archive, name)
    if header.shape != (n,):  # before reading, so that the rows bound the ids
        raise FileFormatError(
            f"{where} has shape {reprlib.repr(header.shape)}; expected ({n},), one id for each row",
            "write the ids again, or leave them out",
        )
    entries = _data(archive, name, header, header.dtype(where, "iuUS", "strings or integers"))
    ids = _strings(entries, where) if entries.dtype.kind in "US" else entries.tolist()
    check_ids(where, ids)
    return ids


def _strings(entries: np.ndarray[Any, Any], where: str) -> list[str]:
    try:
        if entries.dtype.kind == "S":
            return [entry.decode() for entry in entries.tolist()]
        entries.tobytes().decode(_UTF_32[entries.dtype.str[0]])  # only to refuse what is no character
        return [str(entry) for entry in entries]
    except ValueError as error:
        raise FileFormatError(f"{where} is not valid Unicode: {error}", "write the ids as UTF-8") from error


def _header(archive: _Archive, name: str) -> Header:
    info = archive.members[name]
    if info.compress_type not in _NUMPY_WRITES:
        raise FileFormatError(
            f"{archive.where(name)} is compressed by method {info.compress_type}; "
            "expected 0 (stored) or 8 (deflated)",
            "save it again with numpy.savez or numpy.savez_compressed",
        )
    with archive.zip.open(info) as stream:
        return read_header(stream, archive.where(name))


def _data(archive: _Archive, name: str, header: Header, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    info, where = archive.members[name], archive.where(name)
    size = header.check_size(where, dtype, info.file_size - header.length)
    packed = min(info.compress_size, archive.path.stat().st_size)  # the former is only a claim
    check_expansion(where, info.file_size, packed)
    with archive.zip.open(info) as stream:
        stream.read(header.length)
        data = stream.read(size)
    if len(data) != size:
        raise EOFError(f"{len(data)} of {size} bytes of {name!r} are there")
    return np.frombuffer(data, dtype).reshape(header.shape, order="F" if header.fortran_order else "C")
