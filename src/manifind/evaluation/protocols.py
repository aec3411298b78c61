"""Protocols: labels, published lists, rankings from files, and the paired comparison of two methods."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from manifind.arrays import Ints, row_blocks
from manifind.errors import InputError
from manifind.evaluation import measures
from manifind.evaluation.measures import BULLSEYE_RULES, CUTOFFS, Measure, Score, at_cutoffs, check_positive, score
from manifind.evaluation.relevance import (
    LEVELS,
    Relevance,
    classic,
    find_hits,
    label_of_query,
    landmarks,
    revisited,
    same_label,
)
from manifind.io.ground_truth import REVISITED, GroundTruth
from manifind.text import count

RECTANGLE = "AP by the precision at each right rank over all that is right"
TRAPEZOID = "AP by trapezoids over all that is right"


def evaluate_labels(
    ids: Any,
    labels: ArrayLike,
    *,
    query_labels: ArrayLike | None = None,
    query_items: ArrayLike | None = None,
    queries: str = "not stated",
    cutoffs: Sequence[int] = CUTOFFS,
) -> list[Score]:
    """mAP, and precision and recall at the cutoffs, each with its rule and the value of every query.

    ids: (m, k) positions in the database, best first, one row per query; rows may end in -1.
    labels: (n,) of every item of the database, whole numbers or strings.
    query_labels: (m,) for queries that are not items of the database. Without them the queries are items:
        `query_items` says which (None: row i answers item i), and each is left out of its own ranking.
    queries: "in the graph", "unseen" or "not stated": where the queries were when the method was fitted.
    """
    if query_labels is not None and query_items is not None:
        problem = (
            "query_items is for queries that are items of the database, query_labels for those that are not; both given"
        )
        raise InputError(problem, "leave one of them out")
    if query_labels is None:
        relevance = same_label(_as_numbers(labels)[0], _as_positions(query_items))
        relevance = relevance._replace(rule=f"{relevance.rule}, the query left out")
    else:
        relevance = label_of_query(*_as_numbers(labels, query_labels))
    wanted = [Measure("mAP", RECTANGLE, measures.average_precision), *at_cutoffs(cutoffs)]
    return score(ids, relevance, wanted, queries)


def mean_average_precision(ids: Any, labels: ArrayLike, queries: str = "not stated") -> Score:
    """mAP with every item a query and left out of its own ranking: the first of `evaluate_labels`."""
    return evaluate_labels(ids, labels, queries=queries, cutoffs=())[0]


def bullseye(
    ids: Any,
    labels: ArrayLike,
    window: int,
    rule: str = "counted",
    *,
    query_items: ArrayLike | None = None,
    queries: str = "not stated",
) -> Score:
    """Share of its class that a query finds in its first `window`, under one of measures.BULLSEYE_RULES.

    ids: (m, k) rankings, with enough items for the window besides the query. labels: (n,).
    query_items: the item that each row answers; None: row i answers item i.
    The value is all hits of all queries over all that could be hit.
    """
    check_positive("window", window)
    if rule not in BULLSEYE_RULES:
        raise InputError(f"rule = {rule!r}; expected one of {', '.join(map(repr, BULLSEYE_RULES))}")
    numbers = _as_numbers(labels)[0]
    relevance = same_label(numbers, _as_positions(query_items))
    others = min(window - 1 if rule == "counted" else window, len(numbers) - 1)
    shortest = int(find_hits(ids, relevance).n_ranked.min(initial=others))
    if shortest < others:
        raise InputError(
            f"a ranking has {count(shortest, 'item')} besides the query; expected at least {others} for this window",
            f"search with k = {others + 1} or more",
        )
    measure = Measure(f"bullseye@{window} {rule}", BULLSEYE_RULES[rule], measures.bullseye_at(window, rule))
    found = score(ids, relevance, [measure], queries)[0]
    return found._replace(cut=None)  # its window is all it needs


def _as_numbers(*labels: ArrayLike) -> list[Ints]:
    """The labels as whole numbers that are equal where the labels are."""
    lists: list[list[Any]] = []
    for array in map(np.asarray, labels):
        if array.ndim != 1 or array.dtype.kind not in "iuUSb" or not len(array):
            problem = f"labels of shape {array.shape} and type {array.dtype}; expected (n,) whole numbers or strings"
            raise InputError(problem, "give one label for every item")
        try:
            lists.append((np.strings.decode(array, "utf-8") if array.dtype.kind == "S" else array).tolist())
        except UnicodeDecodeError as error:
            raise InputError(f"labels in bytes that are no UTF-8: {error}", "give them as strings") from error
    if len({isinstance(one[0], str) for one in lists}) > 1:
        raise InputError("labels of items and of queries differ in kind; expected both numbers or both strings")
    numbers: dict[str | int, int] = {}
    return [np.array([numbers.setdefault(label, len(numbers)) for label in one]) for one in lists]


def _as_positions(query_items: ArrayLike | None) -> Ints | None:
    if query_items is None:
        return None
    positions = np.asarray(query_items)
    if positions.ndim != 1 or positions.dtype.kind not in "iu":
        raise InputError(f"query_items has shape {positions.shape} and type {positions.dtype}; expected (m,) positions")
    return positions.astype(np.int64)


PROTOCOLS = ("official", "landmarks")


def evaluate_lists(
    ids: Any,
    truth: GroundTruth,
    *,
    queries: str = "not stated",
    cutoffs: Sequence[int] = CUTOFFS,
    protocol: str = "official",
    distractors: int = 0,
) -> list[Score]:
    """Scores by the protocol that the lists were published for, each with its rule and every query's value.

    ids: (m, k) positions in the database, best first, row i for query i; rows may end in -1.
    truth: what `read_ground_truth` returns. Classic lists give mAP and precision and recall at the
        cutoffs, revisited ones mAP and mP@k at three levels; a level at which no query has anything to
        find, as in a part of a set, is left out.
    queries: "in the graph", "unseen" or "not stated": where the queries were when the method was fitted.
    protocol: "landmarks" asks for every right image of classic lists in turn, in the order of
        `relevance.landmark_queries`.
    distractors: items behind those that the ground truth names; they are never right.
    """
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol = {protocol!r}; expected one of {', '.join(map(repr, PROTOCOLS))}")
    if distractors < 0:
        raise InputError(f"distractors = {distractors}; expected 0 or more")
    scores, plan = [], _plan(truth, cutoffs, protocol)
    for relevance, wanted in [one for one in plan if any(map(len, one[0].relevant))] or plan:
        if relevance.n_items is not None:
            relevance = relevance._replace(n_items=relevance.n_items + distractors)
        scores += score(ids, relevance, wanted, queries)
    return scores


def _plan(truth: GroundTruth, cutoffs: Sequence[int], protocol: str) -> list[tuple[Relevance, list[Measure]]]:
    area, usual = Measure("mAP", TRAPEZOID, measures.trapezoid_average_precision), at_cutoffs(cutoffs)
    if protocol == "landmarks":
        return [(landmarks(truth), [area, *usual])]
    if set(truth.lists) != set(REVISITED):
        return [(classic(truth), [area, *usual])]
    rule = "share of the first k that is right, k at most the last right rank"
    shortened = [Measure(f"mP@{k}", rule, measures.revisited_precision_at(k)) for k in cutoffs]
    return [
        (revisited(truth, level), [one._replace(name=f"{one.name} {level}") for one in (area, *shortened)])
        for level in LEVELS
    ]


_RESAMPLES, _NUMBERS_PER_BLOCK = 10_000, 1 << 22


class Difference(NamedTuple):
    """Mean of first minus second in points, the ends of its interval, and for how many queries who won."""

    mean: float
    low: float
    high: float
    confidence: float
    wins: int
    losses: int
    ties: int


def compare(first: Score, second: Score, confidence: float = 0.95, seed: int = 0) -> Difference:
    """How far first is above second: paired bootstrap over the queries, percentile interval.

    Queries are drawn with replacement, each with its pair of values, 10,000 times. An interval that
    contains 0 says that these queries cannot tell the two apart. Queries count as independent, which those
    of one landmark are not: the interval is then too narrow.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence}; expected a number between 0 and 1, such as 0.95")
    _check_comparable(first, second)
    counts = first.weights > 0
    differences, weights = (first.per_query - second.per_query)[counts], first.weights[counts]
    rng, m, means = np.random.default_rng(seed), len(differences), np.empty(_RESAMPLES)
    for block in row_blocks(_RESAMPLES, max(1, _NUMBERS_PER_BLOCK // m)):
        drawn = rng.integers(m, size=(block.stop - block.start, m))
        means[block] = (weights * differences)[drawn].sum(axis=1) / weights[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    wins, losses, ties = (int((np.sign(differences) == sign).sum()) for sign in (1, -1, 0))
    mean = float(np.average(differences, weights=weights))
    return Difference(mean, float(low), float(high), confidence, wins, losses, ties)


def _check_comparable(first: Score, second: Score) -> None:
    for name in ("measure", "rule"):
        if getattr(first, name) != getattr(second, name):
            raise InputError(
                f"the {name} of one score is {getattr(first, name)!r}, of the other {getattr(second, name)!r}; "
                "expected the same",
                "score both rankings against the same ground truth by the same rule",
            )
    if (first.cut is None) != (second.cut is None):
        raise InputError(
            f"one set of rankings is cut at {second.cut if first.cut is None else first.cut}, the other is whole; "
            "expected both of a kind, since what a cut leaves out counts as not found",
            "cut both at the same length, or rank everything in both",
        )
    if not np.array_equal(first.weights, second.weights):
        raise InputError(
            f"the scores are over different queries ({first.n_queries} and {second.n_queries} that count); "
            "expected the same queries in the same order"
        )
