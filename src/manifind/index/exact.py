"""Exact nearest neighbours by faiss, settled in double precision, and k-means.

faiss computes in float32, where equal distances come out unequal in the last bits, and a graph built
from them would depend on the order of the database and on the size of a block. So faiss only proposes
a few more candidates than needed; their distances are computed again in float64, rounded to float32,
and ordered with ties by position. Where the proposal may have cut through a tie, every distance of
that query is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from manifind.arrays import Doubles, Floats, Ints, Mask, row_blocks
from manifind.checkpoint import NO_CHECKPOINT, Checkpoint
from manifind.errors import GraphError
from manifind.progress import Listener, Progress, ignore
from manifind.ranking import Ranking, best_first
from manifind.text import are, count


class RowMatrix(Protocol):
    """A matrix whose rows are read by number: an array, codes that are decoded, or a table of a store."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d)."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any:
        """Some rows, by a slice, a mask or their numbers."""

    def take(self, ids: Ints, /, axis: Literal[0]) -> Any:
        """(..., d) rows by number."""


@cache
def has_faiss() -> bool:
    """Whether faiss is installed; hosts with a GPU may do without."""
    return find_spec("faiss") is not None


Metric = Literal["euclidean", "cosine"]

SPARE_CANDIDATES = 16  # proposed beyond k, so that ties at rank k rarely need the full computation
ROUNDING = 2e-6  # error allowed to a proposal in float32, relative to the lengths of the vectors
_ROWS_PER_REPORT = 4096
_ROWS_PER_PART = 1 << 16  # copied at a time where only some may be found
_DOUBLES_PER_BLOCK = 1 << 22  # 32 MB of float64 at a time


class Neighbours(NamedTuple):
    """ids: (N, k) positions, nearest first. distances: (N, k) Euclidean, rising."""

    ids: Ints
    distances: Floats


