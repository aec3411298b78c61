"""Labels of items: .npy arrays, and .csv or .tsv files with a column `label`."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gradnet.errors import FileFormatError
from gradnet.formats.checks import check_ids
from gradnet.formats.naming import strings
from gradnet.formats.npy import map_npy
from gradnet.formats.regular_file import check_regular_file, readable

if TYPE_CHECKING:
    from _csv import Reader

SUFFIXES = (".npy", ".csv", ".tsv")
_NAME_COLUMNS = ("id", "file", "name")


class ItemLabels(NamedTuple):
    """values: one label per item, strings or whole numbers. names: of the items; None where they have none."""

    values: list[str] | list[int]
    names: list[str] | None


def read_labels(path: str | os.PathLike[str]) -> ItemLabels:
    """Labels of a file whose suffix is one of SUFFIXES.

    .npy: (n,) whole numbers or strings. .csv, .tsv: a header with `label` and, to name the items, `id`,
    `file` or `name`; other columns are ignored.
    """
    file = Path(path)
    with readable(file):
        check_regular_file(file, f"expected labels: {', '.join(SUFFIXES)}")
        return _from_npy(file) if file.suffix.lower() == ".npy" else _from_table(file)


def _from_npy(file: Path) -> ItemLabels:
    array = map_npy(file, "iuU", "whole numbers or strings")
    if array.ndim != 1 or not len(array):
        raise FileFormatError(
            f"{file} has shape {array.shape}; expected (n,), one label per item", "save labels.reshape(-1)"
        )
    return ItemLabels(strings(array, str(file)) if array.dtype.kind == "U" else array.tolist(), None)


def _from_table(file: Path) -> ItemLabels:
    labels = read_label_table(file, _NAME_COLUMNS)
    if labels.names is not None:
        check_ids(str(file), labels.names)
    return labels


def read_label_table(file: Path, name_columns: Sequence[str]) -> ItemLabels:
    """The column `label` of a .csv or .tsv file, and the first of the name columns that it has."""
    delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
    with file.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        try:
            rows = list(_cells(reader, name_columns, file))
        except (csv.Error, UnicodeDecodeError) as error:
            raise FileFormatError(
                f"{file}, near line {reader.line_num}: {error}", "check the quotes, and save it as UTF-8"
            ) from error
    if not rows:
        raise FileFormatError(f"{file} has a header only; expected one item a line", "write it again")
    names = [row[1] for row in rows if len(row) == 2]
    return ItemLabels([row[0] for row in rows], names or None)


def _cells(reader: Reader, name_columns: Sequence[str], file: Path) -> Iterator[list[str]]:
    """Label and, where there is a column for it, name of each line."""
    header = [cell.strip().lower() for cell in next(reader, [])]
    columns = ["label", *[name for name in name_columns if name in header][:1]]
    if any(header.count(column) != 1 for column in columns):
        raise FileFormatError(
            f"{file} starts with the columns {', '.join(header)[:200] or 'none'}; "
            f"expected `label` and `{'` or `'.join(name_columns)}`, each once",
            f"make the first line {name_columns[0]},label",
        )
    for cells in reader:
        if not cells:
            continue
        found = [
            cells[header.index(column)].strip() if header.index(column) < len(cells) else ""
            for column in columns
        ]
        if "" in found:
            raise FileFormatError(
                f"{file}, line {reader.line_num} has no {columns[found.index('')]}",
                f"give every item a {' and a '.join(columns)}",
            )
        yield found
