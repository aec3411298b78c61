"""What `manifind compare` runs and shows: a table for people and the same as JSON for programs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from manifind.baselines import METHODS
from manifind.bench.cell import Scored
from manifind.bench.compare import notes, shown_cells, title
from manifind.bench.comparison import CompareOptions, Entry, Row, run_comparison
from manifind.bench.methods import choose_methods
from manifind.bench.report import write_page
from manifind.bench.results import Results, default_results, machine, versions
from manifind.bench.suite import PEERS, SUITES, SuiteRow, run_suite, suite_results
from manifind.bench.task import RetrievalTask
from manifind.cli.terminal import note, resumable, say, show_json, show_table
from manifind.errors import InputError
from manifind.progress import progress_bars


def compare_methods(
    source: str,
    read: Callable[..., list[RetrievalTask]],
    methods: str,
    options: CompareOptions,
    path: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Run methods on what `read` finds in the source; then show tables, and why some scores are missing."""
    chosen = choose_methods(methods, list(METHODS))
    tables, notices = [], []
    with progress_bars() as listener:
        for task in read(listener=listener):
            results = Results(path or default_results(task.digest()))
            if results.damaged:
                notices.append(f"{results.path}: damaged lines left out: {results.damaged}")
            with resumable(results.path):
                tables.append(run_comparison(task, chosen, options, results, listener))
            notices.append(f"every query's values: {results.path}")
    if html is not None:
        write_page(source, tables, html, options.seed)
    for notice in notices:
        note(notice)
    if as_json:
        provenance = {"versions": versions(), "machine": machine(), "seed": options.seed}
        sets = [{**table._asdict(), "rows": [_row_as_dict(row) for row in table.rows]} for table in tables]
        show_json({"source": source, "provenance": provenance, "sets": sets})
        return
    for table in tables:
        head, *rows = shown_cells(table)
        show_table(title(table), head, rows, numeric=head[1:])
        for line in notes(table):
            say(line)
    if html is not None:
        say(f"look at it: {html}")


def compare_suite(name: str, options: CompareOptions, folder: Path | None, path: Path | None, as_json: bool) -> None:
    """Run the suite and print one row for each set."""
    if name not in SUITES:
        raise InputError(f"suite = {name!r}; expected one of {', '.join(map(repr, SUITES))}")
    results = suite_results(path)
    with progress_bars() as listener, resumable(results.path):
        rows = list(run_suite(SUITES[name], options, folder, results, listener))
    note(f"every setting's score: {results.path}")
    if as_json:
        show_json({"suite": name, "versions": versions(), "rows": [_suite_row_as_dict(row) for row in rows]})
    else:
        _show_suite(rows)


def _row_as_dict(row: Row) -> dict[str, Any]:
    tuned = None
    if row.tuned is not None:
        tuned = row.tuned._asdict()
        tuned |= _entry_as_dict(tuned.pop("entry"))
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
        "kept_from_an_earlier_run": entry.is_cached,
        "settings": cell.settings,
        "scores": [_score_as_dict(one) for one in cell.scores],
    }


def _score_as_dict(one: Scored) -> dict[str, Any]:
    names = ("rule", "queries", "n_queries", "cut")
    value = {"measure": one.score.measure, "value": one.score.value, "interval": [one.low, one.high]}
    return value | {name: getattr(one.score, name) for name in names}


def _show_suite(rows: list[SuiteRow]) -> None:
    """One row for each set and preprocessing, what was chosen for its best peer, and what the columns mean."""
    columns = ["set", "k-NN", "best tuned peer", "settings", "GRAD-Net, default", "held out: in the graph", "unseen"]
    show_table("", columns, [_suite_cells(row) for row in rows], numeric=columns[1:])
    for row in rows:
        if row.missing:
            say(f"{row.name} was not run: {row.missing}")
        elif row.best is not None:
            chosen = ", ".join(f"{name}={value!r}" for name, value in row.best.settings.items())
            in_part = f"; searched in part: {', '.join(row.in_part)}" if row.in_part else ""
            say(f"{row.name}, {row.member.measure}: {row.best.method}({chosen or 'its default'}){in_part}")
    say("all methods of a row see the same descriptors: unit, rows of length 1, or center, the mean taken off before")
    say("GRAD-Net: no labels, no settings but the preprocessing of the row, mean and deviation of three seeds")
    say(f"best tuned peer: of {len(PEERS)}, with the best settings of its grid by the labels, which flatters")
    say("held out: a fifth of the items at a time, asked among the rest; the same queries in the graph, and unseen")


def _suite_cells(row: SuiteRow) -> list[str]:
    if row.missing is not None:
        return [row.name, "not run", *[""] * 5]
    best = "none" if row.best is None else f"{row.best.value:.1f} {row.best.method}"
    ours = f"{row.mean:.1f} ± {row.deviation:.1f}"
    unseen = ["", ""] if row.unseen is None else [f"{row.unseen.in_graph:.1f}", f"{row.unseen.unseen:.1f}"]
    return [row.name, f"{row.knn:.1f}", best, f"{row.tried:,}", ours, *unseen]


def _suite_row_as_dict(row: SuiteRow) -> dict[str, Any]:
    about = {"set": row.member.name, "preprocess": row.preprocess, "measure": row.member.measure}
    if row.missing is not None:
        return {**about, "missing": row.missing}
    return {
        **about,
        "knn": row.knn,
        "best_tuned_peer": None if row.best is None else row.best._asdict(),
        "peers": [one._asdict() for one in row.peers],
        "gradnet": {"values": row.values, "mean": row.mean, "deviation": row.deviation},
        "held_out": None if row.unseen is None else row.unseen._asdict(),
    }
