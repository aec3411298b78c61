"""The bytes of a MATLAB file of version 5 as tagged elements, stored or compressed, no size believed."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Collection
from typing import BinaryIO

from gradnet.wording import are, count

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
