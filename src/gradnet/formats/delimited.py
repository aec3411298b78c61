"""Vectors in .csv and .tsv files: one row a line, ids in a first column that the header calls `id`."""

from __future__ import annotations

import csv
import re
import reprlib
from array import array
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.checks import Vectors, check_ids, check_shape
from gradnet.wording import count

_PLAIN_INTEGER = re.compile(
    r"0|-?[1-9][0-9]{0,17}"
)  # 007 is a name, not the number 7; 18 digits fit in int64
_FEWEST_COUNTED = 3  # "0,1" may well be a vector; "0,1,2" is how programs number columns without names

_Line = tuple[int, list[str]]


def read_csv(path: Path) -> Vectors:
    """Vectors from lines of numbers between commas, float64, with ids where the header has them."""
    return _read(path, ",")


def read_tsv(path: Path) -> Vectors:
    """Vectors from lines of numbers between tabs, float64, with ids where the header has them."""
    return _read(path, "\t")


def _read(path: Path, delimiter: str) -> Vectors:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
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
            raise FileFormatError(
                f"{where}, line {line[0]}: {count(len(line[1]), 'column')}, but line {first[0]} has {len(first[1])}",
                "give every line the same number of columns",
            )
        ids += line[1][:n_ids]
        numbers.extend(_numbers(line, n_ids, where))
    d = len(first[1]) - n_ids
    shape = (len(numbers) // max(d, 1), d)
    check_shape(where, shape)
    return Vectors(np.frombuffer(numbers).reshape(shape), _ids(ids, where) if n_ids else None)


def _is_header(first: _Line, where: str) -> bool:
    line, cells = first
    if any(map(_is_id, cells[1:])):
        raise FileFormatError(
            f"{where}, line {line}: the column `id` is not the first", "move it to the front"
        )
    if len(cells) >= _FEWEST_COUNTED and cells == [str(column) for column in range(len(cells))]:
        raise FileFormatError(
            f"{where}, line {line} counts from 0 to {len(cells) - 1}; expected names of columns or a vector",
            "remove the line if it numbers the columns; write 0.0 for 0 if it is a vector",
        )
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
    text = reprlib.repr(cells[column])
    raise FileFormatError(
        f"{where}, line {line[0]}, column {column + n_ids + 1}: {text} is not a number",
        "write decimals with a point; ids go into a first column that the header line calls id",
    )


def _ids(texts: list[str], where: str) -> list[str] | list[int]:
    plain = all(map(_PLAIN_INTEGER.fullmatch, texts))
    ids = [int(text) for text in texts] if plain else texts
    check_ids(where, ids)
    return ids
