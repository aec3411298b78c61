"""A stand-in for the process of a method: the same task, here and at once, with hardly any training."""

from gradnet.experiments.compare_methods import load_factory
from gradnet.experiments.compare_question import read_question
from gradnet.experiments.compare_worker import outcome
from gradnet.reproduce import runner
from gradnet.reproduce.declared import Run
from gradnet.reproduce.smoke import shortened
from gradnet.reproduce.tasks import TASKS, load_task


class InProcess:
    """Takes the place of `run_job` in the runner; `ran` holds the method and the seed of every run."""

    def __init__(self, patch, troubles=()):
        self.ran, self._troubles = [], dict(troubles)
        patch.setattr(runner, "run_job", self)

    def __call__(self, job, runs, listener):
        name = next(name for name, task in TASKS.items() if task.address == job.task)
        question, factory = read_question(job.folder), load_factory(job.method)
        for one in runs:
            self.ran.append((job.method, one["seed"]))
            if job.method in self._troubles:
                yield {"state": "failed", "reason": self._troubles[job.method], "hint": ""}
                continue
            short = {**one, "settings": dict(shortened(Run("", "", job.method, one["settings"])).settings)}
            yield outcome(lambda short=short: load_task(name)(question, factory, short, listener))
