"""Runs the cells of a comparison that are not known yet, and keeps each as soon as it is finished."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from manifind import __version__
from manifind.bench.cell import CELL, DONE, FAILED, TRIAL, Cell, Scored, read_cell
from manifind.bench.methods import Method, candidates, load_factory
from manifind.bench.process import MethodJob, run_job
from manifind.bench.results import Results, machine
from manifind.bench.task import RetrievalTask
from manifind.errors import InputError
from manifind.evaluation.protocols import Difference, compare
from manifind.progress import Listener, Progress, ignore
from manifind.text import count

_USUAL = "mAP medium"  # of the three levels of revisited lists, the one that is compared by


class RunOptions(NamedTuple):
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


class BestSettings(NamedTuple):
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
        self, task: RetrievalTask, folder: Path, options: RunOptions, results: Results, listener: Listener
    ) -> None:
        self.digest = task.digest()
        self._name, self._folder, self._options = task.name, folder, options
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

    def tuned(self, method: Method, default: Cell) -> BestSettings | None:
        """The best of the method's grid by the labels; None where it has none."""
        if not (grid := self.grid(method)):
            return None
        trials = self._trials(method, grid)
        values = [self._value(trial) for trial in trials]
        shown, best = main_score(default, self._options.measure), max(values)
        unusable = sum(trial["state"] != DONE for trial in trials)
        if unusable == len(trials) or (shown is not None and best <= shown.score.value):
            self.done += 1
            return BestSettings(default, True, {}, len(trials), unusable)
        chosen = grid[values.index(best)]
        return BestSettings(*self.cell(method, chosen), chosen, len(trials), unusable)

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
        job = MethodJob(self._folder, method.address, TRIAL if is_trial else CELL, self._options.limit)
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
    task: RetrievalTask, methods: Sequence[Method], options: RunOptions, results: Results, listener: Listener
) -> Iterator[Runner]:
    """A runner, with the task in a folder for the processes to read, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="manifind-compare-") as folder:
        runner = Runner(task, Path(folder), options, results, listener)
        n_tuned = sum(bool(runner.grid(method)) for method in methods) if options.tune else 0
        runner.total = len(methods) + n_tuned
        task.write(Path(folder))
        yield runner


TUNED = "tuned with the labels"
"""What such a score is called wherever it is shown."""
_REFERENCE = "knn"


class Entry(NamedTuple):
    """A cell as it is shown. kept: whether it is from an earlier run. main: the score to show, if there is one.

    against: how far it is above k-NN, query by query; None where that is missing, or this is k-NN itself.
    """

    cell: Cell
    kept: bool
    main: Scored | None = None
    against: Difference | None = None


class Tuned(NamedTuple):
    """The best that the labels could choose. chosen: its settings, empty where the default is the best.

    tried: how many were run. unusable: how many of these were refused or failed.
    """

    entry: Entry
    chosen: dict[str, Any]
    tried: int
    unusable: int

    @property
    def words(self) -> str:
        """What was chosen out of how many, for people."""
        chosen = ", ".join(f"{name}={value!r}" for name, value in self.chosen.items())
        unusable = f", {self.unusable} of them refused or failed" if self.unusable else ""
        return f"{chosen or 'the default is the best'} ({count(self.tried, 'setting')} tried{unusable})"


class Row(NamedTuple):
    """One method: by default and, where it was tuned, with the settings that the labels chose."""

    method: str
    entry: Entry
    tuned: Tuned | None = None


class Table(NamedTuple):
    """One task answered by every method. measure, rule: of the score shown; None where no method was done."""

    name: str
    items: int
    dimension: int
    queries: int
    digest: str
    preprocess: str
    measure: str | None
    rule: str | None
    rows: list[Row]


def run_comparison(
    task: RetrievalTask, methods: Sequence[Method], options: RunOptions, results: Results, listener: Listener = ignore
) -> Table:
    """Every method by default, then, if asked for, with settings tuned by the labels.

    Each runs in a process of its own; what one does cannot hurt another. Whatever is finished is in `results`
    at once, so that the same call after an interruption goes on where it was.
    """
    with open_runner(task, methods, options, results, listener) as runner:
        cells = [(method, *runner.cell(method, {})) for method in methods]
        best = {m.label: runner.tuned(m, cell) for m, cell, _ in cells} if options.tune else {}
    reference = next((cell for method, cell, _ in cells if method.address == _REFERENCE), None)
    rows = []
    for method, cell, kept in cells:
        entry = _entry(cell, kept, reference, options.measure)
        rows.append(Row(method.label, entry, _tuned(entry, best.get(method.label), reference, options.measure)))
    shown = next((row.entry.main.score for row in rows if row.entry.main), None)
    return Table(
        task.name,
        len(task.descriptors),
        task.descriptors.shape[1],
        task.n_queries,
        runner.digest,
        options.preprocess,
        shown.measure if shown else None,
        shown.rule if shown else None,
        rows,
    )


def _tuned(entry: Entry, best: BestSettings | None, reference: Cell | None, measure: str | None) -> Tuned | None:
    if best is None:
        return None
    is_default = best.cell is entry.cell
    shown = entry if is_default else _entry(best.cell, best.kept, reference, measure)
    return Tuned(shown, best.chosen, best.tried, best.unusable)


def _entry(cell: Cell, kept: bool, reference: Cell | None, measure: str | None) -> Entry:
    main = main_score(cell, measure)
    base = None if reference is None or reference is cell else main_score(reference, measure)
    return Entry(cell, kept, main, compare(main.score, base.score) if main and base else None)
