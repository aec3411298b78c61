"""What `manifind compare` shows: a table for people and the same as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from manifind.bench.cell import Scored
from manifind.bench.compare import notes, shown_cells, title
from manifind.bench.comparison import Entry, Row, Table
from manifind.bench.results import machine, versions
from manifind.bench.suite import SuiteRow
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


def show_suite(rows: list[SuiteRow], budget: int) -> None:
    """One row for each set, what was chosen for its best peer, and what the columns mean."""
    columns = ["set", "k-NN", "best tuned peer", "GRAD-Net, default", "held out: in the graph", "unseen"]
    show_table("", columns, [_suite_cells(row) for row in rows], numeric=columns[1:])
    for row in rows:
        if row.missing:
            say(f"{row.member.name} was not run: {row.missing}")
        elif row.best is not None:
            chosen = ", ".join(f"{name}={value!r}" for name, value in row.best.settings.items())
            left_out = f"; {', '.join(row.member.too_slow)} left out as too slow" if row.member.too_slow else ""
            say(f"{row.member.name}, {row.member.measure}: {row.best.method}({chosen or 'its default'}){left_out}")
    say("GRAD-Net: no labels, no settings, mean and deviation of three seeds")
    say(
        f"best tuned peer: of ten, the best of {budget} settings each (gss: a quarter), chosen with the labels, "
        "which flatters"
    )
    say("held out: a fifth of the items at a time, asked among the rest; the same queries in the graph, and unseen")


def _suite_cells(row: SuiteRow) -> list[str]:
    if row.missing is not None or row.unseen is None:
        return [row.member.name, "not run", "", "", "", ""]
    best = "none" if row.best is None else f"{row.best.value:.1f} {row.best.method}"
    return [
        row.member.name,
        f"{row.knn:.1f}",
        best,
        f"{row.mean:.1f} ± {row.deviation:.1f}",
        f"{row.unseen.in_graph:.1f}",
        f"{row.unseen.unseen:.1f}",
    ]


def _suite_row_as_dict(row: SuiteRow) -> dict[str, Any]:
    member = {"set": row.member.name, "measure": row.member.measure}
    if row.missing is not None or row.unseen is None:
        return {**member, "missing": row.missing}
    return {
        **member,
        "knn": row.knn,
        "best_tuned_peer": None if row.best is None else row.best._asdict(),
        "gradnet": {"values": row.values, "mean": row.mean, "deviation": row.deviation},
        "held_out": row.unseen._asdict(),
    }


def show_suite_as_json(name: str, rows: list[SuiteRow], budget: int) -> None:
    """One document: the sets, and what they were measured with."""
    about = {"suite": name, "settings_tried": budget, "versions": versions()}
    show_json({**about, "sets": [_suite_row_as_dict(row) for row in rows]})
