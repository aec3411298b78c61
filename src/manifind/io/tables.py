"""Reads tables: vectors in .csv, metadata in .jsonl and .csv, labels in .npy and .csv, rankings in .npy and TREC."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import reprlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from manifind.errors import FileFormatError
from manifind.io.checks import Vectors, check_ids, check_shape, check_suffix, regular_file, strings, utf8
from manifind.io.npy import map_npy
from manifind.text import count

if TYPE_CHECKING:
    from _csv import Reader

_SAME_NUMBER = "give every line the same number of columns"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # 007 is a name, not the number 7; 18 digits fit in int64
_FEWEST_COUNTED = 3  # "0,1" may well be a vector; "0,1,2" is how programs number columns without names

_Line = tuple[int, list[str]]
_Record = tuple[int, dict[str, Any]]


def _csv_reader(file: Path, lines: Iterable[str]) -> Reader:
    return csv.reader(lines, delimiter="\t" if file.suffix.lower() == ".tsv" else ",", strict=True)


def read_table(path: Path) -> Vectors:
    """Vectors from lines of numbers between commas or tabs, float64, with ids where the header has them."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = _csv_reader(path, stream)
        lines = ((reader.line_num, cells) for cells in reader if cells)
        try:
            return _table(lines, str(path))
        except csv.Error as error:
            problem = f"{path}, line {reader.line_num}: {error}"
            raise FileFormatError(problem, "check the quotes; expected plain numbers") from error
        except UnicodeDecodeError as error:
            problem = f"{path} is not UTF-8 text somewhere after line {reader.line_num}: {error.reason}"
            raise FileFormatError(problem, "save it again as UTF-8") from error


def _table(lines: Iterator[_Line], where: str) -> Vectors:
    first = next(lines, None)
    if first is None:
        raise FileFormatError(f"{where} has only blank lines; expected one vector a line", "write it again")
    header = _is_header(first, where)
    n_ids = int(header and _is_id(first[1][0]))
    ids: list[str] = []
    numbers = array("d")
    for line in lines if header else chain([first], lines):
        if len(line[1]) != len(first[1]):
            problem = f"{where}, line {line[0]}: {count(len(line[1]), 'column')}"
            raise FileFormatError(f"{problem}, but line {first[0]} has {len(first[1])}", _SAME_NUMBER)
        ids += line[1][:n_ids]
        numbers.extend(_numbers(line, n_ids, where))
    d = len(first[1]) - n_ids
    shape = (len(numbers) // max(d, 1), d)
    check_shape(where, shape)
    plain_ids = list(map(int, ids)) if all(map(_INTEGER.fullmatch, ids)) else ids
    check_ids(where, plain_ids)
    return Vectors(np.frombuffer(numbers).reshape(shape), plain_ids if n_ids else None)


def _is_header(first: _Line, where: str) -> bool:
    line, cells = first
    if any(map(_is_id, cells[1:])):
        raise FileFormatError(f"{where}, line {line}: the column `id` is not the first", "move it to the front")
    if len(cells) >= _FEWEST_COUNTED and cells == [str(column) for column in range(len(cells))]:
        problem = f"{where}, line {line} counts from 0 to {len(cells) - 1}; expected names of columns or a vector"
        raise FileFormatError(problem, "remove the line if it numbers the columns; write 0.0 for 0 if it is a vector")
    return _is_id(cells[0]) or not any(cell == "" or _is_number(cell) for cell in cells)


def _is_id(cell: str) -> bool:
    return cell.strip().lower() == "id"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # float() reads 1_5 as 15


def _numbers(line: _Line, n_ids: int, where: str) -> list[float]:
    cells = line[1][n_ids:]
    try:
        if "_" not in "".join(cells):
            return list(map(float, cells))
    except ValueError:
        pass
    column = next(column for column, cell in enumerate(cells) if not _is_number(cell))
    problem = f"{where}, line {line[0]}, column {column + n_ids + 1}: {reprlib.repr(cells[column])} is not a number"
    hint = "write decimals with a point; ids go into a first column that the header line calls id"
    raise FileFormatError(problem, hint)


FIELD_SUFFIXES = (".jsonl", ".csv", ".tsv")

_DECIMAL = re.compile(r"-?[0-9]{1,300}\.[0-9]+")  # with more digits in front it might be infinite
_LONGEST_LINE = 1 << 20  # characters; an item may have a sixteenth of it to say


def read_fields(path: str | os.PathLike[str], keys: Sequence[str] = ("id",)) -> dict[str, dict[str, Any]]:
    """Metadata of items, by the text of their ids.

    .jsonl: an object a line, with `id` in it. .csv, .tsv: a header with `id`; an empty cell is left out, and plain
    numbers are numbers. keys: names under which the id may stand instead, the first that is there.
    """
    with regular_file(path, f"expected metadata: {', '.join(FIELD_SUFFIXES)}") as file:
        hint = "save the metadata as .csv with a column `id`, or as .jsonl with one object a line"
        check_suffix(file, FIELD_SUFFIXES, hint)
        with file.open(encoding="utf-8-sig", newline="") as stream, utf8(file, "save it again as UTF-8"):
            lines, is_json = _lines(stream, file), file.suffix.lower() == ".jsonl"
            return _by_id(_objects(lines, file) if is_json else _records(lines, file, keys), file, keys)


def _by_id(records: Iterator[_Record], file: Path, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for number, fields in records:
        key = next((key for key in keys if key in fields), keys[0])
        if isinstance(fields.get(key), bool) or not isinstance(fields.get(key), str | int):
            raise FileFormatError(f"{file}, line {number}: there is no {_either(keys)}", f"give every item its {key}")
        name = str(fields.pop(key))
        if name in found:
            problem = f"{file}, line {number}: the {key} {reprlib.repr(name)} stands there twice"
            raise FileFormatError(problem, "drop one")
        found[name] = fields
    return found


def _either(keys: Sequence[str]) -> str:
    return " or ".join(f"`{key}`" for key in keys)


def _lines(stream: TextIO, file: Path) -> Iterator[str]:
    """The lines of a file, none of which fills the memory."""
    for number, line in enumerate(iter(lambda: stream.readline(_LONGEST_LINE + 1), ""), 1):
        if len(line) > _LONGEST_LINE:
            problem = f"{file}, line {number}: it has more than {_LONGEST_LINE:,} characters"
            raise FileFormatError(problem, "say less of an item")
        yield line


def _objects(lines: Iterator[str], file: Path) -> Iterator[_Record]:
    for number, line in enumerate(lines, 1):
        try:
            fields = json.loads(line, parse_constant=_finite, parse_float=_finite) if line.strip() else None
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"{file}, line {number}: {error}", "write one JSON object a line") from error
        if isinstance(fields, dict):
            yield number, fields
        elif line.strip():
            raise FileFormatError(f"{file}, line {number}: {line.strip()[:60]!r} is no object", "write {...}")


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:20]} is {'too large a number' if text[-1].isdigit() else 'no number of JSON'}")
    return number


