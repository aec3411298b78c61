"""Reads vectors from .parquet files: one column of lists, or one column for each dimension."""

from __future__ import annotations

import mmap
import reprlib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from manifind.errors import FileFormatError, MissingExtraError
from manifind.io.checks import Vectors, check_expansion, check_ids, check_shape, repeated_id

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


_BYTES_PER_BATCH = 1 << 26
_MOST_ROWS_PER_BATCH = 1 << 16
_ID_WIDTH = 128  # of an id as an object of Python, and its place where repeated ids are looked for
_PANDAS_INDEX = "__index_level_"  # pandas adds such columns; they number rows and describe nothing


def read_parquet(path: Path) -> Vectors:
    """Vectors from the only column of lists, or else from all columns of numbers, with ids from `id`."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(
            f"{path} needs pyarrow, which is not installed", 'pip install "manifind[parquet]"'
        ) from error
    try:
        with _opened(path) as file:
            return _read(file, path)
    except FileFormatError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise FileFormatError(
            f"{path} cannot be read as Parquet: {str(error)[:200]}", "copy or save it again: it is cut short or damaged"
        ) from error


def _opened(path: Path, **options: Any) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(path, page_checksum_verification=True, **options)


class _Source(NamedTuple):
    """An open file whose pages were looked at. unpacked: about the bytes that decoding takes."""

    file: Any
    path: Path
    leaves: list[Leaf]
    unpacked: int

    @property
    def n_rows(self) -> int:
        return int(self.file.metadata.num_rows)

    def batches(self, columns: list[str], bytes_per_row: int) -> Iterator[tuple[int, Any]]:
        """The first row of each batch, and the batch; as many rows at a time as a bound on memory allows."""
        n_rows, row = min(_MOST_ROWS_PER_BATCH, max(1, _BYTES_PER_BATCH // max(1, bytes_per_row))), 0
        for batch in self.file.iter_batches(n_rows, columns=columns):
            batch.validate(full=True)
            yield row, batch
            row += len(batch)
        if row != self.n_rows:
            raise ValueError(f"{row} rows of {self.n_rows} are there")


def _read(file: Any, path: Path) -> Vectors:
    where = str(path)
    schema = file.schema_arrow
    id_column = _id_column(schema.names, where)
    columns = _vector_columns(schema, id_column, where)
    dtype = np.result_type(*(_number_type(schema.field(name).type) for name in columns))
    source = _source(file, path, columns, id_column, dtype.itemsize)
    if _is_list(schema.field(columns[0]).type):
        rows = _rows_of_lists(source, columns[0], dtype)
    else:
        rows = _rows_of_columns(source, columns, dtype)
    check_shape(where, rows.shape)
    return Vectors(rows, _ids(source, id_column) if id_column else None)


def _source(file: Any, path: Path, columns: list[str], id_column: str | None, width: int) -> _Source:
    """The file, unless it would grow from few bytes to very many, which its pages say before any is unpacked."""
    names = [*columns, *([id_column] if id_column else [])]
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        leaves = read_leaves(file.schema, content, names)
    unpacked = sum(leaf.unpacked(_ID_WIDTH if leaf.is_of(id_column) else width) for leaf in leaves)
    check_expansion(str(path), unpacked, path.stat().st_size)
    return _Source(file, path, leaves, unpacked)


def _column(name: str, where: str) -> str:
    return f"the column {reprlib.repr(name)} in {where}"


def _id_column(names: list[str], where: str) -> str | None:
    if len(set(names)) != len(names):
        raise FileFormatError(f"{where} has two columns of one name among {reprlib.repr(names)}", "rename one")
    found = [name for name in names if name.lower() == "id"]
    if len(found) > 1:
        raise FileFormatError(f"{where} has the columns {' and '.join(found)}; expected one `id`", "rename one")
    return found[0] if found else None


def _vector_columns(schema: Any, id_column: str | None, where: str) -> list[str]:
    fields = [field for field in schema if field.name != id_column and not field.name.startswith(_PANDAS_INDEX)]
    lists = [field.name for field in fields if _is_list(field.type)]
    if len(lists) > 1:
        raise FileFormatError(
            f"{where} has several columns of lists of numbers, {reprlib.repr(lists)}; expected one", "drop the others"
        )
    others = [f"{field.name}: {field.type}" for field in fields if not _is_number(field.type)]
    if not lists and (others or not fields):
        raise FileFormatError(
            f"{where} has no column of lists of numbers, and besides numbers it has {reprlib.repr(others)}; "
            "expected the vectors in one column of lists, or in one column of numbers for each dimension",
            "drop the columns that are not part of the vectors; only `id` may stay beside them",
        )
    return lists or [field.name for field in fields]


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_list and _is_number(kind.value_type))


def _number_type(kind: Any) -> Any:
    return np.dtype((kind.value_type if _is_list(kind) else kind).to_pandas_dtype())


def _refuse_nulls(values: Any, first_row: int, values_per_row: int, where: str) -> None:
    if values.null_count:
        place = int(values.is_null().to_numpy(zero_copy_only=False).argmax())
        raise FileFormatError(
            f"{where} is null in row {first_row + place // values_per_row} (counted from 0)",
            "fill such rows, or drop them",
        )


def _rows_of_columns(source: _Source, columns: list[str], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Matrix (n, d) of d columns of numbers."""
    rows = np.empty((source.n_rows, len(columns)), dtype)
    for first, batch in source.batches(columns, rows.strides[0]):
        for number, name in enumerate(columns):
            entries = batch.column(name)
            _refuse_nulls(entries, first, 1, _column(name, str(source.path)))
            rows[first : first + len(batch), number] = entries.to_numpy(zero_copy_only=False)
    return rows


