"""Reads NumPy's .npy and .npz files: headers first, nothing pickled, nothing larger than it claims."""

from __future__ import annotations

import math
import reprlib
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from manifind.errors import FileFormatError
from manifind.io.checks import (
    IDS_NAMES,
    Vectors,
    check_expansion,
    check_ids,
    check_ids_shape,
    check_queries,
    check_shape,
    first_present,
    queries_name,
    rows_name,
    strings,
)

_LONGEST = 10_000  # NumPy's own limit; a header for plain numbers has about 100 characters


class Header(NamedTuple):
    """What an .npy array claims to be. length: bytes in front of the data."""

    type: np.dtype[Any]
    fortran_order: bool
    shape: tuple[int, ...]
    length: int

    def dtype(self, where: str, kinds: str, expected: str) -> np.dtype[Any]:
        """The type of the array's entries if it is one of `kinds`."""
        if self.type.hasobject:
            raise FileFormatError(
                f"{where} holds Python objects; expected {expected}, "
                "since objects are stored as pickles, which can run code when they are opened",
                "save plain values: X.astype(numpy.float32) for vectors, ids.astype(str) for ids",
            )
        if self.type.kind not in kinds or not self.type.itemsize:
            raise FileFormatError(
                f"{where} has the type {self.type.str!r}; expected {expected}", "convert it with .astype before saving"
            )
        return self.type

    def check_size(self, where: str, dtype: np.dtype[Any], present: int) -> int:
        """The bytes of data, refused unless exactly as many are present behind the header."""
        claimed = math.prod(self.shape) * dtype.itemsize
        if claimed != present:
            raise FileFormatError(
                f"{where} claims shape {reprlib.repr(self.shape)} of {dtype}, "
                f"which takes {claimed:,} bytes, but {max(present, 0):,} follow the header",
                "copy or save it again: it is cut short or damaged",
            )
        return claimed


class _HeaderStream:
    """Gives NumPy what it asks for, unless a header claims to be very long. length: bytes read so far."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.length = stream, 0

    def read(self, size: int) -> bytes:
        """Up to so many bytes."""
        if size > _LONGEST:
            raise ValueError(f"it claims {size:,} characters")
        data = self._stream.read(size)
        self.length += len(data)
        return data


def read_header(stream: IO[bytes], where: str) -> Header:
    """Header of the .npy array that starts at the stream's position, which is left at the data."""
    start: Any = _HeaderStream(stream)
    try:
        version = npy_format.read_magic(start)
        # Version 3 differs in the names of fields alone, and arrays with fields are refused.
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"its version is {version}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of headers that Python 2 wrote
            shape, fortran_order, dtype = read(start, max_header_size=_LONGEST)
        if any(extent < 0 for extent in shape):
            raise ValueError(f"its shape is {shape}")
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError) as error:
        raise FileFormatError(
            f"{where} has no valid header of a NumPy array, version 1 to 3: {str(error)[:200] or type(error).__name__}",
            "save it again with numpy.save",
        ) from error
    return Header(dtype, fortran_order, shape, start.length)


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


_NUMPY_WRITES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # other methods unpack without a bound on memory
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError)


class Archive(NamedTuple):
    """members: the arrays of the file by name."""

    path: Path
    zip: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]

    def where(self, name: str) -> str:
        """The array as an error calls it."""
        return f"the array {name!r} in {self.path}"

    def header(self, name: str) -> Header:
        """What the array claims to be; its data is not read."""
        info = self.members[name]
        if info.compress_type not in _NUMPY_WRITES:
            raise FileFormatError(
                f"{self.where(name)} is compressed by method {info.compress_type}; expected 0 (stored) or 8 (deflated)",
                "save it again with numpy.savez or numpy.savez_compressed",
            )
        with self.zip.open(info) as stream:
            return read_header(stream, self.where(name))

    def data(self, name: str, header: Header, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """The array, read-only, if it is as large as its header claims and no bomb."""
        info, where = self.members[name], self.where(name)
        size = header.check_size(where, dtype, info.file_size - header.length)
        packed = min(info.compress_size, self.path.stat().st_size)  # the former is only a claim
        check_expansion(where, info.file_size, packed)
        with self.zip.open(info) as stream:
            stream.read(header.length)
            data = stream.read(size)
        if len(data) != size:
            raise EOFError(f"{len(data)} of {size} bytes of {name!r} are there")
        return np.frombuffer(data, dtype).reshape(header.shape, order="F" if header.fortran_order else "C")


@contextmanager
def opened_npz(path: Path) -> Iterator[Archive]:
    """The arrays of an .npz file; whatever a damaged one raises on the way becomes a FileFormatError."""
    try:
        with zipfile.ZipFile(path) as file:
            members = {info.filename[:-4]: info for info in file.infolist() if info.filename.endswith(".npy")}
            yield Archive(path, file, members)
    except FileFormatError:
        raise
    except _DAMAGED as error:
        raise FileFormatError(
            f"{path} cannot be read as the zip file that .npz is: {str(error)[:200]}",
            "copy or save it again: it is cut short, damaged or encrypted",
        ) from error


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


_HINT = "save it again as numpy.savez(path, vectors=X, ids=names)"

_ShapeCheck = Callable[[str, tuple[int, ...]], None]


def read_npz(path: Path) -> Vectors:
    """Vectors from the array with a name that tells, or else from the only matrix; ids where there are any.

    Names that tell: `vectors`, `descriptors`, `X`, `features`, `embeddings`, in this order; for the ids
    `ids`, `names`; for the queries `queries`, `Q`.
    """
    with opened_npz(path) as archive:
        return _read(archive)


def _read(archive: Archive) -> Vectors:
    name = rows_name(archive.path, archive.members, lambda name: _is_matrix(archive, name), _HINT)
    rows = _matrix(archive, name, check_shape)
    others = queries_name(archive.members, name)
    queries = None
    if others is not None:
        d = rows.shape[1]
        queries = _matrix(archive, others, lambda where, shape: check_queries(where, shape, d))
    return Vectors(rows, _ids(archive, len(rows)), queries)


def _is_matrix(archive: Archive, name: str) -> bool:
    header = archive.header(name)
    return header.type.kind in "fiub" and len(header.shape) == 2


def _matrix(archive: Archive, name: str, check: _ShapeCheck) -> np.ndarray[Any, Any]:
    where, header = archive.where(name), archive.header(name)
    check(where, header.shape)
    return archive.data(name, header, header.dtype(where, "fiub", "real numbers"))


def _ids(archive: Archive, n: int) -> list[str] | list[int] | None:
    name = first_present(IDS_NAMES, archive.members)
    if name is None:
        return None
    where, header = archive.where(name), archive.header(name)
    check_ids_shape(where, header.shape, n)
    entries = archive.data(name, header, header.dtype(where, "iuUS", "strings or integers"))
    ids = strings(entries, where) if entries.dtype.kind in "US" else entries.tolist()
    check_ids(where, ids)
    return ids