def graph_neighbours(
    X: Floats,
    k: int,
    listener: Listener = ignore,
    search: Callable[[Floats, int], Ranking] | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Neighbours:
    """The k nearest others of every row of X; ties by position, the row itself removed by its own number.

    listener: hears of the stage "graph" how many rows are done. search: finds the best rows of X by negative
    distance for some queries; None searches exactly. checkpoint: rows that it has are not searched again.
    """
    n = len(X)
    if n < 2:
        raise GraphError(
            "there is only 1 distinct item: all rows are equal once they are preprocessed",
            "a graph needs at least two different items: check what has described them",
        )
    if n < k + 1:
        raise GraphError(
            f"n_neighbors = {k}, but there {are(n)} only {count(n, 'distinct item')}, "
            f"so each has {count(n - 1, 'other')}",
            f"set n_neighbors to at most {n - 1}",
        )
    ids, distances = np.empty((n, k), dtype=np.int64), np.empty((n, k), dtype=np.float32)
    done = _restored(checkpoint, ids, distances)
    for rows in row_blocks(n, _ROWS_PER_REPORT):
        if rows.stop <= done:
            continue
        listener(Progress("graph", rows.start, n))
        found = search(X[rows], k + 1) if search else nearest(X[rows], X, k + 1, "euclidean")
        others = are_others(found.ids, np.arange(rows.start, rows.stop))
        ids[rows] = found.ids[others].reshape(-1, k)
        distances[rows] = -found.scores[others].reshape(-1, k)
        if checkpoint.due():
            checkpoint.save("graph", {"ids": ids[: rows.stop], "distances": distances[: rows.stop]})
    return Neighbours(ids, distances)


def _restored(checkpoint: Checkpoint, ids: Ints, distances: Floats) -> int:
    """How many rows the checkpoint has filled in."""
    saved = checkpoint.load("graph")
    if saved is None:
        return 0
    done = len(saved["ids"])
    ids[:done], distances[:done] = saved["ids"], saved["distances"]
    return done


def are_others(ids: Ints, own: Ints) -> Mask:
    """(m, k) which of the rows found are not the row itself, own: (m,); all but one in each row.

    A row crowded out by others at distance zero, or not found by an approximate search: the last stands for it.
    """
    is_self = ids == own[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    return np.asarray(~is_self)


def nearest(queries: Floats, database: Floats, k: int, metric: Metric, longest: float | None = None) -> Ranking:
    """The k best database rows for every query, by negative Euclidean distance or by inner product.

    metric: "cosine" takes rows to have unit length already. The answer for a query does not depend
    on the other queries. longest: `longest_square` of the database, for callers who search it often, since
    computing it takes a pass over all rows. Returns (m, k); scores are negative distances for "euclidean".
    """
    k = int(k)  # faiss refuses NumPy's integers
    candidates = k + SPARE_CANDIDATES
    if is_small(len(database), k):
        return nearest_of_all(queries, database, k, metric)
    proposed = _propose(queries, database, candidates, metric)
    settled = settle(queries, database, proposed, metric)
    best = best_first(settled, proposed, k)
    longest = longest_square(database) if longest is None else longest
    doubtful = _may_cut_a_tie(best.scores[:, -1], settled.min(axis=1), queries, longest, metric)
    if doubtful.any():
        best.ids[doubtful], best.scores[doubtful] = nearest_of_all(queries[doubtful], database, k, metric)
    return best


def is_small(n: int, k: int) -> bool:
    """Whether comparing all pairs in double precision costs little beside a proposal of k and some more."""
    return 4 * (k + SPARE_CANDIDATES) >= n


def nearest_among(queries: Floats, database: RowMatrix, rows: Ints, k: int, metric: Metric) -> Ranking:
    """As `nearest`, but only some rows of the database may be found: rising positions, at least k."""
    ids = np.empty((len(queries), 0), dtype=np.int64)
    scores = np.empty((len(queries), 0), dtype=np.float32)
    for part in row_blocks(len(rows), _ROWS_PER_PART):
        some = rows[part]
        found = nearest(queries, database[some], min(k, len(some)), metric)
        ids, scores = np.hstack([ids, some[found.ids]]), np.hstack([scores, found.scores])
        ids, scores = best_first(scores, ids, min(k, ids.shape[1]))
    return Ranking(ids, scores)


def _may_cut_a_tie(last_kept: Floats, worst_proposed: Floats, queries: Floats, longest: float, metric: Metric) -> Mask:
    """(m,) whether something that was not proposed could be as good as the last that is kept."""
    q, x = _squared_lengths(queries), longest
    if metric == "cosine":
        return np.asarray(last_kept - worst_proposed <= ROUNDING * np.sqrt(q * x))
    gap = worst_proposed.astype(np.float64) ** 2 - last_kept.astype(np.float64) ** 2
    return np.asarray(gap <= ROUNDING * (q + x))  # faiss may expand |q - x|^2: the error grows with the lengths


def longest_square(X: Floats) -> float:
    """The squared length of the longest row, which bounds the error of a search in float32."""
    return float(_squared_lengths(X).max())


def _squared_lengths(X: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", X, X))


def _propose(queries: Floats, database: Floats, candidates: int, metric: Metric) -> Ints:
    if not has_faiss():
        return _propose_by_products(queries, database, candidates, metric)
    import faiss  # here, so that it comes after torch wherever both are used

    kind = faiss.METRIC_L2 if metric == "euclidean" else faiss.METRIC_INNER_PRODUCT
    ids: Ints = faiss.knn(queries, database, candidates, metric=kind)[1]
    return ids


def _propose_by_products(queries: Floats, database: Floats, candidates: int, metric: Metric) -> Ints:
    """As faiss would, by NumPy's matrix product: for hosts that have none."""
    ids = np.empty((len(queries), candidates), dtype=np.int64)
    half = np.float32(0) if metric == "cosine" else _squared_lengths(database) / 2
    for rows in row_blocks(len(queries), max(1, _DOUBLES_PER_BLOCK // len(database))):
        scores = queries[rows] @ database.T - half
        ids[rows] = np.argpartition(-scores, candidates - 1, axis=1)[:, :candidates]
    return ids


def settle(queries: Floats, database: RowMatrix, ids: Ints, metric: Metric) -> Floats:
    """Scores of the proposed pairs, computed in float64 and rounded once."""
    at_once = max(1, _DOUBLES_PER_BLOCK // (ids.shape[1] * queries.shape[1]))
    if len(queries) <= at_once:
        return _settle_block(queries, database, ids, metric)
    scores = np.empty(ids.shape, dtype=np.float32)
    for rows in row_blocks(len(queries), at_once):
        scores[rows] = _settle_block(queries[rows], database, ids[rows], metric)
    return scores


def _settle_block(queries: Floats, database: RowMatrix, ids: Ints, metric: Metric) -> Floats:
    x = database.take(ids, axis=0).astype(np.float64)
    if metric == "cosine":
        scores = np.matmul(x, queries[:, :, None].astype(np.float64))[:, :, 0]
    else:
        x -= queries[:, None]
        scores = -np.sqrt(np.einsum("mcd,mcd->mc", x, x))
    return np.asarray(scores, dtype=np.float32)


def nearest_of_all(queries: Floats, database: Floats, k: int, metric: Metric) -> Ranking:
    """As `nearest`, from every pair, a block of queries at a time."""
    m, n = len(queries), len(database)
    ids, scores = np.empty((m, k), dtype=np.int64), np.empty((m, k), dtype=np.float32)
    for rows in row_blocks(m, max(1, _DOUBLES_PER_BLOCK // n)):
        block = all_scores(queries[rows].astype(np.float64), database, metric)
        ids[rows] = np.argsort(-block, axis=1, kind="stable")[:, :k]  # stable: ties by position
        scores[rows] = np.take_along_axis(block, ids[rows], 1)
    return Ranking(ids, scores)


def all_scores(q: Doubles, database: Floats, metric: Metric) -> Floats:
    """(m, n) scores of every pair, as `nearest` has them. q: (m, d), few enough for m x n numbers."""
    scores = np.empty((len(q), len(database)), dtype=np.float32)
    for columns in row_blocks(len(database), max(1, _DOUBLES_PER_BLOCK // database.shape[1])):
        x = database[columns].astype(np.float64)
        scores[:, columns] = q @ x.T if metric == "cosine" else -cdist(q, x)
    return scores


_MOST_POINTS_PER_CENTRE = 256  # more do not move the centres; keeps the cost linear in the centres


def kmeans_sample(X: Floats, n: int, seed: int) -> Floats:
    """The rows that n centres of k-means are found from: all, or a random part of many, in their order."""
    some = np.random.default_rng(seed).permutation(len(X))[: n * _MOST_POINTS_PER_CENTRE]
    return X[np.sort(some)]


def kmeans(X: Floats, n: int, rounds: int, seed: int) -> Floats:
    """(n, d) centres of k-means over the rows of X, by faiss."""
    import faiss

    found = faiss.Kmeans(
        X.shape[1],
        n,
        niter=rounds,
        seed=seed,
        min_points_per_centroid=1,  # otherwise faiss writes to the terminal about small sets
        max_points_per_centroid=_MOST_POINTS_PER_CENTRE,
    )
    found.train(X)
    return np.ascontiguousarray(found.centroids, dtype=np.float32)
