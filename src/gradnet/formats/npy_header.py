"""The header of an .npy array, read with patterns so that nothing in it is ever evaluated."""

from __future__ import annotations

import math
import re
import reprlib
from typing import IO, Any, NamedTuple

import numpy as np

from gradnet.errors import FileFormatError

_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {b"\x01\x00": 2, b"\x02\x00": 4, b"\x03\x00": 4}  # by format version
_LONGEST = 10_000  # NumPy's own limit; a header for plain numbers has about 100 characters

_TYPE = re.compile(r"""['"]descr['"]\s*:\s*(?:['"]([^'"]*)['"]|\[)""")
_ORDER = re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)""")
_SHAPE = re.compile(r"""['"]shape['"]\s*:\s*\(([^)]*)\)""")
_EXTENT = re.compile(r"\s*([0-9]{1,18})L?\s*")  # Python 2 wrote 3L
_PLAIN_TYPE = re.compile(r"[<>|=]?([a-zA-Z])[1-9][0-9]{0,7}")


class Header(NamedTuple):
    """What an .npy array claims to be.

    kind: the letter of the type: f, i, u, b, U, S ..., O for objects, V for records.
    length: bytes in front of the data.
    """

    kind: str
    type_name: str
    fortran_order: bool
    shape: tuple[int, ...]
    length: int

    def dtype(self, where: str, kinds: str, expected: str) -> np.dtype[Any]:
        """The type of the array's entries if it is one of `kinds`."""
        if self.kind == "O":
            raise FileFormatError(
                f"{where} holds Python objects; expected {expected}, "
                "since objects are stored as pickles, which can run code when they are opened",
                "save plain values: X.astype(numpy.float32) for vectors, ids.astype(str) for ids",
            )
        try:
            if self.kind in kinds:
                return np.dtype(self.type_name)
        except (TypeError, ValueError):  # a width that does not exist, such as f3
            pass
        raise FileFormatError(
            f"{where} has the type {reprlib.repr(self.type_name)}; expected {expected}",
            "convert it with .astype before saving",
        )

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


def read_header(stream: IO[bytes], where: str) -> Header:
    """Header of the .npy array that starts at the stream's position, which is left at the data."""
    start = stream.read(8)
    width = _LENGTH_BYTES.get(start[6:])
    if start[:6] != _MAGIC or width is None:
        raise FileFormatError(
            f"{where} starts with {start!r}; expected the NumPy array format, version 1 to 3",
            "save it again with numpy.save",
        )
    length = int.from_bytes(stream.read(width), "little")
    text = stream.read(length).decode("latin-1") if length <= _LONGEST else ""
    if len(text) != length or not length:
        raise FileFormatError(
            f"{where} announces a NumPy header of {length:,} characters, of which {len(text):,} can be read",
            "copy or save it again: it is cut short or damaged",
        )
    return _parse(text, 8 + width + length, where)


def _parse(text: str, length: int, where: str) -> Header:
    entry_type, order, shape = _TYPE.search(text), _ORDER.search(text), _SHAPE.search(text)
    if entry_type is None or order is None or shape is None:
        raise _damaged(text, where)
    extents = shape[1].rstrip(" ,").split(",") if shape[1] else []
    numbers = [match[1] for extent in extents if (match := _EXTENT.fullmatch(extent))]
    if len(numbers) != len(extents):
        raise _damaged(text, where)
    name = entry_type[1] if entry_type[1] is not None else "record"
    plain = _PLAIN_TYPE.fullmatch(name)
    kind = plain[1] if plain else "O" if name.endswith("O") else "V"
    return Header(kind, name, order[1] == "True", tuple(map(int, numbers)), length)


def _damaged(text: str, where: str) -> FileFormatError:
    return FileFormatError(
        f"{where} has the NumPy header {text[:120].strip()!r}; expected a plain type, an order and a shape",
        "save it again with numpy.save",
    )
