"""The runner: what is not known yet runs in child processes, and every record is saved as soon as it is finished."""

import os
import tempfile
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from manifind.bench.cell import FAILED, REFUSED
from manifind.bench.code_digest import code_digest
from manifind.bench.methods import load_factory
from manifind.bench.results import Results, provenance, versions
from manifind.bench.task import RetrievalTask, read_task
from manifind.errors import InputError, ManifindError, MissingExtraError
from manifind.progress import Listener, ignore
from manifind.worker import Worker


class CellJob(NamedTuple):
    """One thing to run. procedure: "module:function" of a task, what makes the method, arguments and a listener."""

    key: dict[str, Any]  # what its record is saved under
    procedure: str
    method: str | None  # its address; None for a procedure without one
    arguments: dict[str, Any]  # settings, options and seed
    label: str  # of its progress
    command: str = ""  # runs this alone
    notes: dict[str, Any] = {}  # noqa: RUF012  saved with it; nobody writes to it
    also_runs: tuple[str, ...] = ()  # "module:function" of what the procedure calls by name, whose code counts as well

    @property
    def code(self) -> str:
        """The digest of the code that it runs; a file of the user's own has one in its key."""
        return task_code(self.procedure, self.method, self.also_runs)


@cache
def task_code(procedure: str, method: str | None, also: tuple[str, ...] = ()) -> str:
    """The digest of what a procedure reaches with a method."""
    starts = [procedure, *also]
    if method is not None and ":" not in method:
        factory = load_factory(method)
        starts.append(f"{factory.__module__}:{factory.__name__}")
    return code_digest(starts)


@dataclass(frozen=True)
class RunOptions:
    """How jobs are run."""

    limit: float | None = None  # most seconds for each run
    fresh: bool = False  # run what is known too
    retry: bool = False  # run what failed again
    outdated: bool = False  # run again what other code made
    workers: int = 1  # child processes at once
    # Run in this process, and hold the record of each job: those that differ in their keys alone are run once.
    here: dict[str, dict[str, Any]] | None = None


class Runner:
    """Runs jobs on one task. folder: holds the task for the children. task: None where the procedures need none."""

    def __init__(
        self, task: RetrievalTask | None, folder: Path, results: Results, options: RunOptions, listener: Listener
    ) -> None:
        self.digest = "" if task is None else task.digest()
        self._task, self._folder, self._results = task, folder, results
        self._options, self._listener = options, listener
        self._lock = threading.Lock()

    def known(self, job: CellJob) -> dict[str, Any] | None:
        """The saved record, unless it is of other data or another version, or is to be run again."""
        record, ours = None if self._options.fresh else self._results.get(job.key), versions()["manifind"]
        if record is None or record.get("versions", {"manifind": ours}).get("manifind") != ours:
            return None
        if record.get("data", self.digest) != self.digest:
            return None
        if self._options.outdated and record.get("code") != job.code:
            return None
        if record["state"] != FAILED:
            return record
        earlier, now = record.get("limit"), self._options.limit
        had_less_time = earlier is not None and (now is None or now > earlier)
        return None if self._options.retry or had_less_time else record

    def get(self, job: CellJob) -> tuple[dict[str, Any], bool]:
        """The record, known or run now in a process of its own, and whether it was known."""
        record = self.known(job)
        return (self._run_alone(job), False) if record is None else (record, True)

    def run(self, jobs: Sequence[CellJob]) -> Generator[dict[str, Any], None, None]:
        """A record for each job, all of them in one process; after a crash a new one goes on with the next."""
        with Worker(seconds=self._options.limit, environment=os.environ) as worker:
            for job in jobs:
                here = self._options.here
                yield self._save(job, self._run_in(worker, job) if here is None else self._run_here(job, here))

    def run_all(self, jobs: Sequence[CellJob]) -> Iterator[tuple[CellJob, dict[str, Any]]]:
        """Each job in a process of its own, as many at once as there are workers, in the order of the jobs."""
        if self._options.workers == 1:  # no thread, so that Ctrl-C ends the child at once
            yield from ((job, self._run_alone(job)) for job in jobs)
            return
        with ThreadPoolExecutor(self._options.workers) as pool:
            waiting = [pool.submit(self._run_alone, job) for job in jobs]
            try:
                yield from zip(jobs, (one.result() for one in waiting), strict=True)
            finally:
                pool.shutdown(cancel_futures=True)

    def _run_alone(self, job: CellJob) -> dict[str, Any]:
        with closing(self.run([job])) as records:
            return next(records)

    def _run_in(self, worker: Worker, job: CellJob) -> dict[str, Any]:
        folder = None if self._task is None else str(self._folder)
        arguments = {"folder": folder, "method": job.method, "procedure": job.procedure, "arguments": job.arguments}
        try:
            record: dict[str, Any] = worker.call(f"{__name__}:run_procedure", arguments, self._inner(job)).value
        except ManifindError as error:
            record = _failure(error)
        return record

    def _run_here(self, job: CellJob, records: dict[str, dict[str, Any]]) -> dict[str, Any]:
        equal = repr((self.digest, job.procedure, job.method, job.arguments))
        if equal not in records:
            factory = None if job.method is None else load_factory(job.method)
            try:
                records[equal] = _call(job.procedure, self._task, factory, job.arguments, self._inner(job))
            except Exception as error:  # one job must not take the others with it
                records[equal] = _failure(error)
        return records[equal]

    def _save(self, job: CellJob, record: dict[str, Any]) -> dict[str, Any]:
        limit = {} if self._options.limit is None else {"limit": self._options.limit}
        saved = {**record, **limit, **provenance(job.command, self.digest, job.code), **job.notes}
        with self._lock:
            self._results.add(job.key, saved)
        return saved

    def _inner(self, job: CellJob) -> Listener:
        return lambda report: self._listener(replace(report, stage=f"{job.label}: {report.stage}"))


@contextmanager
def open_runner(
    task: RetrievalTask | None, results: Results, options: RunOptions, listener: Listener = ignore
) -> Iterator[Runner]:
    """A runner, with the task in a folder for the children to read, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="manifind-bench-") as folder:
        if task is not None and options.here is None:
            task.write(Path(folder))
        yield Runner(task, Path(folder), results, options, listener)


def _failure(error: Exception) -> dict[str, Any]:
    if not isinstance(error, ManifindError):
        return {"state": FAILED, "reason": f"{type(error).__name__}: {error}", "hint": ""}
    state = REFUSED if isinstance(error, InputError | MissingExtraError) else FAILED
    return {"state": state, "reason": error.problem, "hint": error.hint}


def run_procedure(
    folder: str | None, method: str | None, procedure: str, arguments: dict[str, Any], listener: Listener
) -> dict[str, Any]:
    """What the child runs. folder: holds the task."""
    task = None if folder is None else _read_task(folder)
    return _call(procedure, task, None if method is None else _load_factory(method), arguments, listener)


def _call(procedure: str, *arguments: Any) -> dict[str, Any]:
    module, _, name = procedure.partition(":")
    record: dict[str, Any] = getattr(import_module(module), name)(*arguments)
    return record


@cache
def _read_task(folder: str) -> RetrievalTask:
    return read_task(Path(folder))


_load_factory = cache(load_factory)
