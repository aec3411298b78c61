"""Reads NumPy's .npy and .npz files: headers first, nothing pickled, nothing larger than it claims."""

import io
import math
import reprlib
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from manifind.errors import FileFormatError
from manifind.io.checks import Vectors, check_expansion, check_ids_shape, check_shape, named_vectors, strings

_LONGEST = 10_000  # NumPy's own limit; a header for plain numbers has about 100 characters


class Header(NamedTuple):
    """What an .npy array claims to be. length: bytes in front of the data."""

    type: np.dtype[Any]
    fortran_order: bool
    shape: tuple[int, ...]
    length: int

    def dtype(self, where: str, kinds: str, expected: str) -> np.dtype[Any]:
        """The type of the array's entries if it is one of `kinds`. expected: these in words."""
        if self.type.hasobject:
            raise FileFormatError(
                f"{where} holds Python objects; expected {expected}, "
                "since objects are stored as pickles, which can run code when they are opened",
                "save plain values: X.astype(numpy.float32) for vectors, ids.astype(str) for ids",
            )
        if self.type.kind not in kinds or not self.type.itemsize:
            problem = f"{where} has the type {self.type.str!r}; expected {expected}"
            raise FileFormatError(problem, "convert it with .astype before saving")
        return self.type

    def check_size(self, where: str, present: int) -> None:
        """Refuse an array of which not exactly its bytes are present behind the header."""
        claimed = math.prod(self.shape) * self.type.itemsize
        if claimed != present:
            raise FileFormatError(
                f"{where} claims shape {reprlib.repr(self.shape)} of {self.type}, "
                f"which takes {claimed:,} bytes, but {max(present, 0):,} follow the header",
                "copy or save it again: it is cut short or damaged",
            )


def read_header(stream: IO[bytes], where: str) -> Header:
    """Header of the .npy array that starts at the stream's position."""
    start = stream.read(12)
    try:
        version = npy_format.read_magic(io.BytesIO(start))
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"its version is {version}")
        end = 10 if version == (1, 0) else 12  # of the length that stands behind the 8 bytes of the version
        claimed = int.from_bytes(start[8:end], "little")
        if claimed > _LONGEST:
            raise ValueError(f"it claims {claimed:,} characters")
        header = io.BytesIO(start + stream.read(max(0, end + claimed - len(start))))
        header.seek(8)
        # Version 3 differs in the names of fields alone, and arrays with fields are refused.
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of headers that Python 2 wrote
            shape, fortran_order, dtype = read(header, max_header_size=_LONGEST)
        if any(extent < 0 for extent in shape):
            raise ValueError(f"its shape is {shape}")
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError) as error:
        reason = str(error)[:200] or type(error).__name__
        problem = f"{where} has no valid header of a NumPy array, version 1 to 3: {reason}"
        raise FileFormatError(problem, "save it again with numpy.save") from error
    return Header(dtype, fortran_order, shape, header.tell())


def read_npy(path: Path) -> Vectors:
    """Vectors without ids, the rows a read-only map of the file."""
    with path.open("rb") as stream:  # before it is mapped: nothing of size 0 can be
        check_shape(str(path), read_header(stream, str(path)).shape)
    return Vectors(map_npy(path, "fiub", "real numbers"), None)


def map_npy(path: Path, kinds: str, expected: str) -> np.ndarray[Any, Any]:
    """The array as a read-only map of the file, if its type is one of `kinds`. expected: these in words."""
    with path.open("rb") as stream:
        header = read_header(stream, str(path))
    dtype = header.dtype(str(path), kinds, expected)
    header.check_size(str(path), path.stat().st_size - header.length)
    if 0 in header.shape:
        return np.empty(header.shape, dtype)
    rows = np.memmap(path, dtype, "r", header.length, header.shape, "F" if header.fortran_order else "C")
    return np.require(rows, requirements="A")  # an odd header leaves the data misaligned


_NUMPY_WRITES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # other methods unpack without a bound on memory
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError)


class Archive(NamedTuple):
    """members: the arrays of the file by name."""

    path: Path
    zip: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]

    def where(self, name: str) -> str:
        return f"the array {name!r} in {self.path}"

    def header(self, name: str) -> Header:
        """What the array claims to be; its data is not read."""
        info = self.members[name]
        if info.compress_type not in _NUMPY_WRITES:
            problem = f"{self.where(name)} is compressed by method {info.compress_type}"
            hint = "save it again with numpy.savez or numpy.savez_compressed"
            raise FileFormatError(f"{problem}; expected 0 (stored) or 8 (deflated)", hint)
        with self.zip.open(info) as stream:
            return read_header(stream, self.where(name))

    def array(self, name: str, kinds: str, expected: str) -> np.ndarray[Any, Any]:
        """The array, read-only, if its type is one of `kinds`, it is as large as its header claims and no bomb."""
        info, where, header = self.members[name], self.where(name), self.header(name)
        dtype, size = header.dtype(where, kinds, expected), info.file_size - header.length
        header.check_size(where, size)
        packed = min(info.compress_size, self.path.stat().st_size)  # the former is only a claim
        check_expansion(where, info.file_size, packed)
        with self.zip.open(info) as stream:
            stream.read(header.length)
            data = stream.read(size)
        if len(data) != size:
            raise EOFError(f"{len(data)} of {size} bytes of {name!r} are there")
        return np.frombuffer(data, dtype).reshape(header.shape, order="F" if header.fortran_order else "C")

    def is_matrix(self, name: str) -> bool:
        header = self.header(name)
        return header.type.kind in "fiub" and len(header.shape) == 2

    def numbers(self, name: str, d: int | None = None) -> np.ndarray[Any, Any]:
        check_shape(self.where(name), self.header(name).shape, d)
        return self.array(name, "fiub", "real numbers")

    def ids(self, name: str, n: int) -> list[str] | list[int]:
        check_ids_shape(self.where(name), self.header(name).shape, n)
        entries = self.array(name, "iuUS", "strings or integers")
        return strings(entries, self.where(name)) if entries.dtype.kind in "US" else entries.tolist()


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
        problem = f"{path} cannot be read as the zip file that .npz is: {str(error)[:200]}"
        raise FileFormatError(problem, "copy or save it again: it is cut short, damaged or encrypted") from error


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
            problem = f"{path} would grow from {path.stat().st_size:,} bytes to {unpacked:,}"
            raise FileFormatError(problem, "save it again with numpy.savez, which packs nothing")
        return {name: _array(archive, name) for name in archive.members}


def _array(archive: Archive, name: str) -> np.ndarray[Any, Any]:
    where, found = archive.where(name), archive.array(name, "fiubUS", "numbers or strings")
    if found.dtype.kind not in "US":
        return found
    if found.ndim != 1:
        problem = f"{where} has shape {found.shape}; expected one string for each item"
        raise FileFormatError(problem, "save it as one dimension")
    return np.array(strings(found, where), dtype=np.str_)


def read_npz(path: Path) -> Vectors:
    """Vectors from the array with a name that tells, or else from the only matrix; ids where there are any.

    Names that tell: `vectors`, `descriptors`, `X`, `features`, `embeddings`, in this order; for the ids
    `ids`, `names`; for the queries `queries`, `Q`.
    """
    with opened_npz(path) as archive:
        return named_vectors(archive, archive.members, "save it again as numpy.savez(path, vectors=X, ids=names)")
