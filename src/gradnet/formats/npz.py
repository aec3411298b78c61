"""Vectors, ids and queries in NumPy's .npz format: a zip of named arrays, none of them pickled."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.checks import Vectors, check_expansion, check_ids, check_shape
from gradnet.formats.naming import (
    IDS_NAMES,
    check_ids_shape,
    check_queries,
    first_present,
    queries_name,
    rows_name,
    strings,
)
from gradnet.formats.npy_header import Header, read_header

_NUMPY_WRITES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # other methods unpack without a bound on memory
_HINT = "save it again as numpy.savez(path, vectors=X, ids=names)"
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError)

_ShapeCheck = Callable[[str, tuple[int, ...]], None]


class _Archive(NamedTuple):
    path: Path
    zip: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]

    def where(self, name: str) -> str:
        return f"the array {name!r} in {self.path}"


def read_npz(path: Path) -> Vectors:
    """Vectors from the array with a name that tells, or else from the only matrix; ids where there are any.

    Names that tell: `vectors`, `descriptors`, `X`, `features`, `embeddings`, in this order; for the ids
    `ids`, `names`; for the queries `queries`, `Q`.
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
    name = rows_name(archive.path, archive.members, lambda name: _is_matrix(archive, name), _HINT)
    rows = _matrix(archive, name, check_shape)
    others = queries_name(archive.members, name)
    queries = None
    if others is not None:
        d = rows.shape[1]
        queries = _matrix(archive, others, lambda where, shape: check_queries(where, shape, d))
    return Vectors(rows, _ids(archive, len(rows)), queries)


def _is_matrix(archive: _Archive, name: str) -> bool:
    header = _header(archive, name)
    return header.kind in "fiub" and len(header.shape) == 2


def _matrix(archive: _Archive, name: str, check: _ShapeCheck) -> np.ndarray[Any, Any]:
    where, header = archive.where(name), _header(archive, name)
    check(where, header.shape)
    return _data(archive, name, header, header.dtype(where, "fiub", "real numbers"))


def _ids(archive: _Archive, n: int) -> list[str] | list[int] | None:
    name = first_present(IDS_NAMES, archive.members)
    if name is None:
        return None
    where, header = archive.where(name), _header(archive, name)
    check_ids_shape(where, header.shape, n)
    entries = _data(archive, name, header, header.dtype(where, "iuUS", "strings or integers"))
    ids = strings(entries, where) if entries.dtype.kind in "US" else entries.tolist()
    check_ids(where, ids)
    return ids


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
