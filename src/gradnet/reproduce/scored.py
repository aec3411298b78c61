"""The task of most cells: a method fitted, asked and scored, with what every query got and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gradnet.evaluation import Score
from gradnet.experiments.compare_cell import DONE, run_cell, score_as_dict, with_interval
from gradnet.experiments.compare_methods import Factory
from gradnet.experiments.compare_question import Question
from gradnet.progress import Listener

_DECIMALS = 4  # of a query's value, in percent: far below any difference that is told


def score(question: Question, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The record of a cell, with those measures alone that the options name."""
    cell = run_cell(question, factory, job["settings"], listener)
    kept = record([one.score for one in cell.scores], job["options"]["measures"])
    return {**cell.as_dict(), **kept}


def record(scores: Iterable[Score], measures: Sequence[str], **cost: Any) -> dict[str, Any]:
    """A finished record: the value of each measure, and what every query got."""
    chosen = [one for one in scores if one.measure in measures]
    return {
        "state": DONE,
        "reason": "",
        "hint": "",
        "values": {one.measure: one.value for one in chosen},
        "scores": [_shortened(score_as_dict(with_interval(one))) for one in chosen],
        **cost,
    }


def _shortened(score: dict[str, Any]) -> dict[str, Any]:
    values = [None if value is None else round(value, _DECIMALS) for value in score["per_query"]]
    return {**score, "per_query": values}