def _rows_of_lists(source: _Source, name: str, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Matrix (n, d) of the lists in a column, all of one length d."""
    from pyarrow import compute

    where = _column(name, str(source.path))
    n, n_values = source.n_rows, sum(leaf.values for leaf in source.leaves if leaf.is_of(name))
    d, rows = 0, np.empty((n, 0), dtype)
    for first, batch in source.batches([name], source.unpacked // max(1, n)):
        column = batch.column(name)
        _refuse_nulls(column, first, 1, where)
        lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
        if first == 0:
            d = int(lengths[0])
            rows = np.empty((n, d if n * d <= n_values else 0), dtype)  # else some row is shorter
        if (lengths != d).any():
            place = int((lengths != d).argmax())
            raise FileFormatError(
                f"{where} has {lengths[place]} numbers in row {first + place} (counted from 0) but {d} in row 0",
                "give every row the same number",
            )
        values = column.flatten()
        _refuse_nulls(values, first, max(d, 1), where)
        if d == rows.shape[1]:
            rows[first : first + len(batch)] = values.to_numpy(zero_copy_only=False).reshape(len(batch), d)
    if d != rows.shape[1]:
        raise ValueError(f"{n_values} values are there for {n} rows of {d}")
    return rows


def _ids(source: _Source, name: str) -> list[str] | list[int]:
    where = _column(name, str(source.path))
    _check_id_type(source.file.schema_arrow.field(name).type, where)
    (leaf,) = (leaf for leaf in source.leaves if leaf.path == name)
    if leaf.width or leaf.has_deltas:
        ids = _ids_in_batches(source, name, leaf.largest_page if leaf.has_deltas else _ID_WIDTH)
    else:
        with _opened(source.path, metadata=source.file.metadata, read_dictionary=[name]) as file:
            ids = _ids_in_batches(source._replace(file=file), name, _ID_WIDTH)
    check_ids(where, ids)
    return ids


def _ids_in_batches(source: _Source, name: str, bytes_per_row: int) -> list[Any]:
    where, ids = _column(name, str(source.path)), []
    unpacked, packed = source.unpacked, source.path.stat().st_size
    for first, batch in source.batches([name], bytes_per_row):
        column = batch.column(name)
        _refuse_nulls(column, first, 1, where)
        column = _texts(column, first, where)
        unpacked += column.nbytes  # a text of a dictionary may be there many times
        check_expansion(str(source.path), unpacked, packed)
        ids += column.to_pylist()
    return ids


def _check_id_type(kind: Any, where: str) -> None:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        raise FileFormatError(f"{where} has the type {kind}; expected strings or integers", "convert the ids")


def _texts(column: Any, first_row: int, where: str) -> Any:
    """Of a dictionary the entries that the rows name, each once, so that they take no more than the dictionary."""
    from pyarrow import types

    if not types.is_dictionary(column.type):
        return column
    entries = column.indices.to_numpy()
    _, firsts = np.unique(entries, return_index=True)
    if len(firsts) < len(entries):
        row = int(np.setdiff1d(np.arange(len(entries)), firsts)[0])
        earlier = int((entries == entries[row]).argmax())
        raise repeated_id(where, column[row].as_py(), first_row + earlier, first_row + row)
    return column.dictionary_decode()
