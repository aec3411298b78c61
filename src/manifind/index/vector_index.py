"""Vectors that can be searched, `VectorIndex`, and its kinds on a CPU: exact, or through an inverted file."""

from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from manifind.arrays import Floats, Ints, Mask
from manifind.index.exact import Metric, RowMatrix, has_faiss, kmeans, longest_square, nearest, nearest_among, settle
from manifind.index.ivf import CODES, FEWEST, InvertedFile, Quality
from manifind.ranking import Ranking

EXACT_UP_TO = 20_000
"""Items that "auto" searches exactly: there is nothing to build, and nothing to miss."""

_LARGEST_SQ8 = 1 << 31  # bytes of codes; beyond, "auto" takes product quantisation
_MOST_OF_ALL = 8  # a ranking of more than this part of the database is made exactly


class VectorIndex(Protocol):
    """The rows of a database under a metric, as they are searched."""

    @property
    def database(self) -> RowMatrix:
        """The rows themselves."""

    def __len__(self) -> int: ...

    def nearest(self, queries: Floats, k: int, allowed: Mask | None = None) -> Ranking:
        """The k best rows for every query, scores and order as `exact.nearest` has them.

        allowed: (n,) rows that may be found, at least k; None for all.
        """

    def roughly_nearest(self, queries: Floats, k: int) -> Ranking:
        """As `nearest`, but fine codes are taken at their word: for weights, where a hair does not matter."""

    def distances(self, queries: Floats, found: Ranking) -> Floats:
        """(m, k) Euclidean distances of the queries to rows that `roughly_nearest` has found."""


class ExactIndex:
    """Every row is compared with every query."""

    compressed: InvertedFile | None = None
    """The codes, where the search is not exact."""

    def __init__(self, database: RowMatrix, metric: Metric) -> None:
        self.database, self.metric = database, metric

    def __len__(self) -> int:
        return len(self.database)

    def nearest(self, queries: Floats, k: int, allowed: Mask | None = None) -> Ranking:
        if allowed is not None:
            return nearest_among(queries, self.database, np.flatnonzero(allowed), k, self.metric)
        return nearest(queries, to_array(self.database), k, self.metric, self._longest)

    def roughly_nearest(self, queries: Floats, k: int) -> Ranking:
        return self.nearest(queries, k)

    def distances(self, queries: Floats, found: Ranking) -> Floats:
        if self.metric == "euclidean":
            return -found.scores
        # Distances from cosines near 1 would be mostly rounding.
        return -settle(queries, self.database, found.ids, "euclidean")

    @cached_property
    def _longest(self) -> float:
        return longest_square(to_array(self.database))

    @property
    def quality(self) -> Quality | None:
        """Recall and size of the codes; None where the search is exact."""
        return None if self.compressed is None else self.compressed.quality


class IVFIndex(ExactIndex):
    """An inverted file of codes proposes rows; long rankings, and those among few rows, are made exactly."""

    def __init__(self, database: RowMatrix, metric: Metric, compressed: InvertedFile) -> None:
        super().__init__(database, metric)
        self.compressed: InvertedFile = compressed

    def nearest(self, queries: Floats, k: int, allowed: Mask | None = None) -> Ranking:
        n_allowed = len(self) if allowed is None else int(allowed.sum())
        are_few = allowed is not None and n_allowed <= EXACT_UP_TO
        if are_few or k > n_allowed // _MOST_OF_ALL:
            return super().nearest(queries, k, allowed)
        return self.compressed.nearest(queries, k, allowed)

    def roughly_nearest(self, queries: Floats, k: int) -> Ranking:
        if self.compressed.quality.codes != "sq8" or k > len(self) // _MOST_OF_ALL:
            return self.nearest(queries, k)
        return self.compressed.nearest_by_codes(queries, k)


class Engine:
    """What computes exact searches and k-means: the CPU, or in a subclass a GPU."""

    is_always_exact = not has_faiss()
    """Whether "auto" never compresses."""

    def index(self, database: Floats, metric: Metric) -> ExactIndex:
        """An exact index over the rows."""
        return ExactIndex(database, metric)

    def kmeans(self, X: Floats, n: int, rounds: int, seed: int) -> Floats:
        """(n, d) centres of k-means over the rows of X."""
        return kmeans(X, n, rounds, seed)


CPU_ENGINE = Engine()


def make_index(
    database: RowMatrix,
    metric: Metric,
    index: str,
    k: int,
    ready: InvertedFile | None = None,
    engine: Engine = CPU_ENGINE,
) -> ExactIndex:
    """An index over some rows.

    index: "exact", "sq8" or "pq"; "auto" chooses by size. Too few rows to learn codes from are searched exactly.
    k: how many neighbours the recall is measured for. ready: codes of these rows that were made before.
    """
    codes = index
    if index == "auto":
        n, d = database.shape
        is_exact = engine.is_always_exact or n <= EXACT_UP_TO
        codes = "exact" if is_exact else "sq8" if n * d <= _LARGEST_SQ8 else "pq"
    if ready is None and codes in CODES and len(database) >= FEWEST[codes]:
        ready = InvertedFile(to_array(database), metric, codes, k)
    if ready is not None:
        return IVFIndex(database, metric, ready)
    return engine.index(to_array(database), metric)


class DecodedRows:
    """The rows of an inverted file as its codes have them, decoded when they are read."""

    def __init__(self, index: InvertedFile, d: int) -> None:
        self._index, self.shape = index, (len(index), d)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Floats:
        return self._index.decoded(np.arange(len(self))[rows])

    def take(self, ids: Ints, axis: int) -> Floats:
        return self._index.decoded(ids.ravel()).reshape(*ids.shape, self.shape[1])


def to_array(rows: RowMatrix) -> Floats:
    """All rows as an array."""
    return np.asarray(rows[:])


def write_faiss(file: Path, features: Floats, ids: Ints) -> None:
    """An exact index by inner product over unit rows, which are found by their ids."""
    import faiss

    index = faiss.IndexIDMap2(faiss.IndexFlatIP(features.shape[1]))
    index.add_with_ids(np.ascontiguousarray(features), ids)
    faiss.write_index(index, str(file))
