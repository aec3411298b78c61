"""A new fit under items that went on changing: who came or went meanwhile comes or goes in it, too."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np

from manifind.arrays import Floats
from manifind.collection.format import DAMAGED, DATABASE, RowSum, entry, signed_rows
from manifind.collection.reader import read_array
from manifind.collection.rows import read_additions, read_items
from manifind.collection.transactions import RefittedMeanwhileError
from manifind.collection.version import Version
from manifind.collection.writer import Tables
from manifind.errors import CollectionError
from manifind.search.feature_model import FeatureModel
from manifind.search.live_index import place


def original_descriptors(version: Version) -> Floats:
    """(n, d) the descriptors of the items that are there, as they were given, to float32 rounding."""
    fitted, later = np.flatnonzero(version.shelf.present), version.added
    d = version.learned.descriptors.shape[1]
    lengths = read_array(version.snapshot, "lengths", (version.n_fitted, 1))
    out = np.empty((len(fitted) + len(later), d), dtype=np.float32)
    restore = version.learned.preprocessor.restore
    out[: len(fitted)] = restore(version.learned.descriptors[fitted], lengths[fitted])
    out[len(fitted) :] = restore(later.descriptors, later.lengths)
    if not np.isfinite(out).all():
        raise CollectionError(f"{version.directory} is damaged: a descriptor or its length is no number", DAMAGED)
    return out


def merge_refit(version: Version, learned: FeatureModel, n_neighbors: int) -> Callable[[sqlite3.Connection], Tables]:
    """Whom a new fit of a version holds, once it is asked inside the transaction that commits it.

    learned: fitted on the version's items in their order. Items that came meanwhile are placed beside it, those
    that went are left out.
    """

    def tables(database: sqlite3.Connection) -> Tables:
        if entry(database, "fit") != version.manifest["fit"]:
            raise RefittedMeanwhileError(
                f"{version.directory} was refitted meanwhile by another process", "open it again"
            )
        where, shape, total = str(version.directory / DATABASE), version.manifest["shape"], RowSum()
        items = read_items(database, where, total)
        added = read_additions(database, where, total, shape, items)
        signed_rows(database, version.directory / DATABASE, total)
        now = dict(zip(items.positions.tolist(), zip(items.ids, items.metadata, strict=True), strict=True))
        fitted, next_id = version.holdings.positions.tolist(), int(entry(database, "next_id"))
        kept: list[tuple[int, Any, str | None]] = [
            (row, *now[position]) for row, position in enumerate(fitted) if position in now
        ]
        late = np.setdiff1d(items.positions, version.holdings.positions)
        if not len(late):
            return Tables(kept, None, next_id)
        among_added = np.searchsorted(items.positions[items.positions >= shape["items"]], late)
        originals = version.learned.preprocessor.restore(added.descriptors[among_added], added.lengths[among_added])
        placed = place(learned, originals, min(n_neighbors, len(learned.nodes)))
        new = [(len(fitted) + row, *now[position]) for row, position in enumerate(late.tolist())]
        return Tables(kept + new, placed, next_id)

    return tables
