"""Rankings made by anyone: TREC run files, and .npy arrays of positions or names."""

import math
import os
import reprlib
from pathlib import Path
from typing import Any, NamedTuple

from manifind.errors import FileFormatError
from manifind.files import check_regular_file, readable
from manifind.io.checks import strings, utf8
from manifind.io.npy import map_npy

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
    file = Path(path)
    with readable(file):
        check_regular_file(file, "expected a ranking: .npy, or a TREC run")
        return _from_npy(file) if file.suffix.lower() == ".npy" else _from_run(file)


def _from_npy(file: Path) -> RankedLists:
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


def _from_run(file: Path) -> RankedLists:
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
