"""A stand-in for the process of a method: the same task, here and at once, with hardly any training."""

from manifind.bench.methods import load_factory
from manifind.bench.paper import runner
from manifind.bench.paper.artefacts import shortened
from manifind.bench.paper.declared import Run
from manifind.bench.paper.procedures import PROCEDURES, load_procedure
from manifind.bench.task import read_task
from manifind.bench.worker import outcome


class InProcess:
    """Takes the place of `run_job` in the runner; `ran` holds the method and the seed of every run."""

    def __init__(self, patch, troubles=()):
        self.ran, self._troubles = [], dict(troubles)
        patch.setattr(runner, "run_job", self)

    def __call__(self, job, runs, listener):
        name = next(name for name, task in PROCEDURES.items() if task.address == job.procedure)
        task, factory = read_task(job.folder), load_factory(job.method)
        for one in runs:
            self.ran.append((job.method, one["seed"]))
            if job.method in self._troubles:
                yield {"state": "failed", "reason": self._troubles[job.method], "hint": ""}
                continue
            short = {**one, "settings": dict(shortened(Run("", "", job.method, one["settings"])).settings)}
            yield outcome(lambda short=short: load_procedure(name)(task, factory, short, listener))
