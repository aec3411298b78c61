"""Reads variables of MATLAB files of version 5 to 7, within bounds on size, number and depth."""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from manifind.errors import FileFormatError
from manifind.io.checks import check_expansion
from manifind.text import are, count

_PIECE = 1 << 16


class DamagedError(Exception):
    """A file that contradicts itself or ends too early."""


class Elements:
    """Elements one after the other: a tag with type and size, the data, and zeros up to a multiple of 8 bytes.

    order: "<" or ">", of the bytes of numbers.
    """

    def __init__(self, stream: BinaryIO, order: str) -> None:
        self.stream, self.order = stream, order

    def tag(self) -> tuple[int, int]:
        """The type and the size of an element whose data follow."""
        kind, size = struct.unpack(self.order + "II", self._read(8))
        return kind, size

    def data(self, kinds: Collection[int], most: int) -> tuple[int, bytes]:
        """The type and the data of the next element, if it is one of these types and not too large."""
        kind, inside = struct.unpack(self.order + "I4s", self._read(8))
        if kind >> 16:  # as few data as fit into the tag stand there, in place of their size
            kind, size, most = kind & 0xFFFF, kind >> 16, min(most, 4)
        else:
            (size,), inside = struct.unpack(self.order + "I", inside), b""
        if kind not in kinds or size > most:
            raise DamagedError(f"an element has type {kind} and {size:,} bytes; expected {most:,} at most")
        return kind, (inside or self._read(size + -size % 8))[:size]

    def _read(self, size: int) -> bytes:
        data = self.stream.read(size)
        if len(data) != size:
            raise DamagedError(f"{count(size - len(data), 'byte')} {are(size - len(data))} missing")
        return data


