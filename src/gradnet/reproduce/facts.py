"""Tasks that need no training: what a set holds, and what truncation leaves out of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradnet.descriptors.check import check_descriptors
from gradnet.descriptors.preprocess import unit_rows
from gradnet.experiments.compare_cell import DONE
from gradnet.experiments.compare_methods import Factory
from gradnet.experiments.compare_question import LabelTruth, Question
from gradnet.graph.truncation import truncate
from gradnet.progress import Listener


def facts(question: Question, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """How many classes, items, dimensions and queries there are; queries with one list are one class."""
    del factory, job, listener
    return _values(
        classes=_n_classes(question),
        items=len(question.descriptors),
        dimensions=question.descriptors.shape[1],
        queries=question.n_queries,
    )


def left_out(question: Question, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """Percent of the right items that the union of the queries' nearest does not hold, and how large that union is."""
    del factory, listener
    X = unit_rows(check_descriptors(question.descriptors))
    queries = question.descriptors[question.asked] if question.queries is None else question.queries
    kept = truncate(X, unit_rows(check_descriptors(queries)), job["options"]["truncation"])
    (measure,) = job["options"]["measures"]
    judgements, _ = question.truth.judged(question.asked, measure)
    right = np.concatenate(judgements.relevant)
    return _values(
        **{"right items left out": 100.0 * float(np.mean(~np.isin(right, kept))), "items kept": len(kept)}
    )


def _n_classes(question: Question) -> int:
    if isinstance(question.truth, LabelTruth):
        return len(np.unique(question.truth.labels))
    lists = question.truth.lists.lists
    right = [name for name in lists if name != "junk"]
    together = [
        frozenset(np.concatenate([lists[name][query] for name in right]).tolist())
        for query in range(question.truth.lists.n_queries)
    ]
    return len(set(together))


def _values(**values: float) -> dict[str, Any]:
    return {"state": DONE, "reason": "", "hint": "", "values": {name: float(v) for name, v in values.items()}}
