"""The answer to a search: who, in which order, with which score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats, Ints


class Ranking(NamedTuple):
    """One row per query, best first; equal scores stand in the order of their positions.

    ids: (m, k) positions in the database, or the user's own ids when a collection answers.
    scores: (m, k) float32, never increasing along a row.
    """

    ids: NDArray[Any]
    scores: Floats


def top_k(scores: Floats, k: int) -> Ranking:
    """The k best columns of each row, (m, k), of scores for every item, (m, n)."""
    m, n = scores.shape
    if 4 * k >= n:
        ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]  # stable: ties by position
        return Ranking(ids, np.take_along_axis(scores, ids, 1))
    ids = np.empty((m, k), dtype=np.int64)
    last = np.partition(scores, n - k, axis=1)[:, n - k]
    for row in range(m):
        candidates = np.flatnonzero(scores[row] >= last[row])  # k, and those that tie with the last
        ids[row] = candidates[np.argsort(-scores[row, candidates], kind="stable")[:k]]
    return Ranking(ids, np.take_along_axis(scores, ids, 1))


def best_first(scores: NDArray[Any], positions: Ints, k: int) -> Ranking:
    """Order each row by falling score, then by rising position, and keep the first k.

    scores, positions: (m, c) with c >= k.
    """
    order = np.lexsort((positions, -scores), axis=1)[:, :k]  # the last key is the first criterion
    rows = np.arange(len(order))[:, None]
    return Ranking(positions[rows, order], scores[rows, order])
