"""Metadata of items: .jsonl files with one object a line, and .csv or .tsv files with a header."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import reprlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from gradnet.errors import FileFormatError
from gradnet.formats.regular_file import check_regular_file, readable

FIELD_SUFFIXES = (".jsonl", ".csv", ".tsv")

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # 007 is a name, not the number 7
_DECIMAL = re.compile(r"-?[0-9]{1,300}\.[0-9]+")  # with more digits in front it might be infinite
_LONGEST_LINE = 1 << 20  # characters; an item may have a sixteenth of it to say


def read_fields(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """What a file says of items, by the text of their ids.

    .jsonl: an object a line, with `id` in it. .csv, .tsv: a header with `id`; an empty cell says nothing, and plain
    numbers are numbers.
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
                found = _objects(lines, file) if suffix == ".jsonl" else _records(lines, file, suffix)
                return _by_id(found, file)
            except UnicodeDecodeError as error:
                raise FileFormatError(
                    f"{file} is not UTF-8 text: {error.reason}", "save it again as UTF-8"
                ) from error


def _by_id(lines: Iterator[tuple[int, dict[str, Any]]], file: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for number, fields in lines:
        if "id" not in fields or isinstance(fields["id"], bool) or not isinstance(fields["id"], str | int):
            raise FileFormatError(f"{file}, line {number}: there is no `id`", "give every item its id")
        name = str(fields.pop("id"))
        if name in found:
            raise FileFormatError(
                f"{file}, line {number}: the id {reprlib.repr(name)} stands there twice", "drop one"
            )
        found[name] = fields
    return found


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


def _records(lines: Iterator[str], file: Path, suffix: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(lines, delimiter="\t" if suffix == ".tsv" else ",", strict=True)
    try:
        header = next(reader, [])
        if "id" not in header or len(set(header)) != len(header) or "" in header:
            raise FileFormatError(
                f"{file} has the columns {', '.join(header)[:200]!r}; expected different names, `id` among them",
                "write a header with a column `id`",
            )
        for cells in reader:
            if cells and len(cells) != len(header):
                raise FileFormatError(
                    f"{file}, line {reader.line_num}: {len(cells)} columns, but the header has {len(header)}",
                    "give every line the same number of columns",
                )
            pairs = zip(header, cells, strict=False)
            fields = {name: cell if name == "id" else _value(cell) for name, cell in pairs if cell}
            if fields:
                yield reader.line_num, fields
    except csv.Error as error:
        raise FileFormatError(f"{file}, line {reader.line_num}: {error}", "check the quotes") from error


def _value(cell: str) -> Any:
    if _INTEGER.fullmatch(cell):
        return int(cell)
    return float(cell) if _DECIMAL.fullmatch(cell) else cell
