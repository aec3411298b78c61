"""Background jobs, the refit that runs as one in a child process, and turns for requests that take long."""

import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Literal, Self, TypeVar

import anyio
from pydantic import BaseModel

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


class JobState(BaseModel):
    """Where a job stands."""

    id: str
    kind: str
    state: Literal["waiting", "working", "done", "failed"]
    stage: str
    done: int
    total: int
    note: str
    error: str
    hint: str
    result: dict[str, Any] | None

    @classmethod
    def waiting(cls, kind: str) -> Self:
        texts = dict.fromkeys(("stage", "note", "error", "hint"), "")
        return cls(id=secrets.token_hex(8), kind=kind, state="waiting", done=0, total=0, result=None, **texts)

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed")

    def report(self, progress: Progress) -> None:
        self.stage, self.done, self.total, self.note = progress.stage, progress.done, progress.total, progress.note


class Jobs:
    """A worker for heavy jobs, another for small edits, and the last jobs by name."""

    def __init__(self) -> None:
        self._jobs: dict[str, JobState] = {}
        self._heavy, self._edits, self._lock = ThreadPoolExecutor(1), ThreadPoolExecutor(1), Lock()
        self._bytes = 0

    def start(self, kind: str, work: Callable[[Listener], dict[str, Any] | None], n_bytes: int = 0) -> JobState:
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
            job = JobState.waiting(kind)
            self._jobs[job.id] = job
            over = [one.id for one in self._jobs.values() if one.is_over]  # others are not forgotten
            for id_ in over[: max(len(self._jobs) - _MOST_JOBS, 0)]:
                del self._jobs[id_]
            self._bytes += n_bytes
        (self._heavy if is_heavy else self._edits).submit(self._run, job, work, n_bytes)
        return job

    def get(self, id_: str) -> JobState:
        job = self._jobs.get(id_)
        if job is None:
            raise RefusedError(404, "there is no such job", "ask for one that was started here, not long ago")
        return job

    def close(self) -> None:
        for worker in (self._heavy, self._edits):
            worker.shutdown(wait=False, cancel_futures=True)

    def _run(self, job: JobState, work: Callable[[Listener], dict[str, Any] | None], n_bytes: int) -> None:
        job.state = "working"
        try:
            job.result = work(job.report)
            job.state = "done"
        except ManifindError as error:
            job.error, job.hint, job.state = error.problem, error.hint, "failed"
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
