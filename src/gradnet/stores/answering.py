"""Searching through a store as `gradnet.search` does in memory: the store proposes, float64 settles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gradnet.arrays import Floats, Ints, row_blocks
from gradnet.graph.neighbours import settle
from gradnet.graph.spaces import Space
from gradnet.ranking import Ranking, best_first
from gradnet.stores.store import Store

_SPARE_CANDIDATES = 16  # proposed beyond k, since a store's own arithmetic is in single precision
_FLOATS_PER_BLOCK = 1 << 22


def settled(store: Store, queries: Floats, k: int, where: str | None = None) -> Ranking:
    """The k best rows of a store, fewer where there are fewer, with scores as the collection itself has them.

    queries: (m, d), checked. Equal scores stand in the order of the ids.
    """
    per_query = (k + _SPARE_CANDIDATES) * store.shape.width
    blocks = row_blocks(len(queries), max(1, _FLOATS_PER_BLOCK // per_query))
    found = [_settled_block(store, queries[rows], k, where) for rows in blocks]
    if not found:
        return store.search(queries, k, where)
    return Ranking(np.concatenate([one.ids for one in found]), np.concatenate([one.scores for one in found]))


def _settled_block(store: Store, queries: Floats, k: int, where: str | None) -> Ranking:
    proposed = store.search(queries, k + _SPARE_CANDIDATES, where)
    if proposed.ids.size == 0:
        return proposed
    names, inverse = np.unique(proposed.ids, return_inverse=True)
    places: Ints = inverse.reshape(proposed.ids.shape)
    scores = settle(queries, store.rows(names.tolist()).vectors, places, store.shape.metric)
    best = best_first(scores, places, min(k, places.shape[1]))
    return Ranking(names[best.ids], best.scores)


class StoredRows:
    """The vectors of a store whose ids are 0, 1, 2 ..., for those who would index an array; fetched when asked for."""

    def __init__(self, store: Store, n: int) -> None:
        self._store, self.shape = store, (n, store.shape.width)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Floats:
        return self.take(np.arange(len(self))[rows], 0)

    def take(self, ids: Ints, axis: int) -> Floats:
        """Rows by number, as an array has it; axis: 0."""
        del axis
        names, places = np.unique(ids, return_inverse=True)
        return self._store.rows(names.tolist()).vectors[places.reshape(ids.shape)]


@dataclass(frozen=True)
class StoredSpace:
    """A store whose ids are 0 to n - 1, as query feature expansion wants a database.

    known: the answer to the search that comes next, where it was asked before.
    """

    store: Store
    n: int
    known: Ranking | None = None

    def __len__(self) -> int:
        return self.n

    @property
    def database(self) -> Floats:
        return cast("Floats", StoredRows(self.store, self.n))

    def roughly_nearest(self, queries: Floats, k: int) -> Ranking:
        """The k best rows for every query."""
        return settled(self.store, queries, k) if self.known is None else self.known

    def distances(self, queries: Floats, found: Ranking) -> Floats:
        """(m, k) Euclidean distances of the queries to rows that were found."""
        if self.store.shape.metric == "euclidean":
            return -found.scores
        return -settle(queries, self.database, found.ids, "euclidean")

    def answering(self, known: Ranking) -> StoredSpace:
        """With an answer at hand."""
        return replace(self, known=known)

    def as_space(self) -> Space:
        """What passes for a space wherever one is only searched."""
        return cast("Space", self)
