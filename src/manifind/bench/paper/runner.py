"""Runs what the paper's items need and a results file lacks."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from manifind.bench.methods import accepts, load_factory
from manifind.bench.paper.declared import Artefact, Run
from manifind.bench.paper.procedures import ON_GPU, PROCEDURES, seeds_of
from manifind.bench.paper.tables import shortened
from manifind.bench.results import Results
from manifind.bench.runner import CellJob, RunOptions, open_runner, task_code
from manifind.bench.sets import SETS, read_set, toy_task
from manifind.errors import DataError, InputError
from manifind.model.training import gpu_name
from manifind.progress import Listener, Progress


@dataclass(frozen=True)
class PaperRunOptions(RunOptions):
    """How the paper's runs are made."""

    folder: Path | None = None  # of the data sets
    smoke: bool = False  # toy data, and in this process
    seconds: float = float("inf")  # after which nothing more is begun


class Wanted(NamedTuple):
    """A run with one seed, and the command that runs it alone."""

    run: Run
    seed: int
    command: str


def wanted_runs(artefacts: Sequence[Artefact], n_seeds: int, only: str | None) -> list[Wanted]:
    """Every run once, set by set in the order in which they are named first, seed after seed."""
    found: dict[str, Wanted] = {}
    for artefact in artefacts:
        for entry in artefact.entries:
            if only is not None and only.lower() not in entry.name.lower():
                continue
            for run in entry.runs:
                for seed in seeds_of(run, n_seeds):
                    command = f'{artefact.command} --only "{entry.name}" --seeds {seed + 1} --fresh'
                    found.setdefault(repr(run.key(seed)), Wanted(run, seed, command))
    if only is not None and not found:
        raise InputError(
            f"no cell has {only!r} in its name; expected a part of ROW / COLUMN",
            f"such as {next(entry.name for one in artefacts for entry in one.entries)!r}",
        )
    order = list(dict.fromkeys(one.run.on for one in found.values()))
    return sorted(found.values(), key=lambda one: (order.index(one.run.on), one.seed))


def outdated_runs(wanted: Sequence[Wanted], results: Results) -> list[Wanted]:
    """Those whose saved results were made by other code."""
    known = [(one, results.get(one.run.key(one.seed))) for one in wanted]
    return [
        one
        for one, record in known
        if record is not None and record.get("code") != task_code(PROCEDURES[one.run.procedure], one.run.method)
    ]


def run_missing(wanted: Sequence[Wanted], results: Results, options: PaperRunOptions, listener: Listener) -> None:
    """Run what is not known yet; a set whose files are not here is left out, and its cells stay not run."""
    run_options = replace(options, here={} if options.smoke else None)
    until = time.monotonic() + options.seconds
    for on in dict.fromkeys(one.run.on for one in wanted):
        try:
            task = toy_task(SETS[on]) if options.smoke else read_set(SETS[on], options.folder)
        except DataError:
            continue
        possible = (one for one in wanted if one.run.procedure not in ON_GPU or gpu_name())
        mine = [_job(one, options.smoke) for one in possible if one.run.on == on]
        with open_runner(task, results, run_options, listener) as runner:
            missing = [job for job in mine if runner.known(job) is None]
            done = len(mine) - len(missing)
            report = [Progress(f"cells on {on}", done + i, len(mine), job.label) for i, job in enumerate(missing)]
            for start in range(0, len(missing), options.workers):
                if time.monotonic() > until:
                    return
                listener(report[start])
                for _ in runner.run_all(missing[start : start + options.workers]):
                    pass
            listener(Progress(f"cells on {on}", len(mine), len(mine)))


def _job(wanted: Wanted, smoke: bool) -> CellJob:
    run = shortened(wanted.run) if smoke else wanted.run
    seed = {"random_state": wanted.seed} if accepts(load_factory(run.method), "random_state") else {}
    arguments = {"settings": {**run.settings, **seed}, "options": dict(run.options), "seed": wanted.seed}
    key = wanted.run.key(wanted.seed)
    return CellJob(key, PROCEDURES[run.procedure], run.method, arguments, run.method, wanted.command)
