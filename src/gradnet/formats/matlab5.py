"""Variables of MATLAB's files of version 5 to 7, read by hand: on some damaged files SciPy crashes the process."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from gradnet.errors import FileFormatError
from gradnet.formats.matlab5_stream import DamagedError, Elements, Inflating
from gradnet.formats.matlab5_values import MATRIX, Builder, read_head
from gradnet.wording import are, count

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
            raise DamagedError(
                f"{count(after - file_size, 'byte')} {are(after - file_size)} missing at its end"
            )
        elements = stored
        if kind == _COMPRESSED:
            elements = Elements(io.BufferedReader(Inflating(stream, size)), order)
            kind, _ = elements.tag()
        if kind != MATRIX:
            raise DamagedError(f"it has an element of type {kind} where a variable should be")
        yield elements
        stream.seek(after)
