"""Reads .parquet files in a child process: vectors in one column of lists, or in one column for each dimension."""

import os
import reprlib
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from manifind.errors import FileFormatError, needing
from manifind.io.checks import check_expansion, check_ids
from manifind.worker import Reply

_BYTES_PER_BATCH = 1 << 26
_MOST_ROWS_PER_BATCH = 1 << 16
_ID_WIDTH = 128  # of an id as an object of Python, and its place where repeated ids are looked for
_MOST_PER_COLUMN, _MOST_PER_NUMBER = 4096, 256  # bytes that numbers and the headers of their pages take, and more
_PANDAS_INDEX = "__index_level_"  # pandas adds such columns; they number rows and describe nothing


def parse_vectors(path: str) -> Reply:
    """Ids from the column `id`, and rows from the only column of lists, or else from all columns of numbers."""
    with needing("parquet", f"{path} needs pyarrow, which is not installed"):
        import pyarrow
        from pyarrow.parquet import ParquetFile
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())  # the others reserve more addresses than they use
    with ParquetFile(path, page_checksum_verification=True) as file:
        schema = file.schema_arrow
        id_column = _id_column(schema, path)
        columns = _vector_columns(schema, id_column, path)
        width = np.result_type(*(_number_type(schema.field(name).type).to_pandas_dtype() for name in columns)).itemsize
        table = _ParquetTable(file, path, *_sizes(file.metadata, path, columns, id_column, width))
        rows = _rows(table, columns, not _is_number(schema.field(columns[0]).type))
        return Reply(_ids(table, id_column) if id_column else None, {"rows": rows})


