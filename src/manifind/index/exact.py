"""Exact nearest neighbours by faiss, settled in double precision, and k-means.

faiss computes in float32, where equal distances come out unequal in the last bits, and a graph built
from them would depend on the order of the database and on the size of a block. So faiss only proposes
a few more candidates than needed; their distances are computed again in float64, rounded to float32,
and ordered with ties by position. Where the proposal may have cut through a tie, every distance of
that query is computed.
"""

from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from manifind.arrays import Doubles, Floats, Ints, Mask, row_blocks
from manifind.checkpoint import NO_CHECKPOINT, Checkpoint
from manifind.errors import GraphError
from manifind.progress import Listener, Progress, ignore
from manifind.ranking import Ranking, best_first, empty_ranking
from manifind.text import are, count


class RowMatrix(Protocol):
    """A matrix whose rows are read by number: an array, codes that are decoded, or a table of a store."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any: ...

    def take(self, ids: Ints, /, axis: Literal[0]) -> Any: ...


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

    listener: receives how many rows are done, as the stage "graph". search: finds the best rows of X by negative
    distance for some queries; None searches exactly. checkpoint: rows that it has are not searched again.
    """
    n = len(X)
    if n < 2:
        hint = "a graph needs at least two different items: check what has described them"
        raise GraphError("there is only 1 distinct item: all rows are equal once they are preprocessed", hint)
    if n < k + 1:
        raise GraphError(
            f"n_neighbors = {k}, but there {are(n)} only {count(n, 'distinct item')}, "
            f"so each has {count(n - 1, 'other')}",
            f"set n_neighbors to at most {n - 1}",
        )
    ids, distances = np.empty((n, k), dtype=np.int64), np.empty((n, k), dtype=np.float32)
    done = 0
    if saved := checkpoint.load("graph"):
        done = len(saved["ids"])
        ids[:done], distances[:done] = saved["ids"], saved["distances"]
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
    if is_small(len(database), k):
        return nearest_of_all(queries, database, k, metric)
    proposed = _propose(queries, database, k + SPARE_CANDIDATES, metric)
    settled = settle(queries, database, proposed, metric)
    best = best_first(settled, proposed, k)
    longest = longest_square(database) if longest is None else longest
    last, worst = best.scores[:, -1].astype(np.float64), settled.min(axis=1).astype(np.float64)
    doubtful = may_cut_a_tie(last, worst, _squared_lengths(queries), longest, metric)
    if doubtful.any():
        best.ids[doubtful], best.scores[doubtful] = nearest_of_all(queries[doubtful], database, k, metric)
    return best


def is_small(n: int, k: int) -> bool:
    """Whether comparing all pairs in double precision costs little beside a proposal of k and some more."""
    return 4 * (k + SPARE_CANDIDATES) >= n


def nearest_among(queries: Floats, database: RowMatrix, rows: Ints, k: int, metric: Metric) -> Ranking:
    """As `nearest`, but only some rows of the database may be found: rising positions, at least k."""

    def among(some: Ints) -> Ranking:
        ids, scores = nearest(queries, database[some], min(k, len(some)), metric)
        return Ranking(some[ids], scores)

    return best_of_parts((among(rows[part]) for part in row_blocks(len(rows), _ROWS_PER_PART)), len(queries), k)


def best_of_parts(parts: Iterable[Ranking], m: int, k: int) -> Ranking:
    """The k best of what was found for m queries in each part of a database; all where there are fewer."""
    best: Ranking | None = None
    for found in parts:
        if best is not None:
            ids, scores = np.hstack([best.ids, found.ids]), np.hstack([best.scores, found.scores])
            found = best_first(scores, ids, min(k, ids.shape[1]))
        best = found
    return best or empty_ranking(m)


def may_cut_a_tie(last_kept: Any, worst_proposed: Any, q: Any, longest: float, metric: str) -> Any:
    """(m,) whether something that was not proposed could be as good as the last that is kept: arrays or tensors.

    last_kept, worst_proposed: scores, in double precision. q, longest: squared lengths of queries and longest row.
    """
    if metric == "cosine":
        return last_kept - worst_proposed <= ROUNDING * (q * longest) ** 0.5
    # |q - x|^2 may have been expanded: the error grows with the lengths.
    return worst_proposed**2 - last_kept**2 <= ROUNDING * (q + longest)


def longest_square(X: Floats) -> float:
    """The squared length of the longest row, which bounds the error of a search in float32."""
    return float(_squared_lengths(X).max())


def _squared_lengths(X: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", X, X))


def _propose(queries: Floats, database: Floats, candidates: int, metric: Metric) -> Ints:
    if has_faiss():
        import faiss  # here, so that it comes after torch wherever both are used

        kind = faiss.METRIC_L2 if metric == "euclidean" else faiss.METRIC_INNER_PRODUCT
        found: Ints = faiss.knn(queries, database, candidates, metric=kind)[1]
        return found
    ids = np.empty((len(queries), candidates), dtype=np.int64)
    half = np.float32(0) if metric == "cosine" else _squared_lengths(database) / 2
    for rows in row_blocks(len(queries), max(1, _DOUBLES_PER_BLOCK // len(database))):
        scores = queries[rows] @ database.T - half
        ids[rows] = np.argpartition(-scores, candidates - 1, axis=1)[:, :candidates]
    return ids


def settle(queries: Floats, database: RowMatrix, ids: Ints, metric: Metric) -> Floats:
    """Scores of the proposed pairs, computed in float64 and rounded once."""
    scores = np.empty(ids.shape, dtype=np.float32)
    for rows in row_blocks(len(queries), max(1, _DOUBLES_PER_BLOCK // (ids.shape[1] * queries.shape[1]))):
        x = database.take(ids[rows], axis=0).astype(np.float64)
        if metric == "cosine":
            scores[rows] = np.matmul(x, queries[rows, :, None].astype(np.float64))[:, :, 0]
        else:
            x -= queries[rows, None]
            scores[rows] = -np.sqrt(np.einsum("mcd,mcd->mc", x, x))
    return scores


def nearest_of_all(queries: Floats, database: Floats, k: int, metric: Metric) -> Ranking:
    """As `nearest`, from every pair, a block of queries at a time."""

    def rank(rows: slice) -> Ranking:
        block = all_scores(queries[rows].astype(np.float64), database, metric)
        ids = np.argsort(-block, axis=1, kind="stable")[:, :k]  # stable: ties by position
        return Ranking(ids, np.take_along_axis(block, ids, 1))

    return rank_in_blocks(rank, len(queries), k, _DOUBLES_PER_BLOCK // len(database))


def rank_in_blocks(rank: Callable[[slice], Ranking], m: int, k: int, per_block: int) -> Ranking:
    """The k best for m queries, which `rank` finds for so many of them at a time."""
    ids, scores = np.empty((m, k), dtype=np.int64), np.empty((m, k), dtype=np.float32)
    for rows in row_blocks(m, max(1, per_block)):
        ids[rows], scores[rows] = rank(rows)
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

    # Where fewer points than a minimum are enough for it, faiss does not write to the terminal about small sets.
    points = {"min_points_per_centroid": 1, "max_points_per_centroid": _MOST_POINTS_PER_CENTRE}
    found = faiss.Kmeans(X.shape[1], n, niter=rounds, seed=seed, **points)
    found.train(X)
    return np.ascontiguousarray(found.centroids, dtype=np.float32)
