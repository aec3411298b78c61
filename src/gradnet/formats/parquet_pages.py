"""How much a .parquet file unpacks to, by the headers of its pages: these are what decoding follows, not the footer."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

_DATA_PAGE, _DATA_PAGE_V2 = 0, 3
_DELTAS = (6, 7)  # encodings of texts by their lengths, and by what they share with the text before
_DEEPEST = 12  # structs and lists within each other; a footer has seven
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 0}
_LIST_WIDTH = 12  # bytes beside each value of a list while it is decoded: two levels, and copies on the way
_ENTRY_WIDTH = 16  # of an entry of a dictionary, beside its text


Fields: TypeAlias = dict[int, Any]


class Leaf(NamedTuple):
    """One column of the file, as its pages have it.

    path: the names from the column to the value, with dots between them. width: of a value in bytes, 0 for texts.
    values: nulls and empty lists count. pages: bytes of all of them, unpacked. largest_page: unpacked.
    has_deltas: whether texts may share their beginnings, so that each of them may be as long as a page.
    """

    path: str
    width: int
    is_repeated: bool
    values: int = 0
    pages: int = 0
    largest_page: int = 0
    has_deltas: bool = False

    def is_of(self, name: str | None) -> bool:
        """Whether reading the column of this name decodes it; pyarrow takes a dot in a name for a part of a path."""
        return name is not None and name in _prefixes(self.path)

    def unpacked(self, width: int) -> int:
        """Bytes that decoding takes where each value becomes so many, at least."""
        levels = _LIST_WIDTH if self.is_repeated else 0
        texts = 0 if self.width else self.pages
        return self.values * (max(width, self.width) + levels) + texts + self.largest_page


def read_leaves(schema: Any, content: mmap.mmap, names: list[str]) -> list[Leaf]:
    """Of the columns that reading these names decodes; a ValueError where the pages are not what the footer claims.

    schema: of the file, by pyarrow. content: the whole file. The footer is read here, too: what pyarrow tells of a
    part of a damaged one may end the process.
    """
    footer = _Compact(content, len(content) - 8 - int.from_bytes(content[-8:-4], "little")).struct()
    groups = [(_number(group, 3), _parts(group, 1)) for group in _parts(footer, 4)]
    if _number(footer, 3) != sum(n_rows for n_rows, _ in groups):
        raise ValueError("the rows of its parts are not those of the whole")
    if any(len(columns) != len(schema) for _, columns in groups):
        raise ValueError("a part has not the columns of the whole")
    left, leaves, wanted = len(content), [], set(names)
    for i in range(len(schema)):
        if wanted.isdisjoint(_prefixes(schema.column(i).path)):
            continue
        chunks = [(n_rows, _part(columns[i], 3)) for n_rows, columns in groups]
        leaf, length = _leaf(schema.column(i), chunks, content)
        left -= length
        if left < 0:
            raise ValueError("columns share their pages")
        leaves.append(leaf)
    return leaves


def _prefixes(path: str) -> Iterator[str]:
    return accumulate(path.split("."), "{}.{}".format)


def _leaf(column: Any, chunks: list[tuple[int, Fields]], content: mmap.mmap) -> tuple[Leaf, int]:
    """A column over all row groups, and how many bytes of the file it takes. chunks: rows, and the column there."""
    width = _WIDTHS.get(column.physical_type, column.length)
    leaf, walked = Leaf(column.path, width, column.max_repetition_level > 0), 0
    for n_rows, chunk in chunks:
        before = leaf.values
        leaf, length = _walk(content, chunk, leaf)
        n_values, walked = leaf.values - before, walked + length
        if n_values < n_rows or (n_values > n_rows and not leaf.is_repeated):
            raise ValueError(f"a column has {n_values} values in {n_rows} rows")
    return leaf, walked


def _walk(content: mmap.mmap, chunk: Fields, leaf: Leaf) -> tuple[Leaf, int]:
    """The column with the pages of one row group added, those that a reader would decode; and their length."""
    start, dictionary = _number(chunk, 9), _number(chunk, 11)
    start = dictionary if 0 < dictionary < start else start
    at, end = _Compact(content, start), leaf.values + _number(chunk, 5)
    while leaf.values < end:
        header = at.struct()
        kind, unpacked, packed = (_number(header, field) for field in (1, 2, 3))
        data = _part(header, {_DATA_PAGE: 5, _DATA_PAGE_V2: 8}.get(kind, 0))
        n_values = _number(data, 1) if data else 0
        n_entries = _number(_part(header, 7), 1) if 7 in header else 0
        if min(unpacked, packed, n_values, n_entries) < 0:
            raise ValueError("a page has a negative size")
        unpacked += n_entries * _ENTRY_WIDTH
        encoding = _number(data, 4 if kind == _DATA_PAGE_V2 else 2)
        leaf = leaf._replace(
            values=leaf.values + n_values,
            pages=leaf.pages + unpacked,
            largest_page=max(leaf.largest_page, unpacked),
            has_deltas=leaf.has_deltas or encoding in _DELTAS,
        )
        at.position += packed
    return leaf, at.position - start


def _number(fields: Fields, field: int) -> int:
    """A whole number, -1 where there is none."""
    value = fields.get(field)
    return value if type(value) is int else -1


def _part(fields: Fields, field: int) -> Fields:
    value = fields.get(field)
    return value if isinstance(value, dict) else {}


def _parts(fields: Fields, field: int) -> list[Fields]:
    value = fields.get(field)
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


class _Compact:
    """A reader of Thrift's compact protocol, in which footers and headers of pages are written."""

    def __init__(self, content: mmap.mmap, position: int) -> None:
        self._content, self.position = content, position

    def struct(self, depth: int = 0) -> Fields:
        """Values by the number of their fields; of texts only that they are there."""
        if depth > _DEEPEST:
            raise ValueError("its structs are nested too deeply")
        fields: Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._whole()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):  # the kind says which truth it is
            return kind == 1
        if kind in (3, 7):
            return self._skip(1 if kind == 3 else 8)
        if kind in (4, 5, 6):
            return self._whole()
        if kind == 8:
            return self._skip(self._varint())
        if kind in (9, 10):
            return self._list(depth)
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError(f"it holds a value of the unknown kind {kind}")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        length, kind = head >> 4 if head >> 4 < 15 else self._varint(), head & 15
        kind = 3 if kind in (1, 2) else kind  # in a list, a truth is a byte
        return [self._value(kind, depth + 1) for _ in range(length)]

    def _whole(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("it holds a number of more than 64 bits")

    def _byte(self) -> int:
        if not 0 <= self.position < len(self._content):
            raise ValueError("a page lies outside of the file")
        self.position += 1
        return self._content[self.position - 1]

    def _skip(self, length: int) -> None:
        self.position += length
