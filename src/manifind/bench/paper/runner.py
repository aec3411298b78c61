"""Runs what the paper's items need and a results file lacks."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import manifind
from manifind.bench.methods import load_factory
from manifind.bench.paper.artefacts import shortened
from manifind.bench.paper.declared import Artefact, Run
from manifind.bench.paper.procedures import PROCEDURES, job_of, load_procedure, seeds_of
from manifind.bench.process import MethodJob, run_job
from manifind.bench.results import Results, machine, versions
from manifind.bench.sets import SETS, read_set, toy_task
from manifind.bench.task import RetrievalTask
from manifind.bench.worker import outcome
from manifind.errors import DataError, InputError
from manifind.model.training import gpu_name
from manifind.progress import Listener, Progress


def provenance(command: str, digest: str) -> dict[str, Any]:
    """command: runs this alone. data: SHA-256 of the task. code: of the package's files.

    load: how many processes ran or waited in the last minute, this one among them: what seconds are worth.
    """
    return {
        "command": command,
        "data": digest,
        "versions": versions(),
        "machine": {**machine(), "gpu": gpu_name(), "load": _load()},
        "code": code_digest(),
    }


def is_current(record: dict[str, Any], digest: str) -> bool:
    """Whether a kept result is of this data and this version of manifind."""
    return record.get("data") == digest and record.get("versions", {}).get("manifind") == versions()["manifind"]


def _load() -> float | None:
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


@cache
def code_digest() -> str:
    """SHA-256 of all Python files of the package, by name."""
    root = Path(manifind.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


class PaperRunOptions(NamedTuple):
    """folder: of the data sets. fresh: run what is known too. smoke: toy data, and in this process."""

    folder: Path | None = None
    fresh: bool = False
    smoke: bool = False


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


def run_missing(wanted: Sequence[Wanted], results: Results, options: PaperRunOptions, listener: Listener) -> None:
    """Run what is not known yet; a set whose files are not here is left out, and its cells stay not run."""
    twins: dict[str, dict[str, Any]] = {}
    for on in dict.fromkeys(one.run.on for one in wanted):
        mine = [one for one in wanted if one.run.on == on]
        try:
            task = toy_task(SETS[on]) if options.smoke else read_set(SETS[on], options.folder)
        except DataError:
            continue
        with tempfile.TemporaryDirectory(prefix="manifind-reproduce-") as folder:
            task.write(Path(folder))
            _Cells(task, Path(folder), results, options, listener, twins).run(mine, on)


class _Cells:
    """The runs on one task. twins: what toy data gave before, by all that it depends on."""

    def __init__(
        self,
        task: RetrievalTask,
        folder: Path,
        results: Results,
        options: PaperRunOptions,
        listener: Listener,
        twins: dict[str, dict[str, Any]],
    ) -> None:
        self._twins = twins
        self._task, self._folder, self._results = task, folder, results
        self._options, self._listener, self._digest = options, listener, task.digest()

    def run(self, wanted: Sequence[Wanted], on: str) -> None:
        for done, (run, seed, command) in enumerate(wanted):
            self._listener(Progress(f"cells on {on}", done, len(wanted), run.method))
            known = None if self._options.fresh else self._results.get(run.key(seed))
            if PROCEDURES[run.procedure].on_gpu and gpu_name() is None:
                continue
            if known is None or not is_current(known, self._digest):
                record = self._outcome(shortened(run) if self._options.smoke else run, seed)
                self._results.add(run.key(seed), {**record, **provenance(command, self._digest)})
        self._listener(Progress(f"cells on {on}", len(wanted), len(wanted)))

    def _outcome(self, run: Run, seed: int) -> dict[str, Any]:
        if self._options.smoke:
            return self._tried_out(run, seed)
        described = MethodJob(self._folder, run.method, PROCEDURES[run.procedure].address, None)
        with closing(run_job(described, [job_of(run, seed)], self._inner(run))) as found:
            return next(found)

    def _tried_out(self, run: Run, seed: int) -> dict[str, Any]:
        """Run here, since processes would take longer than all the work, and once for all sets with one toy."""
        twin = f"{self._digest} {replace(run, on='').key(seed)}"
        if twin not in self._twins:
            procedure, factory = load_procedure(run.procedure), load_factory(run.method)
            job, listener = job_of(run, seed), self._inner(run)
            self._twins[twin] = outcome(lambda: procedure(self._task, factory, job, listener))
        return self._twins[twin]

    def _inner(self, run: Run) -> Listener:
        def listen(report: Progress) -> None:
            stage = f"{run.method}: {report.stage}"
            self._listener(Progress(stage, report.done, report.total, report.note))

        return listen