class _ParquetTable(NamedTuple):
    """An open file. n_values: in the columns of the vectors. unpacked: about the bytes that decoding takes."""

    file: Any
    path: str
    n_values: int
    unpacked: int

    def where(self, name: str) -> str:
        return f"the column {reprlib.repr(name)} in {self.path}"

    def batches(self, names: list[str]) -> Iterator[tuple[int, list[Any]]]:
        """The first row of each batch, and its columns without nulls; as many rows as a bound on memory allows."""
        n, size, first, decoded = self.file.metadata.num_rows, os.path.getsize(self.path), 0, 0
        n_rows = min(_MOST_ROWS_PER_BATCH, max(1, _BYTES_PER_BATCH * n // max(1, self.unpacked)))
        for batch in self.file.iter_batches(n_rows, columns=names, use_threads=False):
            batch.validate(full=True)
            columns = [batch.column(name) for name in names]
            columns = [one.dictionary_decode() if hasattr(one, "dictionary") else one for one in columns]
            decoded += sum(column.nbytes for column in columns)  # a text of a dictionary may be there many times
            check_expansion(self.path, decoded, size)
            for name, column in zip(names, columns, strict=True):
                _refuse_nulls(column, first, 1, self.where(name))
            yield first, columns
            first += len(batch)
        if first != n:
            raise ValueError(f"{first} rows of {n} are there")


def _sizes(metadata: Any, path: str, columns: list[str], id_column: str | None, width: int) -> tuple[int, int]:
    """The values in the columns of the vectors, and about the bytes that decoding takes, as the footer tells.

    Refused where few bytes would become very many, or pages are not where columns can have them. Of a footer that lies
    about them, the memory of the child bounds what is decoded.
    """
    size, wanted = os.path.getsize(path), {*columns, id_column}
    n_values, unpacked, starts = 0, 0, set()
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for chunk in (group.column(number) for group in groups for number in range(group.num_columns)):
        names = set(accumulate(chunk.path_in_schema.split("."), "{}.{}".format))  # of it and of what it is a part of
        if names.isdisjoint(wanted):
            continue
        start = min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
        if start >= size:
            raise ValueError("a page lies outside of the file")
        if start in starts:
            raise ValueError("columns share their pages")
        starts.add(start)
        is_id = id_column in names
        if not is_id and chunk.total_uncompressed_size > _MOST_PER_COLUMN + _MOST_PER_NUMBER * chunk.num_values:
            raise ValueError(f"a column has {chunk.total_uncompressed_size:,} bytes for {chunk.num_values} numbers")
        n_values += 0 if is_id else chunk.num_values
        unpacked += max(chunk.num_values * (_ID_WIDTH if is_id else width), chunk.total_uncompressed_size)
    check_expansion(path, unpacked, size)
    return n_values, unpacked


def _id_column(schema: Any, path: str) -> str | None:
    names = schema.names
    if len(set(names)) != len(names):
        raise FileFormatError(f"{path} has two columns of one name among {reprlib.repr(names)}", "rename one")
    found = [name for name in names if name.lower() == "id"]
    if len(found) > 1:
        raise FileFormatError(f"{path} has the columns {' and '.join(found)}; expected one `id`", "rename one")
    return found[0] if found else None


def _vector_columns(schema: Any, id_column: str | None, path: str) -> list[str]:
    fields = [field for field in schema if field.name != id_column and not field.name.startswith(_PANDAS_INDEX)]
    lists = [field.name for field in fields if _number_type(field.type) not in (None, field.type)]
    if len(lists) > 1:
        problem = f"{path} has several columns of lists of numbers, {reprlib.repr(lists)}; expected one"
        raise FileFormatError(problem, "drop the others")
    others = [f"{field.name}: {field.type}" for field in fields if not _is_number(field.type)]
    if not lists and (others or not fields):
        raise FileFormatError(
            f"{path} has no column of lists of numbers, and besides numbers it has {reprlib.repr(others)}; "
            "expected the vectors in one column of lists, or in one column of numbers for each dimension",
            "drop the columns that are not part of the vectors; only `id` may stay beside them",
        )
    return lists or [field.name for field in fields]


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _number_type(kind: Any) -> Any:
    """The type of a column's numbers, or of those in its lists; None where it holds something else."""
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    found = kind.value_type if is_list else kind
    return found if _is_number(found) else None


def _refuse_nulls(values: Any, first_row: int, values_per_row: int, where: str) -> None:
    if values.null_count:
        row = first_row + int(values.is_null().to_numpy(zero_copy_only=False).argmax()) // values_per_row
        raise FileFormatError(f"{where} is null in row {row} (counted from 0)", "fill such rows, or drop them")


def _rows(table: _ParquetTable, columns: list[str], are_lists: bool) -> np.ndarray[Any, Any]:
    """Matrix (n, d) of d columns of numbers, or of the lists in one column, all of one length d."""
    parts: list[np.ndarray[Any, Any]] = []
    for first, batch in table.batches(columns):
        if are_lists:
            parts.append(_lists(batch[0], first, parts[0].shape[1] if parts else None, table.where(columns[0])))
        else:
            parts.append(np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch]))
    rows = np.concatenate(parts) if parts else np.empty((0, 0 if are_lists else len(columns)))
    if rows.shape[1] and rows.size != table.n_values:
        raise ValueError(f"{table.n_values} values are there for {len(rows)} rows of {rows.shape[1]}")
    return rows


def _lists(column: Any, first: int, d: int | None, where: str) -> np.ndarray[Any, Any]:
    """Matrix of the lists in a part of a column. d: the length of those before, if there are any."""
    from pyarrow import compute

    lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
    d = int(lengths[0]) if d is None else d
    if (lengths != d).any():
        place = int((lengths != d).argmax())
        problem = f"{where} has {lengths[place]} numbers in row {first + place} (counted from 0) but {d} in row 0"
        raise FileFormatError(problem, "give every row the same number")
    values = column.flatten()
    _refuse_nulls(values, first, max(d, 1), where)
    matrix: np.ndarray[Any, Any] = values.to_numpy(zero_copy_only=False).reshape(len(column), d)
    return matrix


def _ids(table: _ParquetTable, name: str) -> list[str] | list[int]:
    from pyarrow import types

    where, kind = table.where(name), table.file.schema_arrow.field(name).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        raise FileFormatError(f"{where} has the type {kind}; expected strings or integers", "convert the ids")
    ids = [entry for _, (column,) in table.batches([name]) for entry in column.to_pylist()]
    check_ids(where, ids)
    return ids
