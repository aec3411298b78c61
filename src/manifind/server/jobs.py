"""Background jobs, the refit that runs as one in a child process, and turns for requests that take long."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any, TypeVar

import anyio

from manifind.collection.collection import load
from manifind.errors import ManifindError
from manifind.progress import Listener, Progress
from manifind.server.errors import RefusedError

NICE = 10  # of a child process: whoever searches meanwhile goes first
_T = TypeVar("_T")


class Turns:
    """at_once: requests that work. most_waiting: beside those; further ones are refused, None for no such limit.

    may_outlive: whether a request that takes too long is answered while its thread still works. Otherwise it keeps its
    turn until the thread is done, so that threads cannot pile up.
    """

    def __init__(self, at_once: int, most_waiting: int | None = None, may_outlive: bool = True) -> None:
        self._limiter, self._most_waiting = anyio.CapacityLimiter(at_once), most_waiting
        self._may_outlive = may_outlive

    async def __call__(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call it in a thread, when it is its turn."""
        waiting = self._limiter.statistics().tasks_waiting
        if self._most_waiting is not None and waiting >= self._most_waiting:
            raise RefusedError(503, f"{waiting} others are waiting already", "try again in a few seconds")
        return await anyio.to_thread.run_sync(
            function, *arguments, limiter=self._limiter, abandon_on_cancel=self._may_outlive
        )


_MOST_JOBS = 200  # of which the state is known
_MOST_WAITING = 50  # in a queue
_MOST_BYTES = 64 << 20  # that waiting jobs keep in memory
_HEAVY = ("refit", "map")  # minutes each: edits do not wait for them
_ONE_WAITING = ("refit",)  # a second one that waits would do nothing that the first does not


@dataclass
class BackgroundJob:
    """state: "waiting", "working", "done" or "failed". done of total units of a stage. error, hint: why it failed."""

    id: str
    kind: str
    state: str = "waiting"
    stage: str = ""
    done: int = 0
    total: int = 0
    note: str = ""
    error: str = ""
    hint: str = ""
    result: dict[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in ("done", "failed")

    def report(self, progress: Progress) -> None:
        """The listener of what works on it."""
        self.stage, self.done, self.total = progress.stage, progress.done, progress.total
        self.note = progress.note

    def to_dict(self) -> dict[str, Any]:
        """As the API returns it."""
        return asdict(self)


class Jobs:
    """A worker for heavy jobs, another for small edits, and the last jobs by name."""

    def __init__(self) -> None:
        self._jobs: dict[str, BackgroundJob] = {}
        self._heavy, self._edits, self._lock = ThreadPoolExecutor(1), ThreadPoolExecutor(1), Lock()
        self._bytes = 0

    def start(self, kind: str, work: Callable[[Listener], dict[str, Any] | None], n_bytes: int = 0) -> BackgroundJob:
        """Put work at the end of its queue, or find it waiting there already.

        n_bytes: what it keeps in memory until it is done.
        """
        is_heavy = kind in _HEAVY
        with self._lock:
            queue = [one for one in self._jobs.values() if not one.is_over and (one.kind in _HEAVY) == is_heavy]
            same = [one for one in queue if one.kind == kind and one.state == "waiting"]
            if same and kind in _ONE_WAITING:
                return same[0]
            if len(queue) >= _MOST_WAITING or (queue and self._bytes + n_bytes > _MOST_BYTES):
                raise RefusedError(503, f"{len(queue)} jobs are waiting already", "try again when some are done")
            job = BackgroundJob(secrets.token_hex(8), kind)
            self._remember(job)
            self._bytes += n_bytes
        (self._heavy if is_heavy else self._edits).submit(self._run, job, work, n_bytes)
        return job

    def get(self, id_: str) -> BackgroundJob:
        """A job by name."""
        job = self._jobs.get(id_)
        if job is None:
            raise RefusedError(404, "there is no such job", "ask for one that was started here, not long ago")
        return job

    def close(self) -> None:
        """Wait for nothing more."""
        for worker in (self._heavy, self._edits):
            worker.shutdown(wait=False, cancel_futures=True)

    def _remember(self, job: BackgroundJob) -> None:
        """Among the last ones; those that are not over yet are not forgotten."""
        self._jobs[job.id] = job
        over = [one.id for one in self._jobs.values() if one.is_over]
        for id_ in over[: max(len(self._jobs) - _MOST_JOBS, 0)]:
            del self._jobs[id_]

    def _run(self, job: BackgroundJob, work: Callable[[Listener], dict[str, Any] | None], n_bytes: int) -> None:
        job.state = "working"
        try:
            job.result = work(job.report)
            job.state = "done"
        except ManifindError as error:
            job.error, job.hint, job.state = error.problem, error.hint or "", "failed"
        except RefusedError as error:
            job.error, job.hint, job.state = error.error, error.hint, "failed"
        except Exception as error:  # whatever it is, the page shows it and the thread goes on
            job.error, job.state = f"{type(error).__name__}: {str(error)[:200]}", "failed"
        finally:
            with self._lock:
                self._bytes -= n_bytes


def refit_collection(path: str, listener: Listener) -> None:
    """Fit a collection anew; called in a child process."""
    os.nice(NICE)
    from manifind.model.refit import refit  # imports torch

    refit(load(path), listener=listener)