class Inflating(io.RawIOBase):
    """What a stretch of a stream unpacks to, made as it is read."""

    def __init__(self, stream: BinaryIO, packed: int) -> None:
        self._stream, self._left, self._inflate, self._tail = stream, packed, zlib.decompressobj(), b""

    def readable(self) -> bool:
        """True: this is for reading."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """How many bytes were put into the buffer, 0 at the end."""
        data = b""
        while not data and not self._inflate.eof:
            packed = self._tail or self._stream.read(min(self._left, _PIECE))
            if not packed:
                raise DamagedError("a compressed variable ends too early")
            self._left -= 0 if self._tail else len(packed)
            try:
                data = self._inflate.decompress(packed, len(buffer))
            except zlib.error as error:
                raise DamagedError(f"a compressed variable cannot be unpacked: {error}") from error
            self._tail = self._inflate.unconsumed_tail
        buffer[: len(data)] = data
        return len(data)


_INT8, _INT32, _UINT32, MATRIX, _UTF8 = 1, 5, 6, 14, 16
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXT = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}  # by element type
_BYTE_ORDER = {"<": "-le", ">": "-be"}
_CELL, _STRUCT, _CHAR = 1, 2, 4
_NUMBERS = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_COMPLEX = 0x800
_DEEPEST = 4  # lists inside structs and texts inside cells need 1
_MOST_ARRAYS = 5_000_000
_MOST_DIMENSIONS, _LONGEST_NAME, _MOST_FIELDS = 32, 64, 100


class Head(NamedTuple):
    """What an array says about itself. kind: the number of its class."""

    kind: int
    is_complex: bool
    shape: tuple[int, ...]
    name: str


def read_head(elements: Elements) -> Head:
    """The head of the array that starts here, behind its tag."""
    _, flags = elements.data((_UINT32,), 8)
    _, extents = elements.data((_INT32, _UINT32), 4 * _MOST_DIMENSIONS)
    if len(flags) != 8 or len(extents) % 4 or len(extents) < 8:
        raise DamagedError("an array has no class or no shape")
    shape = struct.unpack(f"{elements.order}{len(extents) // 4}i", extents)
    if min(shape) < 0:
        raise DamagedError(f"an array has the shape {shape}")
    _, name = elements.data((_INT8, _UTF8), _LONGEST_NAME)
    (bits,) = struct.unpack(elements.order + "I4x", flags)
    return Head(bits & 0xFF, bool(bits & _COMPLEX), shape, name.decode("latin-1"))


class Builder:
    """Builds the value behind a head. where: of the variable, for messages. size: of the file, bounds memory."""

    def __init__(self, elements: Elements, where: str, size: int) -> None:
        self._elements, self._where, self._size = elements, where, size
        self._arrays = self._unpacked = 0

    def value(self, head: Head, depth: int = 0) -> Any:
        """Numbers as an array, a line of text as a str, cells as a list, structs as a list of dicts."""
        self._arrays += 1
        if self._arrays > _MOST_ARRAYS or depth > _DEEPEST:
            raise DamagedError(f"{self._where} has {self._arrays:,} arrays inside arrays, {depth} deep")
        count = math.prod(head.shape)
        if head.kind == _CELL:
            return self._parts(count, depth)
        if head.kind == _STRUCT:
            return self._structs(count, depth)
        if head.kind == _CHAR:
            return self._text(head.shape, count)
        if head.kind in _NUMBERS and not head.is_complex:
            return self._numbers(np.dtype(_NUMBERS[head.kind]), head.shape, count)
        raise DamagedError(
            f"{self._where} is of class {head.kind}, complex: {head.is_complex}; "
            "expected real numbers, text, cells or structs"
        )

    def _parts(self, count: int, depth: int) -> list[Any]:
        if count > _MOST_ARRAYS:
            raise DamagedError(f"{self._where} claims {count:,} cells")
        return [self._part(depth + 1) for _ in range(count)]

    def _part(self, depth: int) -> Any:
        kind, size = self._elements.tag()
        if kind != MATRIX:
            raise DamagedError(f"{self._where} has an element of type {kind} where an array should be")
        if size == 0:  # an empty array may consist of the tag alone
            return np.empty((0, 0))
        return self.value(read_head(self._elements), depth)

    def _structs(self, count: int, depth: int) -> list[dict[str, Any]]:
        _, lengths = self._elements.data((_INT32,), 4)
        _, joined = self._elements.data((_INT8,), _MOST_FIELDS * _LONGEST_NAME)
        length = int.from_bytes(lengths, "little" if self._elements.order == "<" else "big", signed=True)
        if length < 1 or not joined or len(joined) % length:
            raise DamagedError(f"{self._where} has {len(joined)} bytes of names of {length} each")
        fields = [joined[start : start + length] for start in range(0, len(joined), length)]
        names = [field.split(b"\0")[0].decode("latin-1") for field in fields]
        parts = self._parts(count * len(names), depth)
        starts = range(0, len(parts), len(names))
        return [dict(zip(names, parts[start : start + len(names)], strict=True)) for start in starts]

    def _text(self, shape: tuple[int, ...], count: int) -> str:
        if count and shape != (1, count):
            raise DamagedError(f"{self._where} has text of shape {shape}; expected one line")
        kind, data = self._elements.data(_TEXT, self._room(4 * count))
        order = _BYTE_ORDER[self._elements.order] if "utf-" in _TEXT[kind] and kind != _UTF8 else ""
        try:
            return data.decode(_TEXT[kind] + order)
        except UnicodeDecodeError as error:
            raise DamagedError(f"{self._where} has text that is not {_TEXT[kind]}: {error.reason}") from error

    def _numbers(self, dtype: np.dtype[Any], shape: tuple[int, ...], count: int) -> np.ndarray[Any, Any]:
        self._room(count * dtype.itemsize)
        kind, data = self._elements.data(_STORED, 8 * count)  # small numbers may be stored in few bytes
        stored = np.dtype(self._elements.order + _STORED[kind])
        if len(data) != count * stored.itemsize:
            raise DamagedError(f"{self._where} has {len(data):,} bytes of {stored} for {count:,} numbers")
        return np.frombuffer(data, stored).astype(dtype, copy=False).reshape(shape, order="F")

    def _room(self, unpacked: int) -> int:
        self._unpacked += unpacked
        check_expansion(self._where, self._unpacked, self._size)
        return unpacked


_HEADER_BYTES = 128
_ORDER = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}  # by version and mark of endianness
_COMPRESSED = 15


def load_variables(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Those of the variables that the file has; the others are passed over.

    Matrices of numbers come as arrays in the type that MATLAB gives them, lines of text as str, cell arrays as
    lists, struct arrays as lists of dicts, both in MATLAB's order, column by column.
    """
    found: dict[str, Any] = {}
    size = path.stat().st_size
    try:
        with path.open("rb") as stream:
            for elements in _variables(stream, size):
                head = read_head(elements)
                if head.name in found:
                    raise DamagedError(f"it has two variables {head.name!r}")
                if head.name in names:
                    found[head.name] = Builder(elements, f"{head.name!r} in {path}", size).value(head)
                    if elements.stream is not stream:
                        elements.stream.read(8)  # to the end of what is compressed, where its checksum stands
    except DamagedError as error:
        raise FileFormatError(
            f"{path} cannot be read as a MATLAB file: {error}",
            "copy or save it again, in MATLAB with save -v7: it is cut short, damaged or in another format",
        ) from error
    return found


def _variables(stream: BinaryIO, file_size: int) -> Iterator[Elements]:
    """The elements of each variable, from behind the tag of its array."""
    order = _ORDER.get(stream.read(_HEADER_BYTES)[-4:])
    if order is None:
        raise DamagedError("it does not start with the header of version 5, nor is it of version 7.3")
    stored = Elements(stream, order)
    while stream.tell() < file_size:
        kind, size = stored.tag()
        after = stream.tell() + size
        if after > file_size:
            raise DamagedError(f"{count(after - file_size, 'byte')} {are(after - file_size)} missing at its end")
        elements = stored
        if kind == _COMPRESSED:
            elements = Elements(io.BufferedReader(Inflating(stream, size)), order)
            kind, _ = elements.tag()
        if kind != MATRIX:
            raise DamagedError(f"it has an element of type {kind} where a variable should be")
        yield elements
        stream.seek(after)
