"""Measures with their rules: one value in [0, 1] for each query, and their mean as a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Doubles, Ints
from manifind.errors import InputError
from manifind.evaluation.relevance import Hits, Relevance, find_hits


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
    Needs relevance in which the query is left out: then R is the class size minus one.
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
    values = [one(ranks, int(n)) if n else np.nan for ranks, n in zip(hits.ranks, hits.n_relevant, strict=True)]
    return Measured(np.array(values, dtype=np.float64), weights)


QUERIES = ("in the graph", "unseen", "not stated")
"""Whether the queries were part of what the method was fitted on, which is an advantage."""


class Score(NamedTuple):
    """measure: its usual name, "mAP", "bullseye@40". rule: what was counted how, in words.

    queries: one of QUERIES. per_query: (m,) in percent, NaN where a query has nothing to find.
    weights: (m,) of each query in the value, 0 where NaN.
    cut: the length of the shortest ranking where they do not hold the whole database; what a cut ranking
        leaves out counts as not found. None where they are whole, or nobody knows how large that is.
    """

    measure: str
    rule: str
    queries: str
    per_query: Doubles
    weights: Doubles
    cut: int | None = None

    @property
    def value(self) -> float:
        """The weighted mean of the queries that have something to find, in percent."""
        counts = self.weights > 0
        return float(np.average(self.per_query[counts], weights=self.weights[counts]))

    @property
    def n_queries(self) -> int:
        """How many queries have something to find."""
        return int((self.weights > 0).sum())


def check_queries(queries: str) -> None:
    """Refuse what does not say where the queries were."""
    if queries not in QUERIES:
        raise InputError(f"queries = {queries!r}; expected one of {', '.join(map(repr, QUERIES))}")


CUTOFFS = (1, 5, 10)
"""The usual k of precision and recall at k."""


class Measure(NamedTuple):
    """name: as in tables, "mAP". rule: how it counts, in words. compute: from hits to a value per query."""

    name: str
    rule: str
    compute: Callable[[Hits], Measured]


def score(ids: Any, relevance: Relevance, measures: Sequence[Measure], queries: str) -> list[Score]:
    """One score for each measure.

    ids: (m, k) positions, best first; a ranking cut at k is scored as it is, and its score says so.
    queries: where the queries were when the method was fitted, one of score.QUERIES.
    """
    check_queries(queries)
    hits = find_hits(ids, relevance)
    if not (hits.n_relevant > 0).any():
        raise InputError(
            "no query has anything to find, so there is nothing to score",
            "check that rankings and ground truth are of the same set",
        )
    cut = _cut(hits, relevance)
    scores = []
    for name, rule, compute in measures:
        values, weights = compute(hits)
        scores.append(Score(name, f"{relevance.rule}; {rule}", queries, 100 * values, weights, cut))
    return scores


def at_cutoffs(cutoffs: Sequence[int]) -> list[Measure]:
    """Precision and recall at each k."""
    for k in cutoffs:
        check_positive("cutoff", k)
    precision, recall = "share of the first k that is right", "share of what is right among the first k"
    return [Measure(f"P@{k}", precision, precision_at(k)) for k in cutoffs] + [
        Measure(f"R@{k}", recall, recall_at(k)) for k in cutoffs
    ]


def check_positive(name: str, value: Any) -> None:
    """Refuse a number of ranks that is no whole number or below one."""
    if not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name} = {value!r}; expected a whole number of at least 1")


def _cut(hits: Hits, relevance: Relevance) -> int | None:
    """The length of the shortest ranking, where any leaves out a part of the database."""
    if relevance.n_items is None:
        return None
    whole = [relevance.n_items - len(ignored) for ignored in relevance.ignored]
    return None if (hits.n_ranked >= whole).all() else int(hits.n_ranked.min())
