"""`manifind compare`: every method on one data set or a suite, with scores, intervals and costs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manifind.cli.terminal import note, say
from manifind.datasets.catalogue import VARIABLE
from manifind.errors import InputError
from manifind.progress import progress_bars
from manifind.settings import check_settings

if TYPE_CHECKING:
    from manifind.bench.comparison import CompareOptions, Table
    from manifind.bench.methods import Method
    from manifind.bench.task import RetrievalTask
    from manifind.progress import Listener

ListProtocol = StrEnum("ListProtocol", "official landmarks")
"""How published lists are asked."""


def compare(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="A data set of the catalogue, data of yours, as for `manifind data check`, or a collection.",
        ),
    ] = None,
    suite: Annotated[
        str | None, typer.Option(help="In place of DATA, several sets with tuned peers and held-out queries: local.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help="all, or names with commas between them; your own class: FILE.py:CLASS.")
    ] = "all",
    tune: Annotated[
        bool, typer.Option("--tune", help="Search each method's settings with the labels, too: it flatters.")
    ] = False,
    tune_budget: Annotated[
        int | None, typer.Option(min=1, help="With --tune or --suite: most settings to try for a method.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Of several arrays or ground truths, those with this in their name.")
    ] = None,
    preprocess: Annotated[
        str, typer.Option(help="For all methods: unit (rows of length 1), center, whiten, or none.")
    ] = "unit",
    measure: Annotated[
        str | None, typer.Option(help="The score to show, such as 'bullseye@40 counted'; else the usual one.")
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="With labels: the bullseye score in this window, too.")
    ] = None,
    protocol: Annotated[
        ListProtocol | None,
        typer.Option(help="With lists: official queries, or every right image of a landmark in turn."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="For a collection: the lists of right answers; else gnd_* beside it.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same scores.")] = 0,
    time_limit: Annotated[
        float | None, typer.Option(min=0.001, help="Most seconds for a method; then it has failed.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Where finished cells are kept; else this system's folder for caches.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run everything, whatever is kept.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed before.")] = False,
    folder: Annotated[
        Path | None, typer.Option(help=f"Where data sets live; else {VARIABLE}, else the folder for caches.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with the table and bars of score and cost.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Run every method on the same data and print one row for each: score, interval, time and memory.

    Each method runs in a process of its own; one that refuses the data or fails has a row that says why. What
    is finished is kept, so that the same command goes on after an interruption and runs nothing twice.
    """
    from manifind.baselines import METHODS
    from manifind.bench.comparison import CompareOptions
    from manifind.bench.methods import choose_methods
    from manifind.bench.report import write_page
    from manifind.bench.sources import read_tasks
    from manifind.cli import compare_output as shown  # imports torch: not for every verb

    if suite is not None:
        _refuse_beside_suite(data, methods, preprocess, tune, only, measure, window, protocol, truth, seed, html)
        asked = CompareOptions(limit=time_limit, fresh=fresh, retry=retry, budget=tune_budget)
        _compare_suite(suite, asked, folder, results, as_json)
        return
    if data is None:
        raise typer.BadParameter("there is nothing to compare on: name a data set, or --suite local")
    check_settings({"preprocess": preprocess})
    chosen = choose_methods(methods, list(METHODS))
    options = CompareOptions(preprocess, seed, measure, time_limit, fresh, retry, tune, tune_budget)
    with progress_bars() as listener:
        tasks = read_tasks(data, folder, window, protocol and protocol.value, only, listener, truth)
        tables, notices = _run(tasks, chosen, options, results, listener)
    if html is not None:
        write_page(data, tables, html, seed)
    for notice in notices:
        note(notice)
    if as_json:
        shown.show_as_json(data, tables, seed)
        return
    shown.show_tables(tables)
    if html is not None:
        say(f"look at it: {html}")


def _compare_suite(name: str, options: CompareOptions, folder: Path | None, path: Path | None, as_json: bool) -> None:
    """Run the suite and print one row for each set."""
    from manifind.bench.results import Results, default_results
    from manifind.bench.suite import SUITES, USUAL_BUDGET, run_suite
    from manifind.cli import compare_output as shown

    if name not in SUITES:
        raise InputError(f"suite = {name!r}; expected one of {', '.join(map(repr, SUITES))}")
    budget = options.budget or USUAL_BUDGET

    def results(task: RetrievalTask) -> Results:
        return Results(path or default_results(task.digest()))

    with progress_bars() as listener:
        try:
            rows = list(run_suite(SUITES[name], options._replace(budget=budget), folder, results, listener))
        except KeyboardInterrupt:
            note("stopped; what is finished is kept: the same command goes on from there")
            raise typer.Exit(130) from None
    if as_json:
        shown.show_suite_as_json(name, rows, budget)
    else:
        shown.show_suite(rows, budget)


def _refuse_beside_suite(data: str | None, methods: str, preprocess: str, *others: object) -> None:
    if data is not None or (methods, preprocess) != ("all", "unit") or any(others):
        raise InputError(
            "a suite says itself which data, methods, seeds and scores it has",
            "beside --suite give only --tune-budget, --time-limit, --results, --fresh, --retry, --folder or --json",
        )


def _run(
    tasks: list[RetrievalTask], methods: list[Method], options: CompareOptions, path: Path | None, listener: Listener
) -> tuple[list[Table], list[str]]:
    """The tables, and what is to be told besides; an interruption ends with how to go on."""
    from manifind.bench.comparison import run_comparison
    from manifind.bench.results import Results, default_results

    tables, notices = [], []
    for task in tasks:
        results = Results(path or default_results(task.digest()))
        if results.damaged:
            notices.append(f"{results.path}: damaged lines left out: {results.damaged}")
        try:
            tables.append(run_comparison(task, methods, options, results, listener))
        except KeyboardInterrupt:
            note(f"stopped; what is finished is kept in {results.path}: the same command goes on from there")
            raise typer.Exit(130) from None
        notices.append(f"every query's values: {results.path}")
    return tables, notices
