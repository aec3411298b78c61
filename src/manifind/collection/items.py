"""The items of a collection: their rows in the tables, and the ItemTable by which ids, metadata and rows are found.

An ItemTable is never changed. A commit makes a new one at a cost that does not depend on how many items there are.
"""

import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Ints, Mask
from manifind.collection.filters import check_fields, field_kinds, parse_where
from manifind.collection.format import RowSum, Sizes, damaged
from manifind.collection.ids import parse_id
from manifind.collection.metadata import Fields, read_metadata
from manifind.errors import InputError
from manifind.search.live_index import AddedItems, RowNumbers
from manifind.text import closest_places, count, did_you_mean, listed

_LARGEST = float(np.finfo(np.float32).max)
_PATH = re.compile(r'"path": "((?:[^"\\]|\\.)*)"')  # a quote inside a text has a backslash, so this is a name

SELECT_ITEMS = "SELECT position, id, metadata FROM items"
SELECT_ADDITIONS = "SELECT position, length, descriptor, feature, neighbours, distances FROM additions"
_BLOBS = {"descriptors": "<f4", "features": "<f4", "neighbours": "<i8", "distances": "<f4"}  # as additions have them


class ItemRows(NamedTuple):
    """The items in the order of their positions, which no two ever share. metadata: JSON texts, or None."""

    positions: Ints
    ids: list[Any]
    metadata: list[str | None]


class Committed(NamedTuple):
    """What a change has done. before: the commit that it follows. entries: new ones of the manifest.

    positions, ids, metadata: of the items that were added. gone: positions of those that were removed.
    described: new metadata by id.
    """

    before: Any
    entries: dict[str, Any]
    positions: list[int]
    ids: list[Any]
    metadata: list[str | None]
    gone: list[int]
    described: dict[Any, str | None]


def read_rows(database: sqlite3.Connection, where: str, sizes: Sizes) -> tuple[ItemRows, AddedItems, RowSum]:
    """All items, what was added after the fit, and the sum of both. where: named when something is wrong.

    Every item that was added, and only such, have a row of their own among the additions.
    """
    rows = database.execute(SELECT_ITEMS + " ORDER BY position").fetchall()
    items, total = _parse_items(rows, where), RowSum()
    additions = database.execute(SELECT_ADDITIONS + " ORDER BY position").fetchall()
    later = items.positions[items.positions >= sizes.items]
    if [row[0] for row in additions] != later.tolist():
        raise damaged(f"{where} has {count(len(additions), 'addition')} for {count(len(later), 'added item')}")
    try:
        total.add_items(rows)
        total.add_additions(additions)
    except (TypeError, UnicodeEncodeError) as error:
        raise damaged(f"{where} is damaged: {error}") from error
    try:
        return items, _parse_additions(additions, sizes), total
    except (TypeError, ValueError) as error:
        raise damaged(f"{where} is damaged: an addition has {error}") from error


def _parse_items(rows: list[Any], where: str) -> ItemRows:
    positions, ids, metadata = ([row[column] for row in rows] for column in range(3))
    if set(map(type, ids)) - {str} and set(map(type, ids)) - {int}:
        raise damaged(f"the ids in {where} are neither all strings nor all integers")
    if set(map(type, metadata)) - {str, type(None)}:
        raise damaged(f"the metadata in {where} is no text")
    if positions and positions[0] < 0:
        raise damaged(f"{where} has an item at position {positions[0]}")
    return ItemRows(np.array(positions, dtype=np.int64), ids, metadata)


def _parse_additions(rows: list[Any], sizes: Sizes) -> AddedItems:
    if not all(type(row[1]) is float and 0 < row[1] <= _LARGEST for row in rows):
        raise ValueError("a length that is no number above 0")
    lengths = np.array([row[1] for row in rows], dtype=np.float32)[:, None]
    widths = (sizes.dimension, sizes.feature_dimension, sizes.neighbors, sizes.neighbors)
    descriptors, features, neighbours, distances = (
        _stacked([row[column] for row in rows], np.dtype(dtype), width)
        for column, (dtype, width) in enumerate(zip(_BLOBS.values(), widths, strict=True), 2)
    )
    if ((neighbours < 0) | (neighbours >= sizes.items)).any():
        raise ValueError("neighbours that are no items")
    if not all(np.isfinite(part).all() for part in (descriptors, features, distances)):
        raise ValueError("values that are not finite numbers")
    if (distances < 0).any():
        raise ValueError("a distance below 0")
    return AddedItems(descriptors, lengths, features, neighbours, distances)


def addition_rows(added: AddedItems, positions: Sequence[int]) -> list[Sequence[Any]]:
    """The rows of the table of additions for items at some positions."""
    blobs = ([row.tobytes() for row in getattr(added, name).astype(dtype)] for name, dtype in _BLOBS.items())
    return list(zip(positions, added.lengths[:, 0].tolist(), *blobs, strict=True))


