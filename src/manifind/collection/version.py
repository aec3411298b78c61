"""One version of a collection in memory: everything an answer needs, and nothing that could change under it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from manifind.arrays import Floats, Mask
from manifind.collection.filters import check_fields, parse_where
from manifind.collection.format import DAMAGED
from manifind.collection.items import ItemTable, read_item_table
from manifind.collection.load_model import load_model
from manifind.collection.reader import Snapshot, check_mapped
from manifind.collection.transactions import Change, Committed
from manifind.errors import CollectionError
from manifind.ranking import Ranking
from manifind.search.feature_model import FeatureModel
from manifind.search.live_index import AddedItems, LiveIndex, join


@dataclass(frozen=True)
class Version:
    """What was fitted, and who is there. Rows are those of the shelf: fitted items, then those that came later.

    opened: what was fitted, as it was opened; `learned` is the same after a check.
    blocks: of those that came later, in the order in which they came; joined when somebody searches.
    """

    directory: Path
    manifest: dict[str, Any]
    opened: FeatureModel
    loss_curve: Floats
    snapshot: Snapshot
    holdings: ItemTable
    blocks: tuple[AddedItems, ...]

    def __len__(self) -> int:
        return len(self.holdings)

    @property
    def commit(self) -> Any:
        """What names this version."""
        return self.manifest["commit"]

    @property
    def n_fitted(self) -> int:
        """How many items were fitted, those that have gone included."""
        return len(self.holdings.present)

    @cached_property
    def added(self) -> AddedItems:
        """Those that came later."""
        return self.blocks[0] if len(self.blocks) == 1 else join(self.blocks)

    @property
    def learned(self) -> FeatureModel:
        """What was fitted; refused where a file of it has been cut off since it was opened."""
        self._check_files()
        return self.opened

    @property
    def shelf(self) -> LiveIndex:
        """All items to search in, after the same check."""
        self._check_files()
        return self._shelf

    @cached_property
    def _shelf(self) -> LiveIndex:
        return LiveIndex(self.opened, self.holdings.present, self.added)

    def _check_files(self) -> None:
        """Before every answer: reading beyond the end of a mapped file would kill the process."""
        for rows in (self.opened.descriptors, self.opened.features):
            check_mapped(rows)

    def rank(self, features: Floats, descriptors: Floats, k: int, where: str | None) -> Ranking:
        """The k best items, by the user's ids."""
        wanted = None if where is None else self.satisfying(where)
        found = self.rank_rows(features, descriptors, k, wanted)
        return Ranking(self.holdings.ids_of(found.ids), found.scores)

    def rank_rows(self, features: Floats, descriptors: Floats, k: int, wanted: Mask | None) -> Ranking:
        """The k best rows. wanted: (n + a,) rows that may be found; None for all."""
        return self.finite(self.shelf.rank(features, descriptors, k, wanted), "features")

    def finite(self, found: Ranking, what: str) -> Ranking:
        """A ranking by the `what` of this collection, which are damaged where a score is not a finite number."""
        self.check_finite(found.scores, what)
        return found

    def check_finite(self, values: Floats, what: str) -> None:
        """Refuse values that were computed from the `what` of this collection, where one is not a finite number."""
        if not np.isfinite(values).all():
            raise CollectionError(
                f"{self.directory} is damaged: its {what} hold values that are not finite numbers", DAMAGED
            )

    def after(self, change: Change, done: Committed) -> Version:
        """The version that a commit of our own has made of this one."""
        blocks = (self.added,) if "added" in self.__dict__ else self.blocks  # what was joined stays so
        if any(position >= self.n_fitted for position in done.gone):
            blocks = (self.added[self.holdings.places_kept(done)],)
        if change.placed is not None:
            blocks = (*blocks, change.placed)
        return replace(self, manifest=self.manifest | done.entries, holdings=self.holdings.after(done), blocks=blocks)

    def satisfying(self, where: str) -> Mask:
        """(n + a,) the rows of which a condition holds; it is of no meaning for those that have gone."""
        condition = parse_where(where)
        holdings = self.holdings
        if len(holdings):
            check_fields(condition, holdings.kinds)
        said = (*holdings.fitted.fields, *holdings.later_fields)
        return np.fromiter((condition(fields) for fields in said), np.bool_, len(said))


def open_version(snapshot: Snapshot, before: Version | None = None) -> Version:
    """A version from what was read. before: an older one, whose fit is taken over where it is the same."""
    if before is not None and before.manifest.get("fit") == snapshot.manifest.get("fit"):
        learned, loss_curve = before.opened, before.loss_curve
    else:
        learned, loss_curve = load_model(snapshot)
    _check_neighbours(snapshot, learned)
    holdings = read_item_table(snapshot.items, snapshot.manifest["shape"]["items"], str(snapshot.directory))
    return Version(snapshot.directory, snapshot.manifest, learned, loss_curve, snapshot, holdings, (snapshot.added,))


def _check_neighbours(snapshot: Snapshot, learned: FeatureModel) -> None:
    """Items that came later have nodes of the graph for neighbours."""
    if len(learned.nodes) < len(learned.features) and not np.isin(snapshot.added.neighbours, learned.nodes).all():
        raise CollectionError(f"{snapshot.directory} is damaged: an addition has neighbours that are no nodes", DAMAGED)
