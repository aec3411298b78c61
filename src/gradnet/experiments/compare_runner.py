"""What runs the cells of a comparison that are not known yet, and keeps each as soon as it is finished."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gradnet import __version__
from gradnet.errors import InputError
from gradnet.experiments.compare_cell import CELL, DONE, FAILED, TRIAL, Cell, Scored, read_cell
from gradnet.experiments.compare_methods import Method, load_factory
from gradnet.experiments.compare_process import Job, run_job
from gradnet.experiments.compare_provenance import machine
from gradnet.experiments.compare_question import Question
from gradnet.experiments.compare_store import Results
from gradnet.experiments.tuning import candidates
from gradnet.progress import Listener, Progress

_USUAL = "mAP medium"  # of the three levels of revisited lists, the one that is compared by


class Options(NamedTuple):
    """How a comparison is made.

    measure: the score to show and to tune by; None: the first, and with revisited lists the medium level.
    limit: most seconds for each run. fresh: run what is known too. retry: run what failed again.
    tune: search the settings with the labels. budget: most settings to try for each method.
    """

    preprocess: str = "unit"
    seed: int = 0
    measure: str | None = None
    limit: float | None = None
    fresh: bool = False
    retry: bool = False
    tune: bool = False
    budget: int | None = None


class Best(NamedTuple):
    """What tuning found. kept: whether the cell was known. chosen: its settings; empty: the default is the best.

    tried: how many settings were run. unusable: how many of these were refused or failed.
    """

    cell: Cell
    kept: bool
    chosen: dict[str, Any]
    tried: int
    unusable: int


def main_score(cell: Cell, measure: str | None) -> Scored | None:
    """The score to show; an unknown measure is refused with those that there are."""
    scores = {one.score.measure: one for one in cell.scores}
    if not scores:
        return None
    name = _usual(scores) if measure is None else measure
    if name not in scores:
        raise InputError(
            f"this data has no score called {name!r}; expected one of {', '.join(map(repr, scores))}",
            "leave --measure out for the usual one",
        )
    return scores[name]


def _usual(scores: dict[str, Any]) -> str:
    return _USUAL if _USUAL in scores else next(iter(scores))


class Runner:
    """Runs what is not known yet, and tells how far that is."""

    def __init__(
        self, question: Question, folder: Path, options: Options, results: Results, listener: Listener
    ) -> None:
        self.digest = question.digest()
        self._name, self._folder, self._options = question.name, folder, options
        self._results, self._listener, self._machine = results, listener, machine()
        self.done, self.total = 0, 0

    def cell(self, method: Method, chosen: dict[str, Any]) -> tuple[Cell, bool]:
        """The cell with these settings besides the defaults, and whether it was known."""
        self._tell(method.label)
        key = self._key(method, chosen, "cell")
        record = self._known(key)
        kept = record is not None
        if record is None:
            record = self._run(method, [key], is_trial=False)[0]
        self.done += 1
        self._tell(method.label)
        cell = read_cell(record)
        main_score(cell, self._options.measure)  # a measure that is none is refused at the first chance
        return cell, kept

    def tuned(self, method: Method, default: Cell) -> Best | None:
        """The best of the method's grid by the labels; None where it has none."""
        if not (grid := self.grid(method)):
            return None
        trials = self._trials(method, grid)
        values = [self._value(trial) for trial in trials]
        shown, best = main_score(default, self._options.measure), max(values)
        unusable = sum(trial["state"] != DONE for trial in trials)
        if unusable == len(trials) or (shown is not None and best <= shown.score.value):
            self.done += 1
            return Best(default, True, {}, len(trials), unusable)
        chosen = grid[values.index(best)]
        return Best(*self.cell(method, chosen), chosen, len(trials), unusable)

    def grid(self, method: Method) -> list[dict[str, Any]]:
        """The settings to try."""
        if method.is_own:
            return []
        factory = load_factory(method.address)
        return candidates(method.address, factory, self._options.budget, self._options.seed)

    def _trials(self, method: Method, grid: list[dict[str, Any]]) -> list[dict[str, Any]]:
        keys = [self._key(method, chosen, "trial") for chosen in grid]
        known = [self._known(key) for key in keys]
        missing = [key for key, record in zip(keys, known, strict=True) if record is None]
        ran = iter(self._run(method, missing, is_trial=True))
        return [next(ran) if record is None else record for record in known]

    def _value(self, trial: dict[str, Any]) -> float:
        """What a trial is compared by; nothing is worse than one that came to nothing."""
        if trial["state"] != DONE:
            return float("-inf")
        values: dict[str, float] = trial["values"]
        return values.get(self._options.measure or _usual(values), float("-inf"))

    def _run(self, method: Method, keys: Sequence[dict[str, Any]], *, is_trial: bool) -> list[dict[str, Any]]:
        """The results, each kept as soon as it is there."""
        job = Job(self._folder, method.address, TRIAL if is_trial else CELL, self._options.limit)
        records: list[dict[str, Any]] = []
        settings = [key["settings"] for key in keys]

        def tell() -> None:
            if is_trial:
                self._listener(Progress(f"tuning {method.label}", len(records), len(keys)))

        tell()
        with closing(run_job(job, settings, self._inner(method))) as results:
            for key, record in zip(keys, results, strict=True):
                self._results.add(key, {**record, "limit": self._options.limit})
                records.append(record)
                tell()
        return records

    def _known(self, key: dict[str, Any]) -> dict[str, Any] | None:
        """What is kept under this key, unless it is to be run again."""
        record = None if self._options.fresh else self._results.get(key)
        if record is None or record["state"] != FAILED:
            return record
        earlier, now = record.get("limit"), self._options.limit
        had_less_time = earlier is not None and (now is None or now > earlier)
        return None if self._options.retry or had_less_time else record

    def _key(self, method: Method, chosen: dict[str, Any], kind: str) -> dict[str, Any]:
        shared = method.shared_settings(self._options.preprocess, self._options.seed)
        return {
            "kind": kind,
            "method": method.identity,
            "settings": {**shared, **chosen},
            "data": self.digest,
            "version": __version__,
            "machine": self._machine,
        }

    def _inner(self, method: Method) -> Listener:
        def listen(report: Progress) -> None:
            stage = f"{method.label}: {report.stage}"
            self._listener(Progress(stage, report.done, report.total, report.note))

        return listen

    def _tell(self, note: str) -> None:
        self._listener(Progress(f"comparing on {self._name}", self.done, self.total, note))


@contextmanager
def open_runner(
    question: Question, methods: Sequence[Method], options: Options, results: Results, listener: Listener
) -> Iterator[Runner]:
    """A runner, with the question in a folder for the processes to read, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="gradnet-compare-") as folder:
        runner = Runner(question, Path(folder), options, results, listener)
        n_tuned = sum(bool(runner.grid(method)) for method in methods) if options.tune else 0
        runner.total = len(methods) + n_tuned
        question.write(Path(folder))
        yield runner
