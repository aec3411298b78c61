"""An open .npz file: what each array claims to be, and its data once the claim is checked."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.checks import check_expansion
from gradnet.formats.npy_header import Header, read_header

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
                f"{self.where(name)} is compressed by method {info.compress_type}; "
                "expected 0 (stored) or 8 (deflated)",
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
