"""Scores where items have labels: what shares the query's label is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gradnet.arrays import Ints
from gradnet.errors import InputError
from gradnet.evaluation.hits import find_hits
from gradnet.evaluation.judgements import Judgements, label_of_query, same_label
from gradnet.evaluation.measures import BULLSEYE_RULES, average_precision, bullseye_at
from gradnet.evaluation.score import Score
from gradnet.evaluation.scoring import CUTOFFS, Measure, at_cutoffs, check_positive, score
from gradnet.wording import count

RECTANGLE = "AP by the precision at each right rank over all that is right"


def evaluate_labels(
    ids: Any,
    labels: ArrayLike,
    *,
    query_labels: ArrayLike | None = None,
    asked: ArrayLike | None = None,
    queries: str = "not stated",
    cutoffs: Sequence[int] = CUTOFFS,
) -> list[Score]:
    """mAP, and precision and recall at the cutoffs, each with its rule and the value of every query.

    ids: (m, k) positions in the database, best first, one row per query; rows may end in -1.
    labels: (n,) of every item of the database, whole numbers or strings.
    query_labels: (m,) for queries that are not items of the database. Without them the queries are items:
        `asked` says which (None: row i answers item i), and each is left out of its own ranking.
    queries: "in the graph", "unseen" or "not stated": where the queries were when the method was fitted.
    """
    if query_labels is not None and asked is not None:
        raise InputError(
            "asked is for queries that are items of the database, query_labels for those that are not; both given",
            "leave one of them out",
        )
    if query_labels is None:
        judgements = same_label(_as_numbers(labels)[0], _as_positions(asked))
        judgements = judgements._replace(rule=f"{judgements.rule}, the query left out")
    else:
        judgements = label_of_query(*_as_numbers(labels, query_labels))
    measures = [Measure("mAP", RECTANGLE, average_precision), *at_cutoffs(cutoffs)]
    return score(ids, judgements, measures, queries)


def mean_average_precision(ids: Any, labels: ArrayLike, queries: str = "not stated") -> Score:
    """mAP with every item a query and left out of its own ranking: the first of `evaluate_labels`."""
    return evaluate_labels(ids, labels, queries=queries, cutoffs=())[0]


def bullseye(
    ids: Any,
    labels: ArrayLike,
    window: int,
    rule: str = "counted",
    *,
    asked: ArrayLike | None = None,
    queries: str = "not stated",
) -> Score:
    """Share of its class that a query finds in its first `window`, under one of measures.BULLSEYE_RULES.

    ids: (m, k) rankings, with enough items for the window besides the query. labels: (n,).
    asked: the item that each row answers; None: row i answers item i.
    The value is all hits of all queries over all that could be hit.
    """
    check_positive("window", window)
    if rule not in BULLSEYE_RULES:
        raise InputError(f"rule = {rule!r}; expected one of {', '.join(map(repr, BULLSEYE_RULES))}")
    numbers = _as_numbers(labels)[0]
    judgements = same_label(numbers, _as_positions(asked))
    others = window - 1 if rule == "counted" else window
    _check_width(ids, judgements, min(others, len(numbers) - 1))
    measure = Measure(f"bullseye@{window} {rule}", BULLSEYE_RULES[rule], bullseye_at(window, rule))
    found = score(ids, judgements, [measure], queries)[0]
    return found._replace(cut=None)  # its window is all it needs


def _check_width(ids: Any, judgements: Judgements, others: int) -> None:
    shortest = int(find_hits(ids, judgements).n_ranked.min(initial=others))
    if shortest < others:
        raise InputError(
            f"a ranking has {count(shortest, 'item')} besides the query; expected at least {others} for this window",
            f"search with k = {others + 1} or more",
        )


def _as_numbers(*labels: ArrayLike) -> list[Ints]:
    """The labels as whole numbers that are equal where the labels are."""
    lists = [_as_list(np.asarray(one)) for one in labels]
    if len({isinstance(one[0], str) for one in lists}) > 1:
        raise InputError(
            "labels of items and of queries differ in kind; expected both numbers or both strings"
        )
    numbers: dict[str | int, int] = {}
    return [np.array([numbers.setdefault(label, len(numbers)) for label in one]) for one in lists]


def _as_list(array: np.ndarray[Any, Any]) -> list[Any]:
    if array.ndim != 1 or array.dtype.kind not in "iuUSb" or not len(array):
        raise InputError(
            f"labels of shape {array.shape} and type {array.dtype}; expected (n,) whole numbers or strings",
            "give one label for every item",
        )
    try:
        values: list[Any] = (np.strings.decode(array, "utf-8") if array.dtype.kind == "S" else array).tolist()
    except UnicodeDecodeError as error:
        raise InputError(f"labels in bytes that are no UTF-8: {error}", "give them as strings") from error
    return values


def _as_positions(asked: ArrayLike | None) -> Ints | None:
    if asked is None:
        return None
    positions = np.asarray(asked)
    if positions.ndim != 1 or positions.dtype.kind not in "iu":
        raise InputError(
            f"asked has shape {positions.shape} and type {positions.dtype}; expected (m,) positions"
        )
    return positions.astype(np.int64)
