"""What metadata says of many items at once: how many in each month, where on earth, and by which value to colour each.

Metadata may be anything: what is no date, or nowhere on earth, is counted as undated or unplaced, and never a fault.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from manifind.arrays import Ints
from manifind.collection.filters import kind
from manifind.collection.items import ItemTable
from manifind.collection.metadata import Fields
from manifind.images.files import NOT_FOR_PEOPLE
from manifind.server.errors import RefusedError
from manifind.text import closest, did_you_mean, listed

MOST_LABELS = 12
OTHER = "other"
"""What the last label stands for where there are more values."""

NO_FOLDER = "(no folder)"

_MONTH = re.compile(r"(?!0000)(\d{4}-(?:0[1-9]|1[0-2]))-(?:0[1-9]|[12]\d|3[01])(?!\d)", re.ASCII)
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)", re.ASCII)
_LONGEST_LABEL = 200
_LARGEST = 1e308
_Row: TypeAlias = tuple[int, Fields]


def timeline(items: ItemTable, where: str | None) -> dict[str, Any]:
    """How many items were taken in each month."""
    months, undated = Counter[str](), 0
    for _, fields in described(items, where):
        taken = fields.get("taken")
        found = _MONTH.match(taken) if isinstance(taken, str) else None
        if found is None:
            undated += 1
        else:
            months[found[1]] += 1
    return {"months": [{"month": month, "items": months[month]} for month in sorted(months)], "undated": undated}


class Box(NamedTuple):
    """A part of the earth, in degrees."""

    south: float
    west: float
    north: float
    east: float


EARTH = Box(-90, -180, 90, 180)


def places(items: ItemTable, where: str | None, degrees: float, within: Box = EARTH) -> dict[str, Any]:
    """How many items are in each cell of so many degrees that touches a box, the mean of their places, and one of them.

    box: of the cell; whatever is at its north or its east belongs to the next.
    """
    cells: dict[tuple[int, int], list[tuple[int, float, float]]] = {}
    south, west, north, east = (_step(end, degrees) for end in within)
    unplaced = 0
    for row, fields in described(items, where):
        latitude, longitude = _angle(fields.get("latitude"), 90), _angle(fields.get("longitude"), 180)
        if latitude is None or longitude is None:
            unplaced += 1
            continue
        cell = _step(latitude, degrees), _step(longitude, degrees)
        if south <= cell[0] <= north and west <= cell[1] <= east:
            cells.setdefault(cell, []).append((row, latitude, longitude))
    found = sorted(cells.items())
    ids = items.ids_of(np.array([members[0][0] for _, members in found], dtype=np.int64)).tolist()
    shown = [_cell(cell, members, str(id_), degrees) for (cell, members), id_ in zip(found, ids, strict=True)]
    return {"cells": shown, "unplaced": unplaced}


def colours(items: ItemTable, field: str) -> dict[str, Any]:
    """A value of each item to colour it by, in the order of the items: a number, a day, or the number of a label.

    Of a path it is the folder, of a list the element that most items have. Of more than twelve labels the last stands
    for all others. low, high: of the numbers, or of the days as texts.
    """
    values = [fields.get(field) for _, fields in described(items)]
    there = [value for value in values if value is not None]
    if field in NOT_FOR_PEOPLE or not there:
        raise _unknown(items, field)
    if all(kind(value) == "number" for value in there):
        numbers = [None if value is None else _rounded(value) for value in values]
        low, high = (least(number for number in numbers if number is not None) for least in (min, max))
        return {"kind": "number", "low": low, "high": high, "labels": [], "values": numbers}
    days = [_day(value) for value in values]
    if field != "path" and sum(day is not None for day in days) == len(there):
        first, last = (date.fromordinal(least(day for day in days if day is not None)) for least in (min, max))
        return {"kind": "date", "low": str(first), "high": str(last), "labels": [], "values": days}
    is_truth = all(kind(value) == "truth" for value in there)
    labels, numbered = _labelled([_labels(field, value) for value in values])
    return {"kind": "truth" if is_truth else "text", "low": None, "high": None, "labels": labels, "values": numbered}


def ids_where(items: ItemTable, where: str | None = None) -> list[str]:
    """The ids of the items in their order, of those that satisfy a filter."""
    return [str(id_) for id_ in items.ids_of(_rows(items, where)).tolist()]


def described(items: ItemTable, where: str | None = None) -> Iterator[_Row]:
    """Row and metadata of the items in their order, of those that satisfy a filter."""
    fitted, later = items.fitted.fields, items.later.fields
    for row in _rows(items, where).tolist():
        place = items.added_place(row)
        yield row, fitted[row] if place is None else later[place]


def _rows(items: ItemTable, where: str | None) -> Ints:
    return items.rows if where is None else items.rows[items.satisfying(where)[items.rows]]


def _angle(value: Any, most: float) -> float | None:
    return float(value) if kind(value) == "number" and -most <= value <= most else None


def _step(value: float, degrees: float) -> int:
    """The number of the cell that a value is in, so that a comparison with the cell's ends agrees."""
    step = math.floor(value / degrees)
    if value < _edge(step, degrees):
        return step - 1
    return step + 1 if value >= _edge(step + 1, degrees) else step


def _edge(step: int, degrees: float) -> float:
    """Where a cell begins, with as many digits as people can read."""
    return round(step * degrees, 6)


def _cell(
    cell: tuple[int, int], members: Sequence[tuple[int, float, float]], id_: str, degrees: float
) -> dict[str, Any]:
    n = len(members)
    return {
        "latitude": round(sum(one[1] for one in members) / n, 5),
        "longitude": round(sum(one[2] for one in members) / n, 5),
        "items": n,
        "id": id_,
        "box": [_edge(step, degrees) for step in (*cell, cell[0] + 1, cell[1] + 1)],
    }


def _rounded(value: float) -> float:
    """With the digits that a colour shows."""
    short = max(-_LARGEST, min(_LARGEST, value))
    return float(f"{short:.5g}")


def _day(value: Any) -> int | None:
    """The number of the day that a text begins with."""
    found = _DAY.match(value) if isinstance(value, str) else None
    try:
        return None if found is None else date(*map(int, found.groups())).toordinal()
    except ValueError:  # as the 31st of February
        return None


def _labels(field: str, value: Any) -> list[str]:
    """What an item may be coloured by."""
    if field == "path" and isinstance(value, str):
        return [value.rpartition("/")[0] or NO_FOLDER]
    every = value if isinstance(value, list) else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in every if one is not None]


def _labelled(values: Sequence[Sequence[str]]) -> tuple[list[str], list[int | None]]:
    """The labels, the most frequent first, and for each item the number of its own."""
    counts = Counter(label for every in values for label in dict.fromkeys(every))
    ordered = sorted(counts, key=lambda label: (-counts[label], label))
    kept = ordered if len(ordered) <= MOST_LABELS else ordered[: MOST_LABELS - 1]
    number, rest = {label: place for place, label in enumerate(kept)}, MOST_LABELS - 1
    labels = [label[:_LONGEST_LABEL] for label in kept] + [OTHER] * (len(kept) < len(ordered))
    return labels, [min((number.get(label, rest) for label in every), default=None) for every in values]


def _unknown(items: ItemTable, field: str) -> RefusedError:
    known = sorted(set(items.kinds) - set(NOT_FOR_PEOPLE))
    meant = closest(field, known, 1)
    hint = did_you_mean(meant) if meant else f"there are {listed(known)}" if known else "no item has metadata"
    return RefusedError(404, f"no item has a value of the field {field[:200]!r}", hint)
