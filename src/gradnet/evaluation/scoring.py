"""From rankings and judgements to scores: every measure with its rule in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

from gradnet.errors import InputError
from gradnet.evaluation.hits import Hits, find_hits
from gradnet.evaluation.judgements import Judgements
from gradnet.evaluation.measures import Measured, precision_at, recall_at
from gradnet.evaluation.score import Score, check_queries

CUTOFFS = (1, 5, 10)
"""The usual k of precision and recall at k."""


class Measure(NamedTuple):
    """name: as in tables, "mAP". rule: how it counts, in words. compute: from hits to a value per query."""

    name: str
    rule: str
    compute: Callable[[Hits], Measured]


def score(ids: Any, judgements: Judgements, measures: Sequence[Measure], queries: str) -> list[Score]:
    """One score for each measure.

    ids: (m, k) positions, best first; a ranking cut at k is scored as it is, and its score says so.
    queries: where the queries were when the method was fitted, one of score.QUERIES.
    """
    check_queries(queries)
    hits = find_hits(ids, judgements)
    if not (hits.n_relevant > 0).any():
        raise InputError(
            "no query has anything to find, so there is nothing to score",
            "check that rankings and ground truth are of the same set",
        )
    cut = _cut(hits, judgements)
    scores = []
    for name, rule, compute in measures:
        values, weights = compute(hits)
        scores.append(Score(name, f"{judgements.rule}; {rule}", queries, 100 * values, weights, cut))
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


def _cut(hits: Hits, judgements: Judgements) -> int | None:
    """The length of the shortest ranking, where any leaves out a part of the database."""
    if judgements.n_items is None:
        return None
    whole = [judgements.n_items - len(ignored) for ignored in judgements.ignored]
    return None if (hits.n_ranked >= whole).all() else int(hits.n_ranked.min())
