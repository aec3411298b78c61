"""A stand-in for the child process: the same procedure, here and at once, with hardly any training."""

from manifind.bench import runner
from manifind.bench.paper.declared import Run
from manifind.bench.paper.tables import shortened
from manifind.errors import ManifindError
from manifind.worker import Reply


class InProcess:
    """Takes the place of `Worker` in the runner; `ran` holds the method and the seed of every run."""

    def __init__(self, patch, troubles=()):
        self.ran, self._troubles = [], dict(troubles)
        patch.setattr(runner, "Worker", lambda **options: self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def call(self, function, arguments, listener):
        method, given = arguments["method"], arguments["arguments"]
        self.ran.append((method, given["seed"]))
        if method in self._troubles:
            raise ManifindError(self._troubles[method])
        short = {**given, "settings": dict(shortened(Run("", "", method, given["settings"])).settings)}
        return Reply(runner.run_procedure(**{**arguments, "arguments": short}, listener=listener))