def _stacked(blobs: list[Any], dtype: np.dtype[Any], width: int) -> Any:
    """(a, width) from the bytes of each row."""
    wrong = next((blob for blob in blobs if type(blob) is not bytes or len(blob) != width * dtype.itemsize), None)
    if wrong is not None:
        found = count(len(wrong), "byte") if type(wrong) is bytes else f"a {type(wrong).__name__}"
        raise ValueError(f"{found} where {count(width * dtype.itemsize, 'byte')} were expected")
    flat = np.frombuffer(b"".join(blobs), dtype=dtype)
    return flat.reshape(len(blobs), width).astype(dtype.newbyteorder("="), copy=False)


@dataclass(frozen=True)
class ItemBlock:
    """The items of the fit by row, or those that were added later; shared by all versions that it does not differ in.

    ids: (n,), meaningless where an item had been removed when the collection was opened. metadata: JSON texts, or None.
    rows: of those that were there. where: the collection, named in errors.
    """

    ids: NDArray[Any]
    metadata: list[str | None]
    rows: Ints
    where: str

    @cached_property
    def fields(self) -> list[Fields]:
        """The metadata as dictionaries."""
        return [read_metadata(text, self.where) for text in self.metadata]

    @cached_property
    def kinds(self) -> dict[str, set[str]]:
        """The metadata fields, with the kinds of their values."""
        return field_kinds(self.fields)

    @cached_property
    def paths(self) -> list[str | None]:
        return [_path(text, self.where) for text in self.metadata]

    @cached_property
    def row_of(self) -> dict[Any, int]:
        return dict(zip(self.ids[self.rows].tolist(), self.rows.tolist(), strict=True))

    def described(self, texts: dict[int, str | None]) -> Self:
        """With other metadata for some rows; copied only where one of them changes, since there may be many."""
        metadata = list(self.metadata) if texts else self.metadata
        for row, text in texts.items():
            metadata[row] = text
        return replace(self, metadata=metadata) if texts else self


