"""The rows of items and of additions: between tables and arrays, both ways."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifind.arrays import Ints
from manifind.collection.format import DAMAGED, RowSum
from manifind.errors import CollectionError
from manifind.search.live_index import AddedItems, nobody
from manifind.text import count

_LARGEST = float(np.finfo(np.float32).max)

SELECT_ITEMS = "SELECT position, id, metadata FROM items"
SELECT_ADDITIONS = "SELECT position, length, descriptor, feature, neighbours, distances FROM additions"


@dataclass(frozen=True)
class ItemRows:
    """The items in the order of their positions, which no two ever share. metadata: JSON texts, or None."""

    positions: Ints
    ids: list[Any]
    metadata: list[str | None]

    def __len__(self) -> int:
        return len(self.ids)


def read_items(database: sqlite3.Connection, where: str, total: RowSum) -> ItemRows:
    """All items; their digests go to `total`. where: named when something is wrong."""
    rows = database.execute(SELECT_ITEMS + " ORDER BY position").fetchall()
    positions, ids, metadata = ([row[column] for row in rows] for column in range(3))
    if set(map(type, ids)) - {str} and set(map(type, ids)) - {int}:
        raise CollectionError(f"the ids in {where} are neither all strings nor all integers", DAMAGED)
    if set(map(type, metadata)) - {str, type(None)}:
        raise CollectionError(f"the metadata in {where} is no text", DAMAGED)
    if positions and positions[0] < 0:
        raise CollectionError(f"{where} has an item at position {positions[0]}", DAMAGED)
    _count(total.add_items, rows, where)
    return ItemRows(np.array(positions, dtype=np.int64), ids, metadata)


def read_additions(
    database: sqlite3.Connection, where: str, total: RowSum, shape: dict[str, int], items: ItemRows
) -> AddedItems:
    """What came after the fit; every such item and only such have a row of their own."""
    d, D, k = shape["dimension"], shape["feature_dimension"], shape["neighbors"]
    later = items.positions[items.positions >= shape["items"]]
    rows = database.execute(SELECT_ADDITIONS + " ORDER BY position").fetchall()
    if [row[0] for row in rows] != later.tolist():
        raise CollectionError(
            f"{where} has {count(len(rows), 'addition')} for {count(len(later), 'added item')}", DAMAGED
        )
    _count(total.add_additions, rows, where)
    if not rows:
        return nobody(d, D, k)
    try:
        if not all(type(row[1]) is float and 0 < row[1] <= _LARGEST for row in rows):
            raise ValueError("a length that is no number above 0")
        lengths = np.array([row[1] for row in rows], dtype=np.float32)[:, None]
        descriptors, features, distances = (
            _stacked((row[column] for row in rows), np.dtype("<f4"), width)
            for column, width in ((2, d), (3, D), (5, k))
        )
        neighbours = _stacked((row[4] for row in rows), np.dtype("<i8"), k)
    except (TypeError, ValueError) as error:
        raise CollectionError(f"{where} is damaged: an addition has {error}", DAMAGED) from error
    if neighbours.min() < 0 or neighbours.max() >= shape["items"]:
        raise CollectionError(f"{where} is damaged: an addition has neighbours that are no items", DAMAGED)
    if not all(np.isfinite(part).all() for part in (descriptors, features, distances)):
        raise CollectionError(f"{where} is damaged: an addition holds what is no number", DAMAGED)
    if distances.min() < 0:
        raise CollectionError(f"{where} is damaged: an addition has a distance below 0", DAMAGED)
    return AddedItems(descriptors, lengths, features, neighbours, distances)


def addition_rows(placed: AddedItems, positions: Iterable[int]) -> Iterator[Sequence[Any]]:
    """The rows of a table for items at some positions."""
    for row, position in enumerate(positions):
        yield (
            position,
            float(placed.lengths[row, 0]),
            placed.descriptors[row].astype("<f4").tobytes(),
            placed.features[row].astype("<f4").tobytes(),
            placed.neighbours[row].astype("<i8").tobytes(),
            placed.distances[row].astype("<f4").tobytes(),
        )


def _count(add: Any, rows: list[Any], where: str) -> None:
    try:
        add(rows)
    except (TypeError, UnicodeEncodeError) as error:
        raise CollectionError(f"{where} is damaged: {error}", DAMAGED) from error


def _stacked(blobs: Iterable[Any], dtype: np.dtype[Any], width: int) -> Any:
    """(a, width) from the bytes of each row."""
    parts = list(blobs)
    wrong = next((part for part in parts if type(part) is not bytes or len(part) != width * dtype.itemsize), None)
    if wrong is not None:
        found = count(len(wrong), "byte") if type(wrong) is bytes else f"a {type(wrong).__name__}"
        raise ValueError(f"{found} where {count(width * dtype.itemsize, 'byte')} were expected")
    flat = np.frombuffer(b"".join(parts), dtype=dtype)
    return flat.reshape(len(parts), width).astype(dtype.newbyteorder("="), copy=False)
