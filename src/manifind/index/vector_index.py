"""Vectors that can be searched: exactly, or through an inverted file where there are many."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from manifind.arrays import Floats, Ints, Mask
from manifind.index.exact import Metric, current_backend, has_faiss, longest_square, nearest, nearest_among, settle
from manifind.index.ivf import CODES, FEWEST, InvertedFile, Quality
from manifind.ranking import Ranking

EXACT_UP_TO = 20_000
"""Items that "auto" searches exactly: there is nothing to build, and nothing to miss."""

_LARGEST_SQ8 = 1 << 31  # bytes of codes; beyond, "auto" takes product quantisation
_MOST_OF_ALL = 8  # a ranking of more than this part of the database is made exactly


class DecodedRows:
    """What the codes of an index say of its rows, for those who would index an array; decoded when it is asked for."""

    def __init__(self, index: InvertedFile, d: int) -> None:
        self._index, self.shape = index, (len(index), d)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Floats:
        return self._index.decoded(np.arange(len(self))[rows])

    def take(self, ids: Ints, axis: int) -> Floats:
        """Rows by number, as an array has it; axis: 0."""
        del axis
        return self._index.decoded(ids.ravel()).reshape(*ids.shape, self.shape[1])

    @classmethod
    def of(cls, index: InvertedFile, d: int) -> Floats:
        """Such rows, which pass for an array wherever only some are asked for at a time."""
        return cast("Floats", cls(index, d))


def to_array(rows: Floats) -> Floats:
    """All of them as an array."""
    return np.asarray(rows[:])


def are_decoded(rows: Floats) -> bool:
    """Whether these rows are only what codes say."""
    return not isinstance(rows, np.ndarray)


class VectorIndex:
    """The rows of a database under a metric, and how they are searched.

    index: "exact", "sq8" or "pq"; "auto" chooses by size. Too few rows to learn codes from are searched
    exactly. k: how many neighbours the recall is measured for.
    ready: an index over these rows that was made before; None makes one where `index` asks for it.
    """

    def __init__(self, database: Floats, metric: Metric, index: str, k: int, ready: InvertedFile | None = None) -> None:
        self.database, self.metric = database, metric
        codes = _codes(database) if index == "auto" else index
        if index == "auto" and (current_backend() is not None or not has_faiss()):
            codes = "exact"  # a GPU finds all of them as quickly
        self._compressed = ready
        if ready is None and codes in CODES and len(database) >= FEWEST[codes]:
            self._compressed = InvertedFile(to_array(database), metric, codes, k)

    def __len__(self) -> int:
        return len(self.database)

    def nearest(self, queries: Floats, k: int, allowed: Mask | None = None) -> Ranking:
        """The k best rows for every query: scores and order as `graph.neighbours.nearest` has them.

        allowed: (n,) rows that may be found, at least k; None for all. Few of them are searched exactly.
        """
        n_allowed = len(self) if allowed is None else int(allowed.sum())
        exactly = self._compressed is None or k > n_allowed // _MOST_OF_ALL
        if allowed is not None and (exactly or n_allowed <= EXACT_UP_TO):
            return nearest_among(queries, self.database, np.flatnonzero(allowed), k, self.metric)
        if self._compressed is None or exactly:
            return nearest(queries, to_array(self.database), k, self.metric, self._longest)
        return self._compressed.nearest(queries, k, allowed)

    def roughly_nearest(self, queries: Floats, k: int) -> Ranking:
        """As `nearest`, but fine codes are taken at their word: for weights, where a hair does not matter."""
        compressed = self._compressed
        if compressed is None or compressed.quality.codes != "sq8" or k > len(self) // _MOST_OF_ALL:
            return self.nearest(queries, k)
        return compressed.nearest_by_codes(queries, k)

    def distances(self, queries: Floats, found: Ranking) -> Floats:
        """(m, k) Euclidean distances of the queries to rows that `roughly_nearest` has found."""
        if self.metric == "euclidean":
            return -found.scores
        # Distances from cosines near 1 would be mostly rounding.
        return -settle(queries, self.database, found.ids, "euclidean")

    @cached_property
    def _longest(self) -> float:
        return longest_square(to_array(self.database))

    @property
    def compressed(self) -> InvertedFile | None:
        """The index, where the search is not exact."""
        return self._compressed

    @property
    def quality(self) -> Quality | None:
        """Recall and size of the compressed index; None where the search is exact."""
        return None if self._compressed is None else self._compressed.quality


def _codes(database: Floats) -> str:
    if len(database) <= EXACT_UP_TO:
        return "exact"
    return "sq8" if database.shape[0] * database.shape[1] <= _LARGEST_SQ8 else "pq"


def write_faiss(file: Path, features: Floats, ids: Ints) -> None:
    """An exact index by inner product over unit rows, which are found by their ids."""
    import faiss

    index = faiss.IndexIDMap2(faiss.IndexFlatIP(features.shape[1]))
    index.add_with_ids(np.ascontiguousarray(features), ids)
    faiss.write_index(index, str(file))
