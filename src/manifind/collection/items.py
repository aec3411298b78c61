"""Who is in a collection, and what is said of them: changed at a cost that does not depend on how many there are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Ints, Mask
from manifind.collection.filters import field_kinds
from manifind.collection.metadata import Fields, read_metadata
from manifind.collection.rows import ItemRows
from manifind.collection.transactions import Committed

_PATH = re.compile(r'"path": "((?:[^"\\]|\\.)*)"')  # a quote inside a text has a backslash, so this is a name


@dataclass(frozen=True)
class FittedItems:
    """The items of the fit, by row, as they were when the collection was opened; shared by all later versions.

    ids: (n,), of no meaning where an item had gone already. metadata: JSON texts, or None. rows: of those who were
    there. where: named in errors.
    """

    ids: NDArray[Any]
    metadata: list[str | None]
    rows: Ints
    where: str

    @cached_property
    def fields(self) -> list[Fields]:
        """What the metadata says."""
        return [read_metadata(text, self.where) for text in self.metadata]

    @cached_property
    def kinds(self) -> dict[str, set[str]]:
        """The fields there are, with the kinds of their values."""
        return field_kinds(self.fields)

    @cached_property
    def paths(self) -> list[str | None]:
        return [_path(text, self.where) for text in self.metadata]

    @cached_property
    def row_of(self) -> dict[Any, int]:
        return dict(zip(self.ids[self.rows].tolist(), self.rows.tolist(), strict=True))

    def described(self, texts: dict[int, str | None]) -> FittedItems:
        """With other metadata for some rows."""
        metadata = list(self.metadata)
        for row, text in texts.items():
            metadata[row] = text
        return replace(self, metadata=metadata)


@dataclass(frozen=True)
class LaterItems:
    """Those that came after the fit, by position."""

    positions: tuple[int, ...] = ()
    ids: tuple[Any, ...] = ()
    metadata: tuple[str | None, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def place_of(self) -> dict[Any, int]:
        return {id_: place for place, id_ in enumerate(self.ids)}

    def kept(self, places: Sequence[int]) -> LaterItems:
        """Only those at some places."""
        return LaterItems(
            tuple(self.positions[place] for place in places),
            tuple(self.ids[place] for place in places),
            tuple(self.metadata[place] for place in places),
        )

    def joined(self, positions: Sequence[int], ids: Sequence[Any], metadata: Sequence[str | None]) -> LaterItems:
        """These, and others behind them."""
        return LaterItems((*self.positions, *positions), (*self.ids, *ids), (*self.metadata, *metadata))

    def described(self, texts: dict[int, str | None]) -> LaterItems:
        """With other metadata at some places."""
        metadata = list(self.metadata)
        for place, text in texts.items():
            metadata[place] = text
        return replace(self, metadata=tuple(metadata))


@dataclass(frozen=True)
class ItemTable:
    """Rows r < n are the fitted items, present or not; row n + j is the j-th that came later."""

    fitted: FittedItems
    present: Mask
    later: LaterItems

    def __len__(self) -> int:
        return int(np.count_nonzero(self.present)) + len(self.later)

    @property
    def has_texts(self) -> bool:
        """Whether ids are texts, and not numbers."""
        return bool(self.fitted.ids.dtype == object)

    @cached_property
    def ids(self) -> NDArray[Any]:
        """Of those who are there, in the order of their rows."""
        return np.concatenate([self.fitted.ids[self.present], as_array(self.later.ids, self.fitted.ids.dtype)])

    @cached_property
    def positions(self) -> Ints:
        """Of the same."""
        return np.concatenate([np.flatnonzero(self.present), np.array(self.later.positions, dtype=np.int64)])

    @cached_property
    def metadata(self) -> list[str | None]:
        """Of the same."""
        return [*(self.fitted.metadata[row] for row in np.flatnonzero(self.present)), *self.later.metadata]

    @cached_property
    def later_fields(self) -> list[Fields]:
        return [read_metadata(text, self.fitted.where) for text in self.later.metadata]

    @cached_property
    def kinds(self) -> dict[str, set[str]]:
        """The metadata fields there are, with the kinds of their values."""
        rows, later = self.fitted.rows, field_kinds(self.later_fields)
        if np.count_nonzero(self.present) == len(rows):  # then they are the same for all versions
            kinds = self.fitted.kinds
        else:
            kinds = field_kinds(self.fitted.fields[row] for row in np.flatnonzero(self.present))
        return {name: kinds.get(name, set()) | later.get(name, set()) for name in (*kinds, *later)}

    @cached_property
    def paths(self) -> list[str | None]:
        """Where the file of each row is now, None where nothing is known of one."""
        return [*self.fitted.paths, *(_path(text, self.fitted.where) for text in self.later.metadata)]

    def row_of(self, id_: Any) -> int | None:
        """The row of an item, None where there is none."""
        wanted = id_.item() if isinstance(id_, np.generic) else id_
        if type(wanted) is not (str if self.has_texts else int):
            return None
        row = self.fitted.row_of.get(wanted)
        if row is not None and self.present[row]:
            return row
        place = self.later.place_of.get(wanted)
        return None if place is None else len(self.present) + place

    def ids_of(self, rows: Ints) -> NDArray[Any]:
        """The ids of rows, in any shape."""
        n = len(self.present)
        late = rows >= n
        if not late.any():
            return np.asarray(self.fitted.ids[rows])
        found = self.fitted.ids[np.where(late, 0, rows)]
        found[late] = as_array(self.later.ids, self.fitted.ids.dtype)[rows[late] - n]
        return np.asarray(found)

    def fields(self, row: int) -> Fields:
        """What is said of an item."""
        n = len(self.present)
        text = self.fitted.metadata[row] if row < n else self.later.metadata[row - n]
        return read_metadata(text, self.fitted.where)

    def after(self, done: Committed) -> ItemTable:
        """Those who are there once a change is committed."""
        n, present, later = len(self.present), self.present, self.later
        if gone := [position for position in done.gone if position < n]:
            present = present.copy()
            present[gone] = False
        if len(gone) < len(done.gone):
            later = later.kept(self.places_kept(done))
        later = later.joined(done.positions, done.ids, done.metadata)
        return ItemTable(self.fitted, present, later)._described(done.described)

    def places_kept(self, done: Committed) -> list[int]:
        """The places among the later ones of those who stay."""
        gone = set(done.gone)
        return [place for place, position in enumerate(self.later.positions) if position not in gone]

    def _described(self, texts: dict[Any, str | None]) -> ItemTable:
        if not texts:
            return self
        n, rows = len(self.present), {self.row_of(id_): text for id_, text in texts.items()}
        fitted = {row: text for row, text in rows.items() if row is not None and row < n}
        later = {row - n: text for row, text in rows.items() if row is not None and row >= n}
        return ItemTable(
            self.fitted.described(fitted) if fitted else self.fitted, self.present, self.later.described(later)
        )


def _path(text: str | None, where: str) -> str | None:
    """The text under "path" in an item's JSON. Cut out where that is safe: parsing takes many times as long."""
    found = None if text is None else _PATH.search(text)
    if found is None:
        return None
    if "\\" not in found[1]:
        return found[1]
    path = read_metadata(text, where).get("path")
    return path if isinstance(path, str) else None


def read_item_table(items: ItemRows, n_fitted: int, where: str) -> ItemTable:
    """From the rows of the table."""
    is_fitted = items.positions < n_fitted
    kind = object if items.ids and isinstance(items.ids[0], str) else np.int64
    rows, count = items.positions[is_fitted], int(is_fitted.sum())
    ids = np.zeros(n_fitted, dtype=kind)
    ids[rows] = as_array(items.ids[:count], np.dtype(kind))
    metadata: list[str | None] = [None] * n_fitted
    for row, text in zip(rows.tolist(), items.metadata, strict=False):
        metadata[row] = text
    present = np.zeros(n_fitted, dtype=np.bool_)
    present[rows] = True
    later = LaterItems(
        tuple(items.positions[~is_fitted].tolist()), tuple(items.ids[count:]), tuple(items.metadata[count:])
    )
    return ItemTable(FittedItems(ids, metadata, rows, where), present, later)


def as_array(ids: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """ids as an array of integers, or of objects: fixed-width text would take for each as much as for the longest."""
    array = np.empty(len(ids), dtype=dtype)
    array[:] = ids
    return array
