"""Fitted items, less those that were removed, and items that were added later: searched together."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from threading import Lock
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats, Ints, Mask, check_descriptors
from manifind.errors import InputError
from manifind.index.exact import RowMatrix, best_of_parts, nearest_among
from manifind.index.vector_index import EXACT_UP_TO, ExactIndex, make_index
from manifind.ranking import Ranking, empty_ranking
from manifind.search.feature_model import USUAL_K, FeatureModel, check_k

_T = TypeVar("_T", bound=np.generic)


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
        return type(self)(*(getattr(self, one.name)[rows] for one in fields(self)))

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        """All items of some blocks, at least one, in order."""
        return cls(*(np.concatenate([getattr(block, one.name) for block in blocks]) for one in fields(cls)))


def place(learned: FeatureModel, X: Any, k: int) -> AddedItems:
    """Any descriptors, (a, d), as items beside the fitted ones, each with k neighbours among those.

    Its features are what `FeatureModel.transform` gives a query. They depend on what was fitted and on no other added
    item, so that removing one changes nothing for the others.
    """
    checked = check_descriptors(X, "X", learned.descriptors.shape[1])
    prepared, lengths = learned.preprocessor.with_lengths(checked)
    near = learned.node_neighbours(prepared, k)
    return AddedItems(prepared, lengths, learned.features_of(prepared).features, near.ids, near.distances)


class RowNumbers(ABC):
    """How the items of a collection are numbered: the only place that knows.

    Row r < n is the fitted item r, whether it is still there or not; row n + j is the j-th added item.
    present: (n,) which fitted items are still there.
    """

    present: Mask

    @property
    @abstractmethod
    def n_added(self) -> int:
        """How many items were added after the fit."""

    def __len__(self) -> int:
        return self.n_present + self.n_added

    @property
    def n_fitted(self) -> int:
        """How many items were fitted, those that were removed since included."""
        return len(self.present)

    @cached_property
    def n_present(self) -> int:
        """How many of the fitted items are still there."""
        return int(np.count_nonzero(self.present))

    @cached_property
    def rows(self) -> Ints:
        """The rows of the items that are there, rising."""
        n = self.n_fitted
        return np.concatenate([np.flatnonzero(self.present), np.arange(n, n + self.n_added)])

    def added_place(self, row: int | None) -> int | None:
        """The place of a row among the added items; None for a fitted one, or for none."""
        return None if row is None or row < self.n_fitted else row - self.n_fitted

    def are_added(self, rows: Ints) -> Mask:
        """Which rows are those of added items."""
        return rows >= self.n_fitted

    def gather(self, rows: Ints, fitted: NDArray[_T] | RowMatrix, added: NDArray[_T]) -> NDArray[_T]:
        """The values of rows, in any shape, from those of the fitted and those of the added items."""
        late = self.are_added(rows)
        if not late.any():
            return np.asarray(fitted[rows])
        out: NDArray[_T] = np.empty((*rows.shape, *fitted.shape[1:]), dtype=added.dtype)
        out[~late], out[late] = fitted[rows[~late]], added[rows[late] - self.n_fitted]
        return out


@dataclass(frozen=True)
class LiveIndex(RowNumbers):
    """What can be found, by rows as `RowNumbers` has them.

    learned: the fitted items; removed ones still help to place queries. present: (n,) which of them can be found.
    added: items that were added later.
    """

    learned: FeatureModel
    present: Mask
    added: AddedItems
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def n_added(self) -> int:
        return len(self.added)

    def rank(self, features: Floats, descriptors: Floats, k: int, allowed: Mask | None = None) -> Ranking:
        """The k best rows for queries, by cosine of features, (m, D), as `FeatureModel.rank` has it.

        descriptors: (m, d), preprocessed. allowed: (n + a,) rows that may be found; None for all. Where fewer than k
        may be found, all of those.
        """
        fitted, later, k = self._allowed(k, allowed)
        found = self._rank_fitted(features, descriptors, min(k, int(fitted.sum())), fitted, allowed is None)
        if not len(later):
            return found
        extra = nearest_among(features, self.added.features, later, min(k, len(later)), "cosine")
        return best_of_parts([found, Ranking(extra.ids + self.n_fitted, extra.scores)], len(features), k)

    def rank_by_descriptors(self, descriptors: Floats, k: int, allowed: Mask | None = None) -> Ranking:
        """The k best rows for queries by plain similarity of preprocessed descriptors, (m, d); scores are cosines."""
        k = self._allowed(k, allowed)[2]
        if k == 0:
            return empty_ranking(len(descriptors))
        with self._lock:  # built once, and not by every thread that asks at the same time
            index = self._descriptor_index
        found = index.nearest(descriptors, k, None if allowed is None else allowed[self.rows])
        with np.errstate(over="ignore", invalid="ignore"):  # damaged descriptors are reported by the collection
            cosines = np.asarray(1 - found.scores**2 / 2, np.float32)  # of unit rows
        return Ranking(self.rows[found.ids], cosines)

    def features(self, rows: Ints) -> Floats:
        """(m, D) of some rows."""
        return self.gather(rows, self.learned.features, self.added.features)

    def descriptors(self, rows: Ints) -> Floats:
        """(m, d) of some rows, preprocessed."""
        if len(self.learned.descriptors) != self.n_fitted:  # only those of the nodes, in codes
            hint = "search by features, or use the collection that it was exported from"
            raise InputError("this collection is compressed: it has no descriptors of all items", hint)
        return self.gather(rows, self.learned.descriptors, self.added.descriptors)

    def _allowed(self, k: int, allowed: Mask | None) -> tuple[Mask, Ints, int]:
        """The fitted and the added items that may be found, and how many of them are wanted."""
        if allowed is None and not len(self):
            raise InputError("there is nothing to find: every item has been removed", "add some first")
        fitted, later = self.present, np.arange(self.n_added)
        if allowed is not None:
            fitted, later = allowed[: self.n_fitted] & fitted, np.flatnonzero(allowed[self.n_fitted :])
        return fitted, later, check_k(k, int(fitted.sum()) + len(later))

    def _rank_fitted(self, features: Floats, descriptors: Floats, k: int, fitted: Mask, everyone: bool) -> Ranking:
        if k == 0:
            return empty_ranking(len(features))
        if everyone and self.n_present == self.n_fitted:
            return self.learned.rank(features, descriptors, k)
        if everyone and self._present_index is not None:
            found = self._present_index.nearest(features, k)
            return Ranking(self.rows[found.ids], found.scores)
        return self.learned.rank(features, descriptors, k, fitted)

    @cached_property
    def _present_index(self) -> ExactIndex | None:
        """The fitted items that are still there, copied once rather than for every search; None where many are."""
        rows = np.flatnonzero(self.present)
        if len(rows) > EXACT_UP_TO or not self.learned.inside.all():
            return None
        return ExactIndex(self.learned.features[rows], "cosine")

    @cached_property
    def _descriptor_index(self) -> ExactIndex:
        return make_index(self.descriptors(self.rows), "euclidean", self.learned.queries.index, USUAL_K)
