"""Fitted items, less those that were removed, and items that were added later: searched together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from manifind.arrays import Floats, Ints, Mask, check_descriptors
from manifind.errors import InputError
from manifind.index.exact import nearest_among
from manifind.index.vector_index import EXACT_UP_TO, ExactIndex
from manifind.ranking import Ranking, best_first
from manifind.search.feature_model import FeatureModel, check_k


@dataclass(frozen=True)
class AddedItems:
    """Items beside the fitted ones.

    descriptors: (a, d), preprocessed. lengths: (a, 1) what they were divided by. features: (a, D), unit rows.
    neighbours, distances: (a, k) the nearest fitted items and how far they are: the edges of the item.
    """

    descriptors: Floats
    lengths: Floats
    features: Floats
    neighbours: Ints
    distances: Floats

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(
            self.descriptors[rows], self.lengths[rows], self.features[rows], self.neighbours[rows], self.distances[rows]
        )


def join(blocks: Sequence[AddedItems]) -> AddedItems:
    """All items of some blocks, at least one, in order."""
    return AddedItems(
        np.concatenate([block.descriptors for block in blocks]),
        np.concatenate([block.lengths for block in blocks]),
        np.concatenate([block.features for block in blocks]),
        np.concatenate([block.neighbours for block in blocks]),
        np.concatenate([block.distances for block in blocks]),
    )


def nobody(d: int, D: int, k: int) -> AddedItems:
    """No items at all."""
    descriptors, lengths, features, distances = (np.empty((0, width), dtype=np.float32) for width in (d, 1, D, k))
    return AddedItems(descriptors, lengths, features, np.empty((0, k), dtype=np.int64), distances)


def place(learned: FeatureModel, X: Any, k: int) -> AddedItems:
    """Any descriptors, (a, d), as items beside the fitted ones, each with k neighbours among those.

    Its features are what `Learned.transform` gives a query: they depend on what was fitted, and on no other item
    that came later, so that whoever goes again changes nothing for those who stay.
    """
    checked = check_descriptors(X, "X", learned.descriptors.shape[1])
    prepared, lengths = learned.preprocessor.with_lengths(checked)
    near = learned.node_neighbours(prepared, k)
    return AddedItems(prepared, lengths, learned.features_of(prepared), near.ids, near.distances)


@dataclass(frozen=True)
class LiveIndex:
    """What can be found. Row r < n is the fitted item r, and row n + j the j-th that came later.

    learned: the fitted items; they go on placing queries even when they are gone. present: (n,) which of them can
    still be found. added: those that came later.
    """

    learned: FeatureModel
    present: Mask
    added: AddedItems

    def __len__(self) -> int:
        return self._n_present + len(self.added)

    @cached_property
    def _n_present(self) -> int:
        return int(np.count_nonzero(self.present))

    @cached_property
    def rows(self) -> Ints:
        """The rows that can be found, rising."""
        n = len(self.present)
        return np.concatenate([np.flatnonzero(self.present), np.arange(n, n + len(self.added))])

    def rank(self, features: Floats, descriptors: Floats, k: int, wanted: Mask | None = None) -> Ranking:
        """The k best rows for queries, by cosine of features, (m, D), as `Learned.rank` has it.

        descriptors: (m, d), preprocessed. wanted: (n + a,) rows that may be found; None for all. Where fewer than k
        are wanted, all of those.
        """
        if wanted is None:
            k = _checked(k, len(self))
            fitted, later = self.present, np.arange(len(self.added))
        else:
            n = len(self.present)
            fitted, later = wanted[:n] & self.present, np.flatnonzero(wanted[n:])
            k = check_k(k, int(fitted.sum()) + len(later))
        found = self._rank_fitted(features, descriptors, min(k, int(fitted.sum())), fitted, wanted is None)
        if not len(later):
            return found
        extra = nearest_among(features, self.added.features, later, min(k, len(later)), "cosine")
        ids = np.hstack([found.ids, extra.ids + len(self.present)])
        return best_first(np.hstack([found.scores, extra.scores]), ids, k)

    def features(self, rows: Ints) -> Floats:
        """(m, D) of some rows."""
        return self._gathered(rows, "features")

    def descriptors(self, rows: Ints) -> Floats:
        """(m, d) of some rows, preprocessed."""
        return self._gathered(rows, "descriptors")

    def _gathered(self, rows: Ints, name: str) -> Floats:
        fitted, added = getattr(self.learned, name), getattr(self.added, name)
        later = rows >= len(self.present)
        if not later.any():
            return np.asarray(fitted[rows])
        out = np.empty((len(rows), fitted.shape[1]), dtype=np.float32)
        out[~later], out[later] = fitted[rows[~later]], added[rows[later] - len(self.present)]
        return out

    def _rank_fitted(self, features: Floats, descriptors: Floats, k: int, fitted: Mask, everyone: bool) -> Ranking:
        if k == 0:
            nothing = np.empty((len(features), 0))
            return Ranking(nothing.astype(np.int64), nothing.astype(np.float32))
        if not everyone:
            return self.learned.rank(features, descriptors, k, fitted)
        if self._all_present:
            return self.learned.rank(features, descriptors, k)
        if self._kept_apart is not None:
            found = self._kept_apart.nearest(features, k)
            return Ranking(self.rows[found.ids], found.scores)
        return self.learned.rank(features, descriptors, k, fitted)

    @cached_property
    def _all_present(self) -> bool:
        return self._n_present == len(self.present)

    @cached_property
    def _kept_apart(self) -> ExactIndex | None:
        """Those that are still there, copied once rather than for every search; None where there are many."""
        rows = np.flatnonzero(self.present)
        if len(rows) > EXACT_UP_TO or not self.learned.inside.all():
            return None
        return ExactIndex(self.learned.features[rows], "cosine")


def _checked(k: int, n_items: int) -> int:
    if n_items == 0:
        raise InputError("there is nothing to find: every item has been removed", "add some first")
    return check_k(k, n_items)
