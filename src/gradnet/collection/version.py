"""One version of a collection in memory: everything an answer needs, and nothing that could change under it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradnet.arrays import Floats, Ints, Mask
from gradnet.collection.changes import Change, Committed
from gradnet.collection.metadata import Fields, read_metadata
from gradnet.collection.opening import open_learned
from gradnet.collection.reader import Snapshot
from gradnet.collection.where import parse_where
from gradnet.ranking import Ranking
from gradnet.search.learned import Learned
from gradnet.search.placing import Placed
from gradnet.search.shelf import Shelf


@dataclass(frozen=True)
class Version:
    """Rows are those of the shelf: fitted items first, then those that came later, by position.

    positions, ids, metadata: of the items that are there, in the order of their rows.
    """

    directory: Path
    manifest: dict[str, Any]
    commit: Any
    learned: Learned
    loss_curve: Floats
    snapshot: Snapshot
    added: Placed
    positions: Ints
    ids: NDArray[Any]
    metadata: list[str | None]

    @cached_property
    def shelf(self) -> Shelf:
        present = np.zeros(self.n_fitted, dtype=np.bool_)
        present[self.positions[self.positions < self.n_fitted]] = True
        return Shelf(self.learned, present, self.added)

    @property
    def n_fitted(self) -> int:
        """How many items were fitted, those that have gone included."""
        return int(self.manifest["shape"]["items"])

    def rank(self, features: Floats, descriptors: Floats, k: int, where: str | None) -> Ranking:
        """The k best items, by the user's ids."""
        wanted = None if where is None else self._satisfying(where)
        found = self.shelf.rank(features, descriptors, k, wanted)
        return Ranking(self._id_of_row[found.ids], found.scores)

    def row_of(self, value: Any) -> int | None:
        """The row of the item with an id, None where there is none."""
        wanted = value.item() if isinstance(value, np.generic) else value
        same_kind = type(wanted) is (str if self.ids.dtype == object else int)
        place = self._place_of_id.get(wanted) if same_kind else None
        return None if place is None else int(self.shelf.rows[place])

    def fields(self, row: int) -> Fields:
        """The metadata of an item."""
        return self._fields[int(np.searchsorted(self.shelf.rows, row))]

    def after(self, change: Change, done: Committed) -> Version:
        """The version that a commit of our own has made of this one."""
        stays = ~np.isin(self.positions, done.gone)
        metadata = [text for text, here in zip(self.metadata, stays, strict=True) if here]
        added = self.added
        if done.gone:
            added = added[stays[self.positions >= self.n_fitted]]
        if change.placed is not None:
            added = added.joined(change.placed)
            metadata = metadata + list(change.metadata)
        ids = np.concatenate([self.ids[stays], as_array(done.ids, self.ids.dtype)])
        positions = np.concatenate([self.positions[stays], np.array(done.positions, dtype=np.int64)])
        for id_, text in change.new_metadata.items():
            metadata[int(np.flatnonzero(ids == id_)[0])] = text
        return Version(
            self.directory,
            self.manifest | done.entries,
            done.entries["commit"],
            self.learned,
            self.loss_curve,
            self.snapshot,
            added,
            positions,
            ids,
            metadata,
        )

    def _satisfying(self, where: str) -> Mask:
        condition = parse_where(where)
        wanted = np.zeros(self.n_fitted + len(self.added), dtype=np.bool_)
        wanted[self.shelf.rows] = [condition(fields) for fields in self._fields]
        return wanted

    @cached_property
    def _fields(self) -> list[Fields]:
        return [read_metadata(text, str(self.directory)) for text in self.metadata]

    @cached_property
    def _place_of_id(self) -> dict[Any, int]:
        return {id_: place for place, id_ in enumerate(self.ids.tolist())}

    @cached_property
    def _id_of_row(self) -> NDArray[Any]:
        if len(self.ids) == self.n_fitted + len(self.added):
            return self.ids
        by_row = np.zeros(self.n_fitted + len(self.added), dtype=self.ids.dtype)
        by_row[self.shelf.rows] = self.ids
        return by_row


def open_version(snapshot: Snapshot, before: Version | None = None) -> Version:
    """A version from what was read. before: an older one, whose fit is taken over where it is the same."""
    if before is not None and before.manifest.get("fit") == snapshot.manifest.get("fit"):
        learned, loss_curve = before.learned, before.loss_curve
    else:
        learned, loss_curve = open_learned(snapshot)
    items = snapshot.items
    kind = object if items.ids and isinstance(items.ids[0], str) else np.int64
    return Version(
        snapshot.directory,
        snapshot.manifest,
        snapshot.manifest["commit"],
        learned,
        loss_curve,
        snapshot,
        snapshot.added,
        items.positions,
        as_array(items.ids, np.dtype(kind)),
        items.metadata,
    )


def as_array(ids: list[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """ids as an array of integers, or of objects: fixed-width text would take for each as much as for the longest."""
    array = np.empty(len(ids), dtype=dtype)
    array[:] = ids
    return array
