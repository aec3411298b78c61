"""Work that takes longer than a request: done one after the other, told of while it goes on."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any

from gradnet.errors import GradNetError
from gradnet.progress import Listener, Progress
from gradnet.web.problems import RefusedError

_REMEMBERED = 200
_MOST_WAITING = 50


@dataclass
class Job:
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

    def hear(self, progress: Progress) -> None:
        """A listener for what works on it."""
        self.stage, self.done, self.total = progress.stage, progress.done, progress.total
        self.note = progress.note

    def told(self) -> dict[str, Any]:
        """As the API tells it."""
        return asdict(self)


class Jobs:
    """One worker, and the last jobs by name."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._worker, self._lock = ThreadPoolExecutor(1), Lock()

    def start(self, kind: str, work: Callable[[Listener], dict[str, Any] | None]) -> Job:
        """Put work at the end of the queue."""
        job = Job(secrets.token_hex(8), kind)
        with self._lock:
            waiting = sum(one.state in ("waiting", "working") for one in self._jobs.values())
            if waiting >= _MOST_WAITING:
                raise RefusedError(503, f"{waiting} jobs are waiting already", "try again when some are done")
            self._jobs[job.id] = job
            while len(self._jobs) > _REMEMBERED:
                self._jobs.popitem(last=False)
        self._worker.submit(self._run, job, work)
        return job

    def get(self, id_: str) -> Job:
        """A job by name."""
        job = self._jobs.get(id_)
        if job is None:
            raise RefusedError(404, "there is no such job", "ask for one that was started here, not long ago")
        return job

    def close(self) -> None:
        """Wait for nothing more."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _run(self, job: Job, work: Callable[[Listener], dict[str, Any] | None]) -> None:
        job.state = "working"
        try:
            job.result = work(job.hear)
            job.state = "done"
        except GradNetError as error:
            job.error, job.hint, job.state = error.problem, error.hint or "", "failed"
        except RefusedError as error:
            job.error, job.hint, job.state = error.error, error.hint, "failed"
        except Exception as error:  # whatever it is, the page is told and the worker goes on
            job.error, job.state = f"{type(error).__name__}: {str(error)[:200]}", "failed"


def in_process(module: str, arguments: list[str], listener: Listener) -> None:
    """Run a module of ours in a process of its own, which prints its progress as JSON lines, and its error as one."""
    command = [sys.executable, "-m", module, *arguments]
    problem: dict[str, str] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        for line in process.stdout or ():
            said = json.loads(line)
            if "error" in said:
                problem = said
            else:
                listener(Progress(**said))
    if problem or process.returncode:
        words = problem.get("error", f"it ended with the status {process.returncode}")
        raise RefusedError(500, words, problem.get("hint", ""))
