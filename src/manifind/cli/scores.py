"""Scores as people and programs read them: tables with their rules, csv, and JSON."""

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
    show_with_rules(f"{title}: queries {scores[0].queries}", (), [((), one) for one in scores])
    if scores[0].cut is not None:
        say(f"rankings are cut, the shortest at {scores[0].cut}: what they leave out counts as not found")


def show_with_rules(title: str, first: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], Score]]) -> None:
    """A table of scores behind columns `first`, and the rules that they were counted by, each under its number."""
    rules = list(dict.fromkeys(score.rule for _, score in rows))
    cells = [
        (*begin, one.measure, f"{one.value:.2f}", str(one.n_queries), str(rules.index(one.rule) + 1))
        for begin, one in rows
    ]
    show_table(title, (*first, "measure", "score", "queries", "rule"), cells, numeric=("score", "queries"))
    for number, rule in enumerate(rules, 1):
        say(f"rule {number}: {rule}")


def show_comparison(
    first: str, second: str, ours: Sequence[Score], theirs: Sequence[Score], differences: Sequence[Difference]
) -> None:
    """A table of two rankings with the paired interval of their difference."""
    rows = []
    for one, two, d in zip(ours, theirs, differences, strict=True):
        values = (f"{one.value:.2f}", f"{two.value:.2f}", f"{d.mean:+.2f}", f"{d.low:+.2f} to {d.high:+.2f}")
        rows.append((one.measure, *values, f"{d.wins} / {d.losses} / {d.ties}"))
    interval = f"{differences[0].confidence:.0%} interval"
    columns = ("measure", "first", "second", "difference", interval, "better / worse / same")
    show_table(f"{first} against {second}", columns, rows, numeric=columns[1:4])
    say("interval: paired bootstrap over the queries, 10,000 resamples")


def per_query_csv(scores: Sequence[Score], names: Sequence[str]) -> str:
    """One line per query, one column per measure; empty where a query has nothing to find."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["query", *(one.measure for one in scores)])
    for row, name in enumerate(names):
        writer.writerow([name, *(_text(one.per_query[row], 4, "") for one in scores)])
    return stream.getvalue()


def scores_as_dicts(scores: Sequence[Score], names: Sequence[str]) -> list[dict[str, Any]]:
    """Everything that a score says, for programs."""
    facts = ("measure", "value", "rule", "queries", "cut", "n_queries")
    return [{name: getattr(one, name) for name in facts} | {"per_query": _by_name(one, names)} for one in scores]


def _by_name(score: Score, names: Sequence[str]) -> dict[str, float | None]:
    values = zip(names, score.per_query.tolist(), strict=True)
    return {name: None if math.isnan(value) else value for name, value in values}


def _show_queries(scores: Sequence[Score], names: Sequence[str]) -> None:
    measures = [one.measure for one in scores]
    if len(names) <= _MOST_SHOWN:
        rows = [
            (name, *(_text(one.per_query[row], 2, "nothing to find") for one in scores))
            for row, name in enumerate(names)
        ]
        show_table("every query", ("query", *measures), rows, numeric=measures)
        return
    shares = {"lowest": 0, "quarter": 25, "half": 50, "three quarters": 75, "highest": 100}
    rows = [
        (word, *(f"{np.nanpercentile(one.per_query, share):.2f}" for one in scores)) for word, share in shares.items()
    ]
    title = f"{count(len(names), 'query')} (each of them: --per-query FILE)"
    show_table(title, ("of the queries", *measures), rows, numeric=measures)


def _text(value: float, digits: int, nothing: str) -> str:
    return nothing if math.isnan(value) else f"{value:.{digits}f}"
