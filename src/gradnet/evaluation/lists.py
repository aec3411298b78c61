"""Scores against published lists: Oxford5k, Paris6k, ROxford, RParis, and parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradnet.errors import InputError
from gradnet.evaluation.judgements import LEVELS, Judgements, classic, landmarks, revisited
from gradnet.evaluation.measures import revisited_precision_at, trapezoid_average_precision
from gradnet.evaluation.score import Score
from gradnet.evaluation.scoring import CUTOFFS, Measure, at_cutoffs, check_positive, score
from gradnet.formats.truth import REVISITED, GroundTruth

PROTOCOLS = ("official", "landmarks")
TRAPEZOID = "AP by trapezoids over all that is right"


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
        `judgements.landmark_queries`.
    distractors: items behind those that the ground truth names; they are never right.
    """
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol = {protocol!r}; expected one of {', '.join(map(repr, PROTOCOLS))}")
    if distractors < 0:
        raise InputError(f"distractors = {distractors}; expected 0 or more")
    scores = []
    plan = _plan(truth, cutoffs, protocol)
    with_something = [one for one in plan if any(map(len, one[0].relevant))]
    for judgements, measures in with_something or plan:
        if judgements.n_items is not None:
            judgements = judgements._replace(n_items=judgements.n_items + distractors)
        scores += score(ids, judgements, measures, queries)
    return scores


def _plan(
    truth: GroundTruth, cutoffs: Sequence[int], protocol: str
) -> list[tuple[Judgements, list[Measure]]]:
    area = Measure("mAP", TRAPEZOID, trapezoid_average_precision)
    if protocol == "landmarks":
        return [(landmarks(truth), [area, *at_cutoffs(cutoffs)])]
    if set(truth.lists) == set(REVISITED):
        return [(revisited(truth, level), _at_level(level, cutoffs)) for level in LEVELS]
    return [(classic(truth), [area, *at_cutoffs(cutoffs)])]


def _at_level(level: str, cutoffs: Sequence[int]) -> list[Measure]:
    measures = [Measure(f"mAP {level}", TRAPEZOID, trapezoid_average_precision)]
    for k in cutoffs:
        check_positive("cutoff", k)
        rule = "share of the first k that is right, k at most the last right rank"
        measures.append(Measure(f"mP@{k} {level}", rule, revisited_precision_at(k)))
    return measures
