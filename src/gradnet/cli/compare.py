"""`gradnet compare`: every method on one data set, with its score, its interval, and what it costs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradnet.cli.suite import USUAL_BUDGET, compare_suite
from gradnet.cli.terminal import note, progress_bars, say
from gradnet.config import check_settings
from gradnet.data.folder import VARIABLE
from gradnet.errors import InputError

if TYPE_CHECKING:
    from gradnet.experiments.compare import Options, Table
    from gradnet.experiments.compare_methods import Method
    from gradnet.experiments.compare_question import Question
    from gradnet.progress import Listener


class Protocol(StrEnum):
    """How published lists are asked."""

    official = "official"
    landmarks = "landmarks"


def compare(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="A data set of the catalogue, data of yours, as for `gradnet data check`, or a collection.",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(help="In place of DATA, several sets with tuned peers and held-out queries: local."),
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
        Protocol | None,
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
    html: Annotated[
        Path | None, typer.Option(help="Write a page with the table and bars of score and cost.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Run every method on the same data and print one row for each: score, interval, time and memory.

    Each method runs in a process of its own; one that refuses the data or fails has a row that says why. What
    is finished is kept, so that the same command goes on after an interruption and runs nothing twice.
    """
    from gradnet.cli import compare_shown as shown  # imports torch: not for every verb
    from gradnet.experiments.compare import Options
    from gradnet.experiments.compare_data import read_questions
    from gradnet.experiments.compare_methods import choose_methods
    from gradnet.experiments.compare_page import write_page
    from gradnet.methods import METHODS

    if suite is not None:
        _refuse_beside_suite(
            data, methods, preprocess, tune, only, measure, window, protocol, truth, seed, html
        )
        from gradnet.experiments.suite_runner import SuiteOptions

        asked = SuiteOptions(tune_budget or USUAL_BUDGET, time_limit, fresh, retry)
        compare_suite(suite, asked, folder, results, as_json)
        return
    if data is None:
        raise typer.BadParameter("there is nothing to compare on: name a data set, or --suite local")
    check_settings({"preprocess": preprocess})
    chosen = choose_methods(methods, list(METHODS))
    options = Options(preprocess, seed, measure, time_limit, fresh, retry, tune, tune_budget)
    with progress_bars() as listener:
        questions = read_questions(data, folder, window, protocol and protocol.value, only, listener, truth)
        tables, notices = _run(questions, chosen, options, results, listener)
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


def _refuse_beside_suite(data: str | None, methods: str, preprocess: str, *others: object) -> None:
    if data is not None or (methods, preprocess) != ("all", "unit") or any(others):
        raise InputError(
            "a suite says itself which data, methods, seeds and scores it has",
            "beside --suite give only --tune-budget, --time-limit, --results, --fresh, --retry, --folder or --json",
        )


def _run(
    questions: list[Question],
    methods: list[Method],
    options: Options,
    path: Path | None,
    listener: Listener,
) -> tuple[list[Table], list[str]]:
    """The tables, and what is to be told besides; an interruption ends with how to go on."""
    from gradnet.experiments.compare import run_comparison
    from gradnet.experiments.compare_store import Results, default_results

    tables, notices = [], []
    for question in questions:
        results = Results(path or default_results(question.digest()))
        if results.damaged:
            notices.append(f"{results.path}: damaged lines left out: {results.damaged}")
        try:
            tables.append(run_comparison(question, methods, options, results, listener))
        except KeyboardInterrupt:
            note(f"stopped; what is finished is kept in {results.path}: the same command goes on from there")
            raise typer.Exit(130) from None
        notices.append(f"every query's values: {results.path}")
    return tables, notices
