"""Metadata of items: .jsonl files with one object a line, and .csv or .tsv files with a header."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import reprlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from gradnet.errors import FileFormatError
from gradnet.formats.regular_file import check_regular_file, readable
from gradnet.wording import count

FIELD_SUFFIXES = (".jsonl", ".csv", ".tsv")

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # 007 is a name, not the number 7
_DECIMAL = re.compile(r"-?[0-9]{1,300}\.[0-9]+")  # with more digits in front it might be infinite
_LONGEST_LINE = 1 << 20  # characters; an item may have a sixteenth of it to say


def read_fields(path: str | os.PathLike[str], keys: Sequence[str] = ("id",)) -> dict[str, dict[str, Any]]:
    """Metadata of items, by the text of their ids.

    .jsonl: an object a line, with `id` in it. .csv, .tsv: a header with `id`; an empty cell is left out, and plain
    numbers are numbers. keys: names under which the id may stand instead, the first that is there.
    """
    file = Path(path)
    with readable(file):
        check_regular_file(file, f"expected metadata: {', '.join(FIELD_SUFFIXES)}")
        suffix = file.suffix.lower()
        if suffix not in FIELD_SUFFIXES:
            raise FileFormatError(
                f"{file} has the suffix {file.suffix!r}; expected one of {', '.join(FIELD_SUFFIXES)}",
                "save the metadata as .csv with a column `id`, or as .jsonl with one object a line",
            )
        with file.open(encoding="utf-8-sig", newline="") as stream:
            try:
                lines = _lines(stream, file)
                found = _objects(lines, file) if suffix == ".jsonl" else _records(lines, file, suffix, keys)
                return _by_id(found, file, keys)
            except UnicodeDecodeError as error:
                raise FileFormatError(
                    f"{file} is not UTF-8 text: {error.reason}", "save it again as UTF-8"
                ) from error


def _by_id(
    lines: Iterator[tuple[int, dict[str, Any]]], file: Path, keys: Sequence[str]
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for number, fields in lines:
        key = next((key for key in keys if key in fields), keys[0])
        if isinstance(fields.get(key), bool) or not isinstance(fields.get(key), str | int):
            raise FileFormatError(
                f"{file}, line {number}: there is no {_either(keys)}", f"give every item its {key}"
            )
        name = str(fields.pop(key))
        if name in found:
            raise FileFormatError(
                f"{file}, line {number}: the {key} {reprlib.repr(name)} stands there twice", "drop one"
            )
        found[name] = fields
    return found


def _either(keys: Sequence[str]) -> str:
    return " or ".join(f"`{key}`" for key in keys)


def _lines(stream: TextIO, file: Path) -> Iterator[str]:
    """The lines of a file, none of which fills the memory."""
    number = 0
    while line := stream.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise FileFormatError(
                f"{file}, line {number}: it has more than {_LONGEST_LINE:,} characters", "say less of an item"
            )
        yield line


def _objects(lines: Iterator[str], file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line, parse_constant=_refused, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            raise FileFormatError(
                f"{file}, line {number}: {error}", "write one JSON object a line"
            ) from error
        if not isinstance(fields, dict):
            raise FileFormatError(f"{file}, line {number}: {line.strip()[:60]!r} is no object", "write {...}")
        yield number, fields


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


def _records(
    lines: Iterator[str], file: Path, suffix: str, keys: Sequence[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(lines, delimiter="\t" if suffix == ".tsv" else ",", strict=True)
    try:
        header = next(reader, [])
        if not set(keys) & set(header) or len(set(header)) != len(header) or "" in header:
            raise FileFormatError(
                f"{file} has the columns {', '.join(header)[:200]!r}; expected different names, {_either(keys)} among "
                "them",
                f"write a header with a column {_either(keys)}",
            )
        for cells in reader:
            if cells and len(cells) != len(header):
                raise FileFormatError(
                    f"{file}, line {reader.line_num}: {count(len(cells), 'column')}, but the header has {len(header)}",
                    "give every line the same number of columns",
                )
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