def _records(lines: Iterator[str], file: Path, keys: Sequence[str]) -> Iterator[_Record]:
    reader = _csv_reader(file, lines)
    try:
        header = next(reader, [])
        if not set(keys) & set(header) or len(set(header)) != len(header) or "" in header:
            columns = f"{', '.join(header)[:200]!r}; expected different names, {_either(keys)} among them"
            raise FileFormatError(f"{file} has the columns {columns}", f"write a header with a column {_either(keys)}")
        for cells in reader:
            if cells and len(cells) != len(header):
                problem = f"{file}, line {reader.line_num}: {count(len(cells), 'column')}"
                raise FileFormatError(f"{problem}, but the header has {len(header)}", _SAME_NUMBER)
            pairs = zip(header, cells, strict=False)
            fields = {name: cell if name in keys else _value(cell) for name, cell in pairs if cell}
            if fields:
                yield reader.line_num, fields
    except csv.Error as error:
        raise FileFormatError(f"{file}, line {reader.line_num}: {error}", "check the quotes") from error


def _value(cell: str) -> Any:
    if _INTEGER.fullmatch(cell):
        return int(cell)
    return float(cell) if _DECIMAL.fullmatch(cell) else cell


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
    with regular_file(path, f"expected labels: {', '.join(SUFFIXES)}") as file:
        if file.suffix.lower() != ".npy":
            labels = read_label_table(file, _NAME_COLUMNS)
            check_ids(str(file), labels.names or [])
            return labels
        array = map_npy(file, "iuU", "whole numbers or strings")
        if array.ndim != 1 or not len(array):
            problem = f"{file} has shape {array.shape}; expected (n,), one label per item"
            raise FileFormatError(problem, "save labels.reshape(-1)")
        return ItemLabels(strings(array, str(file)) if array.dtype.kind == "U" else array.tolist(), None)


