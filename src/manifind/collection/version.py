"""One version of a collection in memory: everything an answer needs, and nothing that could change under it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from manifind.arrays import Floats, row_blocks
from manifind.collection.format import DAMAGED
from manifind.collection.items import Committed, ItemTable, read_item_table
from manifind.collection.load_model import load_model
from manifind.collection.manifest import Manifest
from manifind.collection.reader import Snapshot, check_mapped, read_array
from manifind.errors import CollectionError
from manifind.search.feature_model import FeatureModel
from manifind.search.live_index import AddedItems, LiveIndex

_ROWS_PER_BLOCK = 4096


@dataclass(frozen=True)
class Version:
    """A fit, and the items that are there: one ItemTable and one LiveIndex, with the same rows.

    opened: what was fitted, as it was opened; `learned` is the same after a check.
    blocks: of added items, in the order in which they were added; joined for the first search.
    """

    directory: Path
    manifest: Manifest
    opened: FeatureModel
    loss_curve: Floats
    snapshot: Snapshot
    items: ItemTable
    blocks: tuple[AddedItems, ...]

    def __len__(self) -> int:
        return len(self.items)

    @property
    def commit(self) -> str:
        """What names this version."""
        return self.manifest.commit

    @cached_property
    def added(self) -> AddedItems:
        """The items that were added after the fit."""
        return self.blocks[0] if len(self.blocks) == 1 else AddedItems.join(self.blocks)

    @property
    def learned(self) -> FeatureModel:
        """What was fitted; refused where a file of it was cut off since it was opened."""
        self._check_files()
        return self.opened

    @property
    def index(self) -> LiveIndex:
        """All items to search in, after the same check."""
        self._check_files()
        return self._index

    @cached_property
    def _index(self) -> LiveIndex:
        return LiveIndex(self.opened, self.items.present, self.added)

    def _check_files(self) -> None:
        """Before every answer: reading beyond the end of a mapped file would kill the process."""
        for rows in (self.opened.descriptors, self.opened.features):
            check_mapped(rows)

    def check_finite(self, values: Floats, what: str) -> None:
        """Refuse values that were computed from the `what` of this collection, where one is not a finite number."""
        if not np.isfinite(values).all():
            raise CollectionError(
                f"{self.directory} is damaged: its {what} hold values that are not finite numbers", DAMAGED
            )

    def check_all_finite(self) -> None:
        """Refuse descriptors and features of which any is not a finite number."""
        for name in ("descriptors", "features"):
            rows = getattr(self.learned, name)
            for part in row_blocks(len(rows), _ROWS_PER_BLOCK):
                self.check_finite(rows[part], name)

    def after(self, placed: AddedItems | None, done: Committed) -> Version:
        """The version that a commit of our own has made of this one. placed: the items that it has added."""
        blocks = (self.added,) if "added" in self.__dict__ else self.blocks  # what was joined stays so
        places = self.items.later_kept(done)
        if places is not None:
            blocks = (self.added[places],)
        if placed is not None:
            blocks = (*blocks, placed)
        manifest, items = self.manifest.updated(done.entries), self.items.after(done)
        return replace(self, manifest=manifest, items=items, blocks=blocks)


def open_version(snapshot: Snapshot, before: Version | None = None) -> Version:
    """A version from what was read. before: an older one, whose fit is taken over where it is the same."""
    if before is not None and before.manifest.fit == snapshot.manifest.fit:
        learned, loss_curve = before.opened, before.loss_curve
    else:
        learned, loss_curve = load_model(snapshot)
    if len(learned.nodes) < len(learned.features) and not np.isin(snapshot.added.neighbours, learned.nodes).all():
        raise CollectionError(f"{snapshot.directory} is damaged: an addition has neighbours that are no nodes", DAMAGED)
    items = read_item_table(snapshot.items, snapshot.manifest.sizes.items, str(snapshot.directory))
    return Version(snapshot.directory, snapshot.manifest, learned, loss_curve, snapshot, items, (snapshot.added,))


def original_descriptors(version: Version) -> Floats:
    """(n, d) the descriptors of the items that are there, as they were given, to float32 rounding."""
    fitted, later = np.flatnonzero(version.items.present), version.added
    lengths = read_array(version.snapshot, "lengths", (version.items.numbers.n_fitted, 1))
    restore = version.learned.preprocessor.restore
    out = np.empty((len(version), version.manifest.sizes.dimension), dtype=np.float32)
    out[: len(fitted)] = restore(version.learned.descriptors[fitted], lengths[fitted])
    out[len(fitted) :] = restore(later.descriptors, later.lengths)
    if not np.isfinite(out).all():
        raise CollectionError(f"{version.directory} is damaged: a descriptor or its length is no number", DAMAGED)
    return out
