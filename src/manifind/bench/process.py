"""Starts the process of a method, reads what it reports, and says why it failed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from manifind.bench.cell import FAILED
from manifind.progress import Listener, Progress

_WORKER = "manifind.bench.worker"
_ERRORS = "errors.txt"
_LONGEST_REASON = 300


class MethodJob(NamedTuple):
    """folder: holds the task. method: its address. task: what to run, "module:function", such as CELL.

    The task takes the task, what makes the method, one of the runs and a listener; it returns a record.
    limit: most seconds for a run, the start of its process included; None for no limit.
    """

    folder: Path
    method: str
    procedure: str
    limit: float | None


def run_job(
    job: MethodJob, runs: Sequence[dict[str, Any]], listener: Listener
) -> Generator[dict[str, Any], None, None]:
    """One result for each run, in their order; after a crash a new process goes on behind the run that crashed."""
    left = list(runs)
    while left:
        for result in _results(job, left, listener):
            del left[0]
            yield result


def _results(job: MethodJob, runs: list[dict[str, Any]], listener: Listener) -> Iterator[dict[str, Any]]:
    """Results of one process, the last of them a failure if it ended too early."""
    n_expected = len(runs)
    with _started(job, runs) as process, _Clock(process, job.limit) as clock:
        for line in process.stdout or ():
            message = json.loads(line)
            if "progress" in message:
                listener(Progress(*message["progress"]))
                continue
            clock.begin()
            n_expected -= 1
            yield message["result"]
        if n_expected:
            yield {"state": FAILED, "reason": _why(process.wait(), job, clock.is_over), "hint": ""}


@contextmanager
def _started(job: MethodJob, runs: list[dict[str, Any]]) -> Iterator[subprocess.Popen[str]]:
    contents = {"method": job.method, "procedure": job.procedure, "runs": runs}
    (job.folder / "job.json").write_text(json.dumps(contents))
    with (job.folder / _ERRORS).open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603  it is this Python and a module of ours
            [sys.executable, "-P", "-m", _WORKER, str(job.folder)],  # -P: the user's folder holds no module of ours
            stdin=subprocess.PIPE,  # held open: its end tells the worker that we are gone
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for us to hear; and what the worker starts ends with it
        )
        try:
            yield process
        finally:
            _end(process)
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    process.wait()


class _Clock:
    """Ends a process when a run takes longer than the limit."""

    def __init__(self, process: subprocess.Popen[str], limit: float | None) -> None:
        self._process, self._limit, self.is_over = process, limit, False
        self._timer: threading.Timer | None = None

    def __enter__(self) -> _Clock:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def begin(self) -> None:
        """Count from now."""
        self.__exit__()
        if self._limit is not None:
            self._timer = threading.Timer(self._limit, self._stop)
            self._timer.daemon = True
            self._timer.start()

    def _stop(self) -> None:
        self.is_over = True
        _end(self._process)


def _why(code: int, job: MethodJob, is_over: bool) -> str:
    if is_over:
        return f"stopped after {job.limit:g} s, the time limit"
    if code < 0:
        name = signal.Signals(-code).name
        memory = ", as the system does where memory runs out" if name == "SIGKILL" else ""
        return f"its process was ended by {name}{memory}"
    said = (job.folder / _ERRORS).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"its process ended with code {code}: {said[-1][:_LONGEST_REASON] if said else 'it said nothing'}"
