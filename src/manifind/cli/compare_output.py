"""What `manifind compare` shows: a table for people and the same as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from manifind.bench.cell import Scored
from manifind.bench.compare import notes, shown_cells, title
from manifind.bench.comparison import Entry, Row, Table
from manifind.bench.results import machine, versions
from manifind.cli.terminal import say, show_json, show_table


def show_tables(tables: Iterable[Table]) -> None:
    """Each table, the reasons of what has no score, and what its columns mean."""
    for table in tables:
        head, *rows = shown_cells(table)
        show_table(title(table), head, rows, numeric=head[1:])
        for note in notes(table):
            say(note)


def show_as_json(source: str, tables: Iterable[Table], seed: int) -> None:
    """One document: the tables, and where and with what they were measured."""
    provenance = {"versions": versions(), "machine": machine(), "seed": seed}
    show_json({"source": source, "provenance": provenance, "sets": [_table_as_dict(one) for one in tables]})


def _table_as_dict(table: Table) -> dict[str, Any]:
    return {**table._asdict(), "rows": [_row_as_dict(row) for row in table.rows]}


def _row_as_dict(row: Row) -> dict[str, Any]:
    tuned = None
    if row.tuned is not None:
        tuned = {
            "chosen": row.tuned.chosen,
            "tried": row.tuned.tried,
            "unusable": row.tuned.unusable,
            **_entry_as_dict(row.tuned.entry),
        }
    return {"method": row.method, **_entry_as_dict(row.entry), "tuned_with_the_labels": tuned}


def _entry_as_dict(entry: Entry) -> dict[str, Any]:
    cell, main = entry.cell, entry.main
    return {
        "state": cell.state,
        "reason": cell.reason or None,
        "hint": cell.hint or None,
        "value": None if main is None else main.score.value,
        "interval": None if main is None else [main.low, main.high],
        "against_knn": None if entry.against is None else entry.against._asdict(),
        "seconds_to_prepare": cell.seconds,
        "milliseconds_per_query": cell.milliseconds,
        "peak_bytes": cell.peak,
        "peak_bytes_before": cell.before,
        "kept_from_an_earlier_run": entry.kept,
        "settings": cell.settings,
        "scores": [_score_as_dict(one) for one in cell.scores],
    }


def _score_as_dict(one: Scored) -> dict[str, Any]:
    return {
        "measure": one.score.measure,
        "value": one.score.value,
        "interval": [one.low, one.high],
        "rule": one.score.rule,
        "queries": one.score.queries,
        "n_queries": one.score.n_queries,
        "cut": one.score.cut,
    }
