"""`manifind compare`: every method on one data set or a suite, with scores, intervals and costs."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from manifind.cli.options import (
    AsJson,
    BenchFolder,
    Fresh,
    ListProtocol,
    Outdated,
    ResultsFile,
    ScoreSeed,
    argument,
    option,
)
from manifind.errors import InputError
from manifind.settings import check_settings

_DATA = "A data set of the catalogue, data of yours, as for `manifind data check`, or a collection."
_SUITE = "In place of DATA, several sets with tuned peers and held-out queries: local."
_MEASURE = "The score to show, such as 'bullseye@40 counted'; else the usual one."
_PROTOCOL = "With lists: official queries, or every right image of a landmark in turn."


def compare(
    data: Annotated[str | None, argument("DATA", _DATA)] = None,
    suite: Annotated[str | None, option(_SUITE)] = None,
    methods: Annotated[str, option("all, or names with commas between them; your own class: FILE.py:CLASS.")] = "all",
    tune: Annotated[bool, option("Search each method's settings with the labels, too: it flatters.", "--tune")] = False,
    tune_budget: Annotated[
        int | None, option("With --tune or --suite: most settings to try for a method.", min=1)
    ] = None,
    only: Annotated[str | None, option("Of several arrays or ground truths, those with this in their name.")] = None,
    preprocess: Annotated[str, option("For all methods: unit (rows of length 1), center, whiten, or none.")] = "unit",
    measure: Annotated[str | None, option(_MEASURE)] = None,
    window: Annotated[int | None, option("With labels: the bullseye score in this window, too.", min=1)] = None,
    protocol: Annotated[ListProtocol | None, option(_PROTOCOL)] = None,
    truth: Annotated[Path | None, option("For a collection: the lists of right answers; else gnd_* beside it.")] = None,
    seed: ScoreSeed = 0,
    time_limit: Annotated[float | None, option("Most seconds for a method; then it has failed.", min=0.001)] = None,
    workers: Annotated[int, option("With --suite: methods to tune at once, each in its own process.", min=1)] = 1,
    results: ResultsFile = None,
    fresh: Fresh = False,
    retry: Annotated[bool, option("Run again what failed before.", "--retry")] = False,
    outdated: Outdated = False,
    folder: BenchFolder = None,
    html: Annotated[Path | None, option("Write a page with the table and bars of score and cost.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run every method on the same data and print one row for each: score, interval, time and memory.

    Each method runs in a process of its own; one that refuses the data or fails has a row that says why. What
    is finished is kept, so that the same command goes on after an interruption and runs nothing twice.
    """
    if suite is not None and (
        data is not None
        or (methods, preprocess) != ("all", "unit")
        or any((tune, only, measure, window, protocol, truth, seed, html))
    ):
        raise InputError(
            "a suite says itself which data, methods, seeds and scores it has",
            "beside --suite give only --tune-budget, --time-limit, --workers, --results, --fresh, --retry, --outdated, "
            "--folder or --json",
        )
    if suite is None and workers > 1:
        raise InputError(f"workers = {workers}, which are for a suite", "leave --workers out, or name a --suite")
    from manifind.bench.comparison import CompareOptions  # imports torch: not for every verb
    from manifind.bench.sources import read_tasks
    from manifind.cli import compare_output as shown

    options = CompareOptions(
        limit=time_limit,
        fresh=fresh,
        retry=retry,
        outdated=outdated,
        preprocess=preprocess,
        seed=seed,
        measure=measure,
        tune=tune,
        budget=tune_budget,
        workers=workers,
    )
    if suite is not None:
        shown.compare_suite(suite, options, folder, results, as_json)
        return
    if data is None:
        raise typer.BadParameter("there is nothing to compare on: name a data set, or --suite local")
    check_settings({"preprocess": preprocess})
    read = partial(read_tasks, data, folder, window, protocol and protocol.value, only, truth=truth)
    shown.compare_methods(data, read, methods, options, results, html, as_json)