def read_label_table(file: Path, name_columns: Sequence[str]) -> ItemLabels:
    """The column `label` of a .csv or .tsv file, and the first of the name columns that it has."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        reader = _csv_reader(file, stream)
        try:
            rows = list(_cells(reader, name_columns, file))
        except (csv.Error, UnicodeDecodeError) as error:
            problem = f"{file}, near line {reader.line_num}: {error}"
            raise FileFormatError(problem, "check the quotes, and save it as UTF-8") from error
    if not rows:
        raise FileFormatError(f"{file} has a header only; expected one item a line", "write it again")
    names = [row[1] for row in rows if len(row) == 2]
    return ItemLabels([row[0] for row in rows], names or None)


def _cells(reader: Reader, name_columns: Sequence[str], file: Path) -> Iterator[list[str]]:
    """Label and, where there is a column for it, name of each line."""
    header = [cell.strip().lower() for cell in next(reader, [])]
    columns = ["label", *[name for name in name_columns if name in header][:1]]
    if any(header.count(column) != 1 for column in columns):
        expected = f"expected `label` and `{'` or `'.join(name_columns)}`, each once"
        problem = f"{file} starts with the columns {', '.join(header)[:200] or 'none'}; {expected}"
        raise FileFormatError(problem, f"make the first line {name_columns[0]},label")
    for cells in filter(None, reader):
        present = dict(zip(header, map(str.strip, cells), strict=False))
        found = [present.get(column, "") for column in columns]
        if "" in found:
            problem = f"{file}, line {reader.line_num} has no {columns[found.index('')]}"
            raise FileFormatError(problem, f"give every item a {' and a '.join(columns)}")
        yield found


_Entry = tuple[float, int, str]  # minus the score, the rank, the item: they sort as they are ranked


class RankedLists(NamedTuple):
    """items: one list per query, best first; positions where `are_names` is False, else names.

    queries: the name of each query; None where the lists stand in the order of the ground truth.
    """

    items: list[Any]
    are_names: bool
    queries: list[str] | None


def read_ranking(path: str | os.PathLike[str]) -> RankedLists:
    """Ranked lists of a file: `.npy` of whole numbers or strings, (queries, k); else a TREC run.

    A line of a run is `query Q0 item rank score tag`. Items of a query are ordered by falling score, equal
    scores by rank, as the file has them where that is equal too.
    """
    with regular_file(path, "expected a ranking: .npy, or a TREC run") as file:
        return _ranking_of_array(file) if file.suffix.lower() == ".npy" else _ranking_of_run(file)


def _ranking_of_array(file: Path) -> RankedLists:
    array = map_npy(file, "iuU", "whole numbers or strings")
    if array.ndim != 2 or 0 in array.shape:
        problem = f"{file} has shape {array.shape}; expected (queries, k), best first"
        raise FileFormatError(problem, "save one row per query")
    if array.dtype.kind != "U":
        return RankedLists(list(array), False, None)
    names = strings(array.ravel(), str(file))
    k = array.shape[1]
    rows = [names[start : start + k] for start in range(0, len(names), k)]
    return RankedLists([_without_filling(row) for row in rows], True, None)


def _without_filling(row: list[str]) -> list[str]:
    """The names up to the last one: empty ones fill the end of a short row."""
    while row and row[-1] == "":
        row.pop()
    return row


def _ranking_of_run(file: Path) -> RankedLists:
    entries: dict[str, list[_Entry]] = {}
    with file.open(encoding="utf-8-sig") as stream, utf8(file, "expected a TREC run, or a file that ends in .npy"):
        for number, line in enumerate(stream, 1):
            cells = line.split()
            if cells:
                entries.setdefault(cells[0], []).append(_entry(cells, f"{file}, line {number}"))
    if not entries:
        raise FileFormatError(f"{file} has no lines; expected a TREC run", "write it again")
    ranked = [[item for _, _, item in sorted(lines, key=lambda e: e[:2])] for lines in entries.values()]
    return RankedLists(ranked, True, list(entries))


def _entry(cells: list[str], where: str) -> _Entry:
    try:
        _, _, item, rank, score, _ = cells
        entry = -float(score), int(rank), item
    except ValueError:
        entry = math.nan, 0, ""
    if math.isnan(entry[0]):
        problem = f"{where}: {reprlib.repr(' '.join(cells))}; expected `query Q0 item rank score tag`"
        raise FileFormatError(problem, "write six columns, the rank a whole number and the score a number")
    return entry