@dataclass(frozen=True)
class ItemTable(RowNumbers):
    """All items by row, as `RowNumbers` has them: fitted ones, present or removed, then those that were added later."""

    fitted: ItemBlock
    present: Mask
    later: ItemBlock
    later_positions: Ints

    @property
    def n_added(self) -> int:
        return len(self.later.ids)

    @property
    def has_texts(self) -> bool:
        """Whether ids are texts, and not numbers."""
        return bool(self.fitted.ids.dtype == object)

    # Of the items that are there, in the order of their rows:

    @cached_property
    def ids(self) -> NDArray[Any]:
        return np.concatenate([self.fitted.ids[self.present], self.later.ids])

    @cached_property
    def positions(self) -> Ints:
        return np.concatenate([np.flatnonzero(self.present), self.later_positions])

    @cached_property
    def metadata(self) -> list[str | None]:
        return [*(self.fitted.metadata[row] for row in np.flatnonzero(self.present)), *self.later.metadata]

    @cached_property
    def kinds(self) -> dict[str, set[str]]:
        """The metadata fields there are, with the kinds of their values."""
        later = self.later.kinds
        if self.n_present == len(self.fitted.rows):  # then they are the same for all versions
            kinds = self.fitted.kinds
        else:
            kinds = field_kinds([self.fitted.fields[row] for row in np.flatnonzero(self.present)])
        return {name: kinds.get(name, set()) | later.get(name, set()) for name in (*kinds, *later)}

    @cached_property
    def paths(self) -> list[str | None]:
        """Where the file of each row is now, None where nothing is known of one."""
        return [*self.fitted.paths, *self.later.paths]

    def row_of(self, id_: Any) -> int | None:
        """The row of an item, None where there is none."""
        wanted = id_.item() if isinstance(id_, np.generic) else id_
        if type(wanted) is not (str if self.has_texts else int):
            return None
        row = self.fitted.row_of.get(wanted)
        if row is not None and self.present[row]:
            return row
        place = self.later.row_of.get(wanted)
        return None if place is None else self.n_fitted + place

    def known_row(self, id_: Any) -> int:
        """The row of an item, which must be there."""
        row = self.row_of(id_)
        if row is None:
            raise self.unknown_item(id_.item() if isinstance(id_, np.generic) else id_)
        return row

    def mask_of(self, ids: Iterable[Any]) -> Mask:
        """(n + a,) the rows of some items, all of which must be there."""
        mask = np.zeros(self.n_fitted + self.n_added, dtype=np.bool_)
        mask[[self.known_row(id_) for id_ in ids]] = True
        return mask

    def ids_of(self, rows: Ints) -> NDArray[Any]:
        """The ids of rows, in any shape."""
        return np.asarray(self.gather(rows, self.fitted.ids, self.later.ids))

    def fields(self, row: int) -> Fields:
        """The metadata of an item."""
        place = self.added_place(row)
        text = self.fitted.metadata[row] if place is None else self.later.metadata[place]
        return read_metadata(text, self.fitted.where)

    def satisfying(self, where: str) -> Mask:
        """(n + a,) the rows whose metadata satisfy a filter; meaningless for those that were removed."""
        condition = parse_where(where)
        if len(self):
            check_fields(condition, self.kinds)
        every = (*self.fitted.fields, *self.later.fields)
        return np.fromiter((condition(fields) for fields in every), np.bool_, len(every))

    def find_id(self, text: str) -> Any:
        """The id of the one item that a text stands for: its id, its current path, or the name of its file."""
        rows = self.exact_rows(text) or self._rows_of_file(text)
        ids = self.ids_of(np.array(rows, dtype=np.int64)).tolist()
        if not ids:
            raise self.unknown_item(parse_id(text, self.has_texts, self.fitted.where))
        if len(ids) > 1:
            named = f"have a file called {text[:200]!r}: {listed(map(repr, ids), 5)}"
            raise InputError(f"{len(ids)} items of {self.fitted.where} {named}", "give the id of one of them")
        return ids[0]

    def exact_rows(self, text: str) -> list[int]:
        """The row of the item with this id; else of those whose file is at this path now, usually one or none."""
        try:
            row = self.row_of(parse_id(text, self.has_texts, self.fitted.where))
        except InputError:
            row = None
        if row is not None:
            return [row]
        return [row for row in self.rows.tolist() if self.paths[row] == text]

    def suggested_ids(self, id_: Any) -> list[str]:
        """Ids and paths that may have been meant; a name without a folder may have been meant in any."""
        if not isinstance(id_, str) or not self.has_texts:
            return []
        known: list[str] = self.ids.tolist()
        now = (self.paths[row] for row in self.rows.tolist())
        known += [path for own, path in zip(known, now, strict=True) if path is not None and path != own]
        names = known if "/" in id_ else [_file_name(name) for name in known]
        return [known[place] for place in closest_places(id_, names)]

    def unknown_item(self, id_: Any) -> InputError:
        """The error for an id that no item has."""
        meant, example = self.suggested_ids(id_), "".join(f", such as {first!r}" for first in self.ids[:1].tolist())
        hint = did_you_mean(meant) if meant else f"give an id of one of its items{example}"
        return InputError(f"there is no item with the id {repr(id_)[:200]} in {self.fitted.where}", hint)

    def after(self, done: Committed) -> Self:
        """The items once a change is committed."""
        present, gone = self.present, [position for position in done.gone if position < self.n_fitted]
        if gone:
            present = present.copy()
            present[gone] = False
        later, positions, kept = self.later, self.later_positions, self.later_kept(done)
        if kept is not None or done.ids:
            kept = later.rows if kept is None else kept
            ids = np.concatenate([later.ids[kept], as_array(done.ids, later.ids.dtype)])
            metadata = [*(later.metadata[place] for place in kept), *done.metadata]
            positions = np.concatenate([positions[kept], np.array(done.positions, dtype=np.int64)])
            later = ItemBlock(ids, metadata, np.arange(len(ids)), later.where)
        table = replace(self, present=present, later=later, later_positions=positions)
        texts, n = {table.known_row(id_): text for id_, text in done.described.items()}, self.n_fitted
        fitted = self.fitted.described({row: text for row, text in texts.items() if row < n})
        later = later.described({row - n: text for row, text in texts.items() if row >= n})
        return replace(table, fitted=fitted, later=later) if texts else table

    def later_kept(self, done: Committed) -> Ints | None:
        """The places among the added items of those that a commit keeps; None for all of them."""
        gone = np.isin(self.later_positions, done.gone)
        return np.flatnonzero(~gone) if gone.any() else None

    def _rows_of_file(self, name: str) -> list[int]:
        """The rows of items whose file, now or when it was added, has this name in whatever folder."""
        named = zip(self.rows.tolist(), self.ids.tolist(), strict=True)
        return [row for row, id_ in named if name and name in (_file_name(self.paths[row] or ""), _file_name(str(id_)))]


def read_item_table(items: ItemRows, n_fitted: int, where: str) -> ItemTable:
    """From the rows of the table."""
    is_fitted = items.positions < n_fitted
    kind = object if items.ids and isinstance(items.ids[0], str) else np.int64
    rows, n_present = items.positions[is_fitted], int(is_fitted.sum())
    ids, metadata, present = np.zeros(n_fitted, dtype=kind), np.full(n_fitted, None), np.zeros(n_fitted, dtype=np.bool_)
    ids[rows], present[rows] = as_array(items.ids[:n_present], ids.dtype), True
    metadata[rows] = as_array(items.metadata[:n_present], metadata.dtype)
    later = as_array(items.ids[n_present:], ids.dtype)
    return ItemTable(
        ItemBlock(ids, metadata.tolist(), rows, where),
        present,
        ItemBlock(later, items.metadata[n_present:], np.arange(len(later)), where),
        items.positions[~is_fitted],
    )


def as_array(ids: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """ids as an array of integers, or of objects: fixed-width text would take for each as much as for the longest."""
    array = np.empty(len(ids), dtype=dtype)
    array[:] = ids
    return array


def _path(text: str | None, where: str) -> str | None:
    """The text under "path" in an item's JSON. Cut out where that is safe: parsing takes many times as long."""
    found = None if text is None else _PATH.search(text)
    if found is None:
        return None
    if "\\" not in found[1]:
        return found[1]
    path = read_metadata(text, where).get("path")
    return path if isinstance(path, str) else None


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]
