"""`gradnet compare --suite`: a whole suite of sets, and what is shown of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gradnet.cli.terminal import note, progress_bars, say, show_json, show_table
from gradnet.errors import InputError

if TYPE_CHECKING:
    from gradnet.experiments.suite_runner import SuiteOptions, SuiteRow

USUAL_BUDGET = 20
"""Settings that are tried for each peer where nobody says how many: more take hours."""


def compare_suite(
    name: str, options: SuiteOptions, folder: Path | None, results: Path | None, as_json: bool
) -> None:
    """Run the suite and print one row for each set."""
    from gradnet.experiments.compare_provenance import versions
    from gradnet.experiments.compare_store import Results, default_results
    from gradnet.experiments.suite import SUITES
    from gradnet.experiments.suite_runner import run_suite

    if name not in SUITES:
        raise InputError(f"suite = {name!r}; expected one of {', '.join(map(repr, SUITES))}")
    rows = []
    with progress_bars() as listener:
        try:
            for row in run_suite(
                SUITES[name],
                options,
                folder,
                lambda question: Results(results or default_results(question.digest())),
                listener,
            ):
                rows.append(row)
        except KeyboardInterrupt:
            note("stopped; what is finished is kept: the same command goes on from there")
            raise typer.Exit(130) from None
    if as_json:
        about = {"suite": name, "settings_tried": options.budget, "versions": versions()}
        show_json({**about, "sets": [_as_dict(row) for row in rows]})
        return
    _show(rows, options.budget)


def _show(rows: list[SuiteRow], budget: int) -> None:
    columns = ["set", "k-NN", "best tuned peer", "GRAD-Net, default", "held out: in the graph", "unseen"]
    show_table("", columns, [_cells(row) for row in rows], numeric=columns[1:])
    for row in rows:
        if row.missing:
            say(f"{row.member.name} was not run: {row.missing}")
        elif row.best is not None:
            chosen = ", ".join(f"{name}={value!r}" for name, value in row.best.settings.items())
            left_out = (
                f"; {', '.join(row.member.too_slow)} left out as too slow" if row.member.too_slow else ""
            )
            say(
                f"{row.member.name}, {row.member.measure}: {row.best.method}({chosen or 'its default'}){left_out}"
            )
    say("GRAD-Net: no labels, no settings, mean and deviation of three seeds")
    say(
        f"best tuned peer: of ten, the best of {budget} settings each (gss: a quarter), chosen with the labels, "
        "which flatters"
    )
    say(
        "held out: a fifth of the items at a time, asked among the rest; the same queries in the graph, and unseen"
    )


def _cells(row: SuiteRow) -> list[str]:
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


def _as_dict(row: SuiteRow) -> dict[str, Any]:
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
