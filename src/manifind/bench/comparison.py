"""Methods compared on tasks: one row a method, with its score, interval, difference to k-NN and costs."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

from manifind import __version__
from manifind.bench.cell import CELL, DONE, TRIAL, Cell, Scored, read_cell
from manifind.bench.methods import Method, candidates, load_factory
from manifind.bench.results import Results, machine
from manifind.bench.runner import CellJob, Runner, RunOptions, open_runner
from manifind.bench.task import RetrievalTask
from manifind.errors import InputError
from manifind.evaluation.protocols import Difference, compare
from manifind.progress import Listener, Progress, ignore
from manifind.text import count

TUNED = "tuned with the labels"
"""What such a score is called wherever it is shown."""
_REFERENCE = "knn"
_USUAL = "mAP medium"  # of the three levels of revisited lists, the one that is compared by


@dataclass(frozen=True)
class CompareOptions(RunOptions):
    """How a comparison is made."""

    preprocess: str = "unit"
    seed: int = 0
    measure: str | None = None  # to show and to tune by; None: the first, and with revisited lists the medium level
    tune: bool = False  # search the settings with the labels, too
    budget: int | None = None  # most settings to try


class Entry(NamedTuple):
    """A cell as it is shown."""

    cell: Cell
    is_cached: bool  # whether it is from an earlier run
    main: Scored | None = None  # the score to show, if there is one
    against: Difference | None = None  # how far above k-NN, query by query; None where that is missing, or is this


class Tuned(NamedTuple):
    """The best that the labels could choose."""

    entry: Entry
    chosen: dict[str, Any]  # its settings, empty where the default is the best
    tried: int  # how many settings were run
    unusable: int  # how many of these were refused or failed
    scores: tuple[float | None, ...] = ()  # of every setting, in the order of `methods.candidates`; None for unusable

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

    @property
    def size(self) -> str:
        numbers = {"item": self.items, "dimension": self.dimension, "query": self.queries}
        return ", ".join(count(number, noun) for noun, number in numbers.items())


def run_comparison(
    task: RetrievalTask,
    methods: Sequence[Method],
    options: CompareOptions,
    results: Results,
    listener: Listener = ignore,
) -> Table:
    """Every method by default, then, if asked for, with settings tuned by the labels.

    Each runs in a process of its own; what one does cannot hurt another. Whatever is finished is in `results`
    at once, so that the same call after an interruption goes on where it was.
    """
    with open_runner(task, results, options, listener) as runner:
        cells = _Cells(runner, task.name, methods, options, listener)
        found = [(method, *cells.cell(method, {})) for method in methods]
        reference = next((cell for method, cell, _ in found if method.address == _REFERENCE), None)
        rows = []
        for method, cell, is_cached in found:
            entry = _entry(cell, is_cached, reference, options.measure)
            rows.append(Row(method.label, entry, cells.tuned(method, entry, reference) if options.tune else None))
    shown = next((row.entry.main.score for row in rows if row.entry.main), None)
    measure, rule = (shown.measure, shown.rule) if shown else (None, None)
    n, d = task.descriptors.shape
    return Table(task.name, n, d, task.n_queries, runner.digest, options.preprocess, measure, rule, rows)


class _Cells:
    """The cells of a table: what is known, and what is run. done, of total: how far the table is."""

    def __init__(
        self, runner: Runner, name: str, methods: Sequence[Method], options: CompareOptions, listener: Listener
    ) -> None:
        self._runner, self._name, self._options, self._listener = runner, name, options, listener
        self._machine = machine()
        self._done, self._total = 0, len(methods) + sum(bool(self._grid(one)) for one in methods if options.tune)

    def cell(self, method: Method, chosen: dict[str, Any]) -> tuple[Cell, bool]:
        """The cell with these settings besides the defaults, and whether it was known."""
        self._report(method)
        record, is_cached = self._runner.get(self._job(method, chosen, CELL))
        self._done += 1
        self._report(method)
        cell = read_cell(record)
        main_score(cell, self._options.measure)  # a measure that is none is refused at the first chance
        return cell, is_cached

    def tuned(self, method: Method, default: Entry, reference: Cell | None) -> Tuned | None:
        """The best of the method's grid by the labels; None where it has none."""
        if not (grid := self._grid(method)):
            return None
        trials = self._trials(method, grid)
        values = [self._value(trial) for trial in trials]
        scores = tuple(value if value > float("-inf") else None for value in values)
        unusable = sum(trial["state"] != DONE for trial in trials)
        if unusable == len(trials) or (default.main is not None and max(values) <= default.main.score.value):
            self._done += 1
            return Tuned(default, {}, len(trials), unusable, scores)
        chosen = grid[values.index(max(values))]
        entry = _entry(*self.cell(method, chosen), reference, self._options.measure)
        return Tuned(entry, chosen, len(trials), unusable, scores)

    def _grid(self, method: Method) -> list[dict[str, Any]]:
        if method.is_own:
            return []
        return candidates(method.address, load_factory(method.address), self._options.budget, self._options.seed)

    def _trials(self, method: Method, grid: list[dict[str, Any]]) -> list[dict[str, Any]]:
        jobs = [self._job(method, chosen, TRIAL) for chosen in grid]
        known = {number: record for number, job in enumerate(jobs) if (record := self._runner.known(job)) is not None}
        missing = [number for number in range(len(jobs)) if number not in known]
        stage = f"tuning {method.label}"
        self._listener(Progress(stage, 0, len(missing)))
        with closing(self._runner.run([jobs[number] for number in missing])) as found:
            for done, (number, record) in enumerate(zip(missing, found, strict=True), 1):
                known[number] = record
                self._listener(Progress(stage, done, len(missing)))
        return [known[number] for number in range(len(jobs))]

    def _value(self, trial: dict[str, Any]) -> float:
        """What a trial is compared by; nothing is worse than one that came to nothing."""
        values: dict[str, float] = trial["values"] if trial["state"] == DONE else {"": float("-inf")}
        return values.get(self._options.measure or _usual(values), float("-inf"))

    def _job(self, method: Method, chosen: dict[str, Any], procedure: str) -> CellJob:
        settings = {**method.shared_settings(self._options.preprocess, self._options.seed), **chosen}
        kind = {"kind": "cell" if procedure == CELL else "trial", "method": method.identity, "settings": settings}
        key = {**kind, "data": self._runner.digest, "version": __version__, "machine": self._machine}
        return CellJob(key, procedure, method.address, {"settings": settings, "seed": self._options.seed}, method.label)

    def _report(self, method: Method) -> None:
        self._listener(Progress(f"comparing on {self._name}", self._done, self._total, method.label))


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


def _entry(cell: Cell, is_cached: bool, reference: Cell | None, measure: str | None) -> Entry:
    main = main_score(cell, measure)
    base = None if reference is None or reference is cell else main_score(reference, measure)
    return Entry(cell, is_cached, main, compare(main.score, base.score) if main and base else None)
