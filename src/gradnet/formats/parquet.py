"""Vectors in .parquet files: one column of lists, or one column for each dimension."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Any

import numpy as np

from gradnet.errors import FileFormatError, MissingExtraError
from gradnet.formats.checks import Vectors, check_expansion, check_ids, check_shape

_ROWS_PER_BATCH = 4096
_PANDAS_INDEX = "__index_level_"  # pandas adds such columns; they number rows and describe nothing


def read_parquet(path: Path) -> Vectors:
    """Vectors from the only column of lists, or else from all columns of numbers, with ids from `id`."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(
            f"{path} needs pyarrow, which is not installed", 'pip install "gradnet[parquet]"'
        ) from error
    try:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            return _read(file, path)
    except FileFormatError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise FileFormatError(
            f"{path} cannot be read as Parquet: {str(error)[:200]}",
            "copy or save it again: it is cut short or damaged",
        ) from error


def _read(file: Any, path: Path) -> Vectors:
    where = str(path)
    schema = file.schema_arrow
    id_column = _id_column(schema.names, where)
    columns = _vector_columns(schema, id_column, where)
    table = _table(file, [*columns, *([id_column] if id_column else [])], path)
    if _is_list(schema.field(columns[0]).type):
        rows = _rows_of_lists(table.column(columns[0]), _column(columns[0], where))
    else:
        rows = np.column_stack([_entries(table.column(name), _column(name, where)) for name in columns])
    check_shape(where, rows.shape)
    return Vectors(rows, _ids(table.column(id_column), _column(id_column, where)) if id_column else None)


def _column(name: str, where: str) -> str:
    return f"the column {reprlib.repr(name)} in {where}"


def _id_column(names: list[str], where: str) -> str | None:
    if len(set(names)) != len(names):
        raise FileFormatError(
            f"{where} has two columns of one name among {reprlib.repr(names)}", "rename one"
        )
    found = [name for name in names if name.lower() == "id"]
    if len(found) > 1:
        raise FileFormatError(
            f"{where} has the columns {' and '.join(found)}; expected one `id`", "rename one"
        )
    return found[0] if found else None


def _vector_columns(schema: Any, id_column: str | None, where: str) -> list[str]:
    fields = [
        field for field in schema if field.name != id_column and not field.name.startswith(_PANDAS_INDEX)
    ]
    lists = [field.name for field in fields if _is_list(field.type)]
    if len(lists) > 1:
        raise FileFormatError(
            f"{where} has several columns of lists of numbers, {reprlib.repr(lists)}; expected one",
            "drop the others",
        )
    others = [f"{field.name}: {field.type}" for field in fields if not _is_number(field.type)]
    if not lists and (others or not fields):
        raise FileFormatError(
            f"{where} has no column of lists of numbers, and besides numbers it has {reprlib.repr(others)}; "
            "expected the vectors in one column of lists, or in one column of numbers for each dimension",
            "drop the columns that are not part of the vectors; only `id` may stay beside them",
        )
    return lists or [field.name for field in fields]


def _table(file: Any, columns: list[str], path: Path) -> Any:
    """Table of the columns, read in pieces so that a file that unpacks without end is refused on the way."""
    from pyarrow import Table

    batches: list[Any] = []
    packed, unpacked = path.stat().st_size, 0
    for batch in file.iter_batches(_ROWS_PER_BATCH, columns=columns):
        batch.validate(full=True)
        unpacked += batch.nbytes
        check_expansion(str(path), unpacked, packed)
        batches.append(batch)
    return Table.from_batches(batches, None if batches else file.schema_arrow)


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_list and _is_number(kind.value_type))


def _refuse_nulls(missing: np.ndarray[Any, Any], numbers_per_row: int, where: str) -> None:
    if missing.any():
        raise FileFormatError(
            f"{where} is null in row {int(missing.argmax()) // numbers_per_row} (counted from 0)",
            "fill such rows, or drop them",
        )


def _entries(column: Any, where: str) -> np.ndarray[Any, Any]:
    _refuse_nulls(column.is_null().to_numpy(), 1, where)
    entries: np.ndarray[Any, Any] = column.to_numpy()
    return entries


def _rows_of_lists(column: Any, where: str) -> np.ndarray[Any, Any]:
    """Matrix (n, d) of the lists in a column, all of one length d."""
    from pyarrow import chunked_array, compute

    _refuse_nulls(column.is_null().to_numpy(), 1, where)
    lengths = compute.list_value_length(column).to_numpy()
    if (lengths != lengths[:1]).any():
        row = int((lengths != lengths[0]).argmax())
        raise FileFormatError(
            f"{where} has {lengths[row]} numbers in row {row} (counted from 0) but {lengths[0]} in row 0",
            "give every row the same number",
        )
    d = int(lengths[0]) if len(lengths) else 0
    values = chunked_array([chunk.flatten() for chunk in column.chunks], type=column.type.value_type)
    _refuse_nulls(values.is_null().to_numpy(), max(d, 1), where)
    rows: np.ndarray[Any, Any] = values.to_numpy().reshape(len(lengths), d)
    return rows


def _ids(column: Any, where: str) -> list[str] | list[int]:
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        raise FileFormatError(f"{where} has the type {kind}; expected strings or integers", "convert the ids")
    _refuse_nulls(column.is_null().to_numpy(), 1, where)
    ids: list[str] | list[int] = column.to_pylist()
    check_ids(where, ids)
    return ids
