"""Scores as people and programs read them: tables with their rules, csv, and JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from manifind.cli.terminal import say, show_table
from manifind.evaluation.measures import Score
from manifind.evaluation.protocols import Difference
from manifind.text import count

_MOST_SHOWN = 100
"""Queries whose values are shown one by one; of more, the quartiles."""


def show_scores(title: str, scores: Sequence[Score], names: Sequence[str]) -> None:
    """What the queries got, then a table of the scores and the rule of each."""
    _show_queries([one for one in scores if "@" not in one.measure or "bullseye" in one.measure], names)
    rules = list(dict.fromkeys(one.rule for one in scores))
    rows = [(one.measure, f"{one.value:.2f}", str(one.n_queries), str(rules.index(one.rule) + 1)) for one in scores]
    columns = ("measure", "score", "queries", "rule")
    show_table(f"{title}: queries {scores[0].queries}", columns, rows, numeric=("score", "queries"))
    for number, rule in enumerate(rules, 1):
        say(f"rule {number}: {rule}")
    if scores[0].cut is not None:
        say(f"rankings are cut, the shortest at {scores[0].cut}: what they leave out counts as not found")


def show_comparison(
    first: str, second: str, ours: Sequence[Score], theirs: Sequence[Score], differences: Sequence[Difference]
) -> None:
    """A table of two rankings with the paired interval of their difference."""
    rows = [
        (
            one.measure,
            f"{one.value:.2f}",
            f"{two.value:.2f}",
            f"{d.mean:+.2f}",
            f"{d.low:+.2f} to {d.high:+.2f}",
            f"{d.wins} / {d.losses} / {d.ties}",
        )
        for one, two, d in zip(ours, theirs, differences, strict=True)
    ]
    interval = f"{differences[0].confidence:.0%} interval"
    columns = ("measure", "first", "second", "difference", interval, "better / worse / same")
    show_table(f"{first} against {second}", columns, rows, numeric=("first", "second", "difference"))
    say("interval: paired bootstrap over the queries, 10,000 resamples")


def per_query_csv(scores: Sequence[Score], names: Sequence[str]) -> str:
    """One line per query, one column per measure; empty where a query has nothing to find."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["query", *(one.measure for one in scores)])
    for row, name in enumerate(names):
        values = [one.per_query[row] for one in scores]
        writer.writerow([name, *("" if math.isnan(value) else f"{value:.4f}" for value in values)])
    return stream.getvalue()


def scores_as_dicts(scores: Sequence[Score], names: Sequence[str]) -> list[dict[str, Any]]:
    """Everything that a score says, for programs."""
    return [
        {
            "measure": one.measure,
            "value": one.value,
            "rule": one.rule,
            "queries": one.queries,
            "cut": one.cut,
            "n_queries": one.n_queries,
            "per_query": {
                name: None if math.isnan(value) else value
                for name, value in zip(names, one.per_query.tolist(), strict=True)
            },
        }
        for one in scores
    ]


def _show_queries(scores: Sequence[Score], names: Sequence[str]) -> None:
    measures = [one.measure for one in scores]
    if len(names) <= _MOST_SHOWN:
        rows = [(name, *(_text(one.per_query[row]) for one in scores)) for row, name in enumerate(names)]
        show_table("every query", ("query", *measures), rows, numeric=measures)
        return
    shares = {"lowest": 0, "quarter": 25, "half": 50, "three quarters": 75, "highest": 100}
    rows = [
        (word, *(f"{np.nanpercentile(one.per_query, share):.2f}" for one in scores)) for word, share in shares.items()
    ]
    title = f"{count(len(names), 'query')} (each of them: --per-query FILE)"
    show_table(title, ("of the queries", *measures), rows, numeric=measures)


def _text(value: float) -> str:
    return "nothing to find" if math.isnan(value) else f"{value:.2f}"
