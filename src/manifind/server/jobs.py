"""Background jobs, the refit that runs as one in a child process, and turns for requests that take long."""

import copy
import os
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Lock
from typing import Any, Literal, Self, TypeVar

import anyio
from pydantic import BaseModel, PrivateAttr

from manifind.collection.collection import load
from manifind.errors import ManifindError
from manifind.progress import Listener, Progress
from manifind.server.errors import RefusedError
from manifind.worker import Reply, Worker

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
_MOST_LISTED = 20  # of those that are over
_MOST_WAITING = 50  # in a queue
_MOST_BYTES = 64 << 20  # that waiting jobs keep in memory
_HEAVY = ("refit", "map", "clusters", "duplicates", "export")  # minutes each: edits do not wait for them
_FOLDERS = ("index", "make")  # hours, perhaps: nothing else waits for them
_ONE_WAITING = ("refit", "index")  # a second one that waits would do nothing that the first does not
_SOON = 2.0  # seconds of a stage before anything is said of its end


class JobState(BaseModel):
    """Where a job stands.

    about: which of several collections it is for, by its name in the address; empty where there is one. seconds_left:
    of this stage, None where nothing can be said of it yet.
    """

    id: str
    kind: str
    about: str = ""
    state: Literal["waiting", "working", "done", "failed"]
    stage: str
    done: int
    total: int
    note: str
    seconds_left: int | None = None
    error: str
    hint: str
    result: dict[str, Any] | None
    _began: tuple[float, int] = PrivateAttr((0.0, 0))  # when this stage began, and how much was done then

    @classmethod
    def waiting(cls, kind: str, about: str = "") -> Self:
        names: dict[str, Any] = {"id": secrets.token_hex(8), "kind": kind, "about": about}
        texts: dict[str, Any] = dict.fromkeys(("stage", "note", "error", "hint"), "")
        return cls(state="waiting", done=0, total=0, result=None, **names, **texts)

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed")

    def report(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.stage != self.stage or progress.done < self.done:
            self._began = now, progress.done
        self.stage, self.done, self.total, self.note = progress.stage, progress.done, progress.total, progress.note
        (began, before), left = self._began, self.total - self.done
        is_told = now - began >= _SOON and self.done > before and left >= 0
        self.seconds_left = round((now - began) / (self.done - before) * left) if is_told else None


def _worker_of(kind: str) -> int:
    return 1 if kind in _HEAVY else 2 if kind in _FOLDERS else 0


class Jobs:
    """A worker for small edits, one for heavy jobs, one for indexing folders, and the last jobs by name.

    `of` gives the jobs of one collection where several share all this.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, JobState] = {}
        self._workers, self._lock = [ThreadPoolExecutor(1) for _ in range(3)], Lock()
        self._bytes: dict[str, int] = {}  # that a job keeps in memory until it is over, by its id
        self._children: list[Worker] = []
        self._about: str | None = None  # the collection whose jobs these are; None for all
        self.closed = self._ended = Event()

    def of(self, about: str) -> "Jobs":
        """Only those that are about one collection; in the same queues, so that all together take no more."""
        some = copy.copy(self)
        some._about, some.closed = about, Event()
        return some

    def start(self, kind: str, work: Callable[[Listener], dict[str, Any] | None], n_bytes: int = 0) -> JobState:
        """Put work at the end of its queue, or find it waiting there already.

        n_bytes: what it keeps in memory until it is done.
        """
        worker, about = _worker_of(kind), self._about or ""
        with self._lock:
            queue = [one for one in self._jobs.values() if not one.is_over and _worker_of(one.kind) == worker]
            same = [one for one in queue if (one.kind, one.about, one.state) == (kind, about, "waiting")]
            if same and kind in _ONE_WAITING:
                return same[0]
            if len(queue) >= _MOST_WAITING or (queue and sum(self._bytes.values()) + n_bytes > _MOST_BYTES):
                raise RefusedError(503, f"{len(queue)} jobs are waiting already", "try again when some are done")
            job = JobState.waiting(kind, about)
            self._jobs[job.id] = job
            over = [one.id for one in self._jobs.values() if one.is_over]  # others are not forgotten
            for id_ in over[: max(len(self._jobs) - _MOST_JOBS, 0)]:
                del self._jobs[id_]
            self._bytes[job.id] = n_bytes
        self._workers[worker].submit(self._run, job, work)
        return job

    def get(self, id_: str) -> JobState:
        job = self._jobs.get(id_)
        if job is None or self._about not in (None, job.about):
            raise RefusedError(404, "there is no such job", "ask for one that was started here, not long ago")
        return job

    def listed(self) -> list[JobState]:
        """Those that wait or work, in their order, and behind them the last ones that are over, the newest first."""
        with self._lock:
            own = [one for one in self._jobs.values() if self._about in (None, one.about)]
        over = [one for one in own if one.is_over]
        return [one for one in own if not one.is_over] + over[: -_MOST_LISTED - 1 : -1]

    @property
    def are_over(self) -> bool:
        """Whether nothing waits or works."""
        return all(job.is_over for job in self.listed())

    @property
    def have_ended(self) -> bool:
        """Whether the server ends, and with it whatever is in work."""
        return self._ended.is_set()

    def call(self, function: str, arguments: Mapping[str, Any], listener: Listener) -> Reply:
        """What a function returns in a child process, which ends when the server does; see `Worker.call`."""
        with Worker() as worker:
            with self._lock:
                if self.have_ended:
                    raise RefusedError(503, "the server is ending", "start it again")
                self._children.append(worker)
            try:
                return worker.call(function, arguments, listener)
            finally:
                with self._lock:
                    self._children.remove(worker)

    def close(self) -> None:
        """Start nothing more. Jobs of one collection among several go on: all are closed together."""
        with self._lock:
            self.closed.set()
            children = list(self._children)
        if self._about is not None:
            return
        for worker in self._workers:
            worker.shutdown(wait=False, cancel_futures=True)
        for child in children:
            with suppress(OSError):
                child.close()

    def _run(self, job: JobState, work: Callable[[Listener], dict[str, Any] | None]) -> None:
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
                self._bytes.pop(job.id, None)


def refit_collection(path: str, listener: Listener) -> None:
    """Fit a collection anew; called in a child process."""
    os.nice(NICE)
    from manifind.model.refit import refit  # imports torch

    refit(load(path), listener=listener)
