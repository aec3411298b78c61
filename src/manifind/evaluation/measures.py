"""Measures with their rules: one value in [0, 1] for each query, and their mean as a score."""

from collections.abc import Callable, Sequence
from functools import wraps
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from manifind.arrays import Doubles, Ints
from manifind.errors import InputError
from manifind.evaluation.relevance import Hits, Relevance, find_hits

# The value of each query (m,), NaN where nothing can be found, and what it weighs in the mean (m,), 0 where NaN.
Measured: TypeAlias = tuple[Doubles, Doubles]


def _of_each_query(one: Callable[[Ints, int], float]) -> Callable[[Hits], Measured]:
    """A measure from ranks and R of one query, for those that have something to find; each weighs the same."""

    @wraps(one)
    def measure(hits: Hits) -> Measured:
        values = [one(ranks, int(n)) if n else np.nan for ranks, n in zip(hits.ranks, hits.n_relevant, strict=True)]
        return np.array(values, dtype=np.float64), (hits.n_relevant > 0).astype(np.float64)

    return measure


@_of_each_query
def trapezoid_average_precision(ranks: Ints, n_relevant: int) -> float:
    """Area under precision over recall by trapezoids, as the Oxford and revisited evaluations have it.

    AP = 1/R sum_j (p_j- + p_j) / 2 with r_j the rank from 0 of the j-th found (j from 0), R all that are
    right, found or not; p_j = (j + 1) / (r_j + 1), and before it p_j- = j / r_j, or 1 where r_j = 0.
    """
    j = np.arange(len(ranks))
    before = np.where(ranks == 0, 1.0, j / np.maximum(ranks, 1))
    return float((before + (j + 1) / (ranks + 1)).sum() / 2 / n_relevant)


@_of_each_query
def average_precision(ranks: Ints, n_relevant: int) -> float:
    """Mean of the precision at the rank of everything that is right, as TREC has it.

    AP = 1/R sum_j (j + 1) / (r_j + 1), R all that are right, found or not.
    """
    return float((np.arange(1, len(ranks) + 1) / (ranks + 1)).sum() / n_relevant)


def precision_at(k: int) -> Callable[[Hits], Measured]:
    """Share of the first k that is right; a ranking shorter than k is filled with wrong ones."""
    return _of_each_query(lambda ranks, _: float((ranks < k).sum() / k))


def recall_at(k: int) -> Callable[[Hits], Measured]:
    """Share of what is right that stands among the first k."""
    return _of_each_query(lambda ranks, n: float((ranks < k).sum() / n))


def revisited_precision_at(k: int) -> Callable[[Hits], Measured]:
    """mP@k of the revisited evaluation: k is shortened to the rank of the last right item that is found."""

    def one(ranks: Ints, _: int) -> float:
        shortened = min(k, int(ranks.max(initial=0)) + 1)
        return float((ranks < shortened).sum() / shortened)

    return _of_each_query(one)


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
            return (found + (rule == "counted")) / possible, possible

    return measure


# Whether the queries were part of what the method was fitted on, which is an advantage.
QUERIES = ("in the graph", "unseen", "not stated")
CUTOFFS = (1, 5, 10)  # the usual k of precision and recall at k


class Score(NamedTuple):
    """The value of a measure, with its rule and the value of every query.

    cut: the length of the shortest ranking where they do not hold the whole database; what a cut ranking
        leaves out counts as not found. None where they are whole, or nobody knows how large that is.
    """

    measure: str  # its usual name, "mAP", "bullseye@40"
    rule: str  # what was counted how, in words
    queries: str  # one of QUERIES
    per_query: Doubles  # (m,) in percent, NaN where a query has nothing to find
    weights: Doubles  # (m,) of each query in the value, 0 where NaN
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


class Measure(NamedTuple):
    """A way to count hits."""

    name: str  # as in tables, "mAP"
    rule: str  # how it counts, in words
    compute: Callable[[Hits], Measured]


def score(ids: Any, relevance: Relevance, measures: Sequence[Measure], queries: str) -> list[Score]:
    """One score for each measure.

    ids: (m, k) positions, best first; a ranking cut at k is scored as it is, and its score says so.
    queries: where the queries were when the method was fitted, one of score.QUERIES.
    """
    if queries not in QUERIES:
        raise InputError(f"queries = {queries!r}; expected one of {', '.join(map(repr, QUERIES))}")
    hits = find_hits(ids, relevance)
    if not (hits.n_relevant > 0).any():
        problem = "no query has anything to find, so there is nothing to score"
        raise InputError(problem, "check that rankings and ground truth are of the same set")
    cut = None
    if relevance.n_items is not None:
        whole = [relevance.n_items - len(ignored) for ignored in relevance.ignored]
        cut = None if (hits.n_ranked >= whole).all() else int(hits.n_ranked.min())
    computed = [(name, f"{relevance.rule}; {rule}", compute(hits)) for name, rule, compute in measures]
    return [Score(name, rule, queries, 100 * values, weights, cut) for name, rule, (values, weights) in computed]


def at_cutoffs(cutoffs: Sequence[int]) -> list[Measure]:
    """Precision and recall at each k."""
    for k in cutoffs:
        check_positive("cutoff", k)
    precision = [Measure(f"P@{k}", "share of the first k that is right", precision_at(k)) for k in cutoffs]
    recall = [Measure(f"R@{k}", "share of what is right among the first k", recall_at(k)) for k in cutoffs]
    return precision + recall


def check_positive(name: str, value: Any) -> None:
    """Refuse a number of ranks that is no whole number or below one."""
    if not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name} = {value!r}; expected a whole number of at least 1")
