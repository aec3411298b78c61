"""The measures: one value in [0, 1] for each query from the ranks of what is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gradnet.arrays import Doubles, Ints
from gradnet.evaluation.hits import Hits


class Measured(NamedTuple):
    """values: (m,), NaN where nothing can be found. weights: (m,) of each query in the mean, 0 where NaN."""

    values: Doubles
    weights: Doubles


def trapezoid_average_precision(hits: Hits) -> Measured:
    """Area under precision over recall by trapezoids, as the Oxford and revisited evaluations have it.

    AP = 1/R sum_j (p_j- + p_j) / 2 with r_j the rank from 0 of the j-th found (j from 0), R all that are
    right, found or not; p_j = (j + 1) / (r_j + 1), and before it p_j- = j / r_j, or 1 where r_j = 0.
    """

    def one(ranks: Ints, n_relevant: int) -> float:
        j = np.arange(len(ranks))
        before = np.where(ranks == 0, 1.0, j / np.maximum(ranks, 1))
        return float((before + (j + 1) / (ranks + 1)).sum() / 2 / n_relevant)

    return _over_queries(one, hits)


def average_precision(hits: Hits) -> Measured:
    """Mean of the precision at the rank of everything that is right, as TREC has it.

    AP = 1/R sum_j (j + 1) / (r_j + 1), R all that are right, found or not.
    """

    def one(ranks: Ints, n_relevant: int) -> float:
        return float((np.arange(1, len(ranks) + 1) / (ranks + 1)).sum() / n_relevant)

    return _over_queries(one, hits)


def precision_at(k: int) -> Callable[[Hits], Measured]:
    """Share of the first k that is right; a ranking shorter than k is filled with wrong ones."""
    return lambda hits: _over_queries(lambda ranks, _: float((ranks < k).sum() / k), hits)


def recall_at(k: int) -> Callable[[Hits], Measured]:
    """Share of what is right that stands among the first k."""
    return lambda hits: _over_queries(lambda ranks, n: float((ranks < k).sum() / n), hits)


def revisited_precision_at(k: int) -> Callable[[Hits], Measured]:
    """mP@k of the revisited evaluation: k is shortened to the rank of the last right item that is found."""

    def one(ranks: Ints, n_relevant: int) -> float:
        shortened = min(k, int(ranks.max(initial=0)) + 1)
        return float((ranks < shortened).sum() / shortened)

    return lambda hits: _over_queries(one, hits)


BULLSEYE_RULES = {
    "counted": "the query is put first and counted, divided by the class size",
    "left-out": "the query is left out, divided by the class size",
    "left-out-others": "the query is left out, divided by the class size minus one",
}


def bullseye_at(window: int, rule: str) -> Callable[[Hits], Measured]:
    """Share of its class that a query finds in a window, under one of BULLSEYE_RULES; sums over all queries.

    counted: the query first, then window - 1 others. left-out: window others. Each query weighs as much as
    what it is divided by, so that the mean is all hits over all that could be hit.
    Needs judgements in which the query is left out: then R is the class size minus one.
    """

    def measure(hits: Hits) -> Measured:
        others = window - 1 if rule == "counted" else window
        found = np.array([(ranks < others).sum() for ranks in hits.ranks], dtype=np.float64)
        possible = (hits.n_relevant + (rule != "left-out-others")).astype(np.float64)
        with np.errstate(invalid="ignore"):
            return Measured((found + (rule == "counted")) / possible, possible)

    return measure


def _over_queries(one: Callable[[Ints, int], float], hits: Hits) -> Measured:
    """Values of the queries that have something to find; each of them weighs the same."""
    weights = (hits.n_relevant > 0).astype(np.float64)
    values = [
        one(ranks, int(n)) if n else np.nan for ranks, n in zip(hits.ranks, hits.n_relevant, strict=True)
    ]
    return Measured(np.array(values, dtype=np.float64), weights)
