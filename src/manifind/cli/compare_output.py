"""What `manifind compare` shows: a table for people and the same as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from manifind.bench.cell import Scored
from manifind.bench.html import cost_text
from manifind.bench.results import machine, versions
from manifind.bench.runner import TUNED, Entry, Row, Table, Tuned
from manifind.cli.terminal import say, show_json, show_table
from manifind.evaluation.protocols import Difference
from manifind.text import count


def show_tables(tables: Iterable[Table]) -> None:
    """Each table, the reasons of what has no score, and what its columns mean."""
    for table in tables:
        _show_table(table)
        for row in table.rows:
            _explain(row)
        _show_meaning(table)


def show_as_json(source: str, tables: Iterable[Table], seed: int) -> None:
    """One document: the tables, and where and with what they were measured."""
    provenance = {"versions": versions(), "machine": machine(), "seed": seed}
    show_json({"source": source, "provenance": provenance, "sets": [_table_as_dict(one) for one in tables]})


def _show_table(table: Table) -> None:
    score, is_tuned = table.measure or "score", any(row.tuned for row in table.rows)
    columns = ["method", score, "95 % interval", "against k-NN", "prepare, s", "query, ms", "peak, MB"]
    columns += [TUNED] if is_tuned else []
    title = (
        f"{table.name}: {count(table.items, 'item')}, {count(table.dimension, 'dimension')}, "
        f"{count(table.queries, 'query')}, descriptors {table.preprocess}"
    )
    rows = [_cells(row, is_tuned) for row in table.rows]
    numeric = [column for column in columns if column != "method"]
    show_table(title, columns, rows, numeric=numeric)


def _cells(row: Row, is_tuned: bool) -> list[str]:
    entry, cell = row.entry, row.entry.cell
    tuned = [""] if row.tuned is None else [_tuned_text(row.tuned)]
    if entry.main is None:
        return [row.method, cell.state, *[""] * 5, *(tuned if is_tuned else [])]
    return [
        row.method,
        f"{entry.main.score.value:.2f}",
        f"{entry.main.low:.1f}-{entry.main.high:.1f}",
        "" if entry.against is None else _against_text(entry.against),
        *(_cost_text(value) for value in (cell.seconds, cell.milliseconds)),
        _cost_text(None if cell.peak is None else cell.peak / 1e6),
        *(tuned if is_tuned else []),
    ]


def _cost_text(value: float | None) -> str:
    return "not known" if value is None else cost_text(value)


def _against_text(difference: Difference) -> str:
    """The difference, in brackets where the queries cannot tell the two apart."""
    is_clear = difference.low > 0 or difference.high < 0
    return f"{difference.mean:+.2f}" if is_clear else f"({difference.mean:+.2f})"


def _tuned_text(tuned: Tuned) -> str:
    main = tuned.entry.main
    return tuned.entry.cell.state if main is None else f"{main.score.value:.2f}"


def _explain(row: Row) -> None:
    """A line for what was refused or failed, and one for what tuning chose."""
    if row.entry.cell.reason:
        say(f"{row.method} {row.entry.cell.why}")
    if row.tuned is None:
        return
    say(f"{row.method} {TUNED}: {row.tuned.words}")
    if row.tuned.chosen and row.tuned.entry.cell.reason:
        say(f"{row.method} {TUNED} {row.tuned.entry.cell.why}")


def _show_meaning(table: Table) -> None:
    if table.rule is not None:
        say(f"rule: {table.rule}; queries in the graph")
    say("95 % interval: bootstrap over the queries, 10,000 resamples")
    if any(row.entry.against for row in table.rows):
        say("against k-NN: mean difference query by query, in brackets where its 95 % interval contains 0")
    say("query: all asked at once, full rankings, divided by their number; peak: of the whole process")
    if any(row.tuned for row in table.rows):
        say(f"{TUNED}: chosen by the very score that it shows, which flatters; the default saw no label")


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
