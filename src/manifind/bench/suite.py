"""Suites: several sets, the peers tuned with the labels, GRAD-Net's default with several seeds."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifind import __version__
from manifind.bench.cell import DONE
from manifind.bench.comparison import CompareOptions, Table, run_comparison
from manifind.bench.held_out import FOLDS_PROCEDURE, Unseen
from manifind.bench.methods import choose_methods, load_factory
from manifind.bench.results import Results, default_results, machine
from manifind.bench.runner import CellJob, open_runner
from manifind.bench.sets import SETS, read_set
from manifind.bench.task import RetrievalTask
from manifind.errors import DataError, InputError
from manifind.progress import Listener


class Member(NamedTuple):
    """A set of a suite."""

    name: str  # as the suite shows it
    on: str  # of sets.SETS
    preprocess: str = "unit"  # what k-NN and its peers get
    too_slow: tuple[str, ...] = ()  # peers that are left out, because tuning them there would take hours

    @property
    def measure(self) -> str:
        return SETS[self.on].measure


SUITES: dict[str, tuple[Member, ...]] = {
    "local": (
        Member("ORL 112x92 pixels", "ORL", "center", too_slow=("gss",)),  # a square network over 10,304 dimensions
        Member("ORL aligned 32x32", "ORL aligned", "center"),
        Member("MPEG-7 masks", "MPEG-7 masks"),
        Member("MPEG-7 EfficientNet", "MPEG-7 EfficientNet", "center"),
        Member("COIL-20 pixels", "COIL-20"),
        Member("digits", "digits"),
        Member("Paris subset ResNet-34", "Paris subset"),
        Member("Oxford5k CaffeNet-128", "Oxford5k CaffeNet"),
        Member("pairs", "pairs"),
    )
}
"""By name. "local" has the sets that the default was developed on, in the form of their README."""


def read_member(member: Member, folder: Path | None = None) -> RetrievalTask:
    """The task; DataError where its files are not there."""
    return read_set(SETS[member.on], folder)._replace(name=member.name)


PEERS = ("aqe", "dba", "mr", "efficient", "smooth", "rdp", "gdp", "lcdp", "k-reciprocal", "gss")
"""The ten that are tuned with the labels."""
SLOW = ("gss",)
"""Those that train, and take as long for one setting as others for ten: they get a quarter of the settings."""
SEEDS = (0, 1, 2)
USUAL_BUDGET = 20
"""Settings that are tried for each peer where nobody says how many: more take hours."""
_REFERENCE, _OURS = "knn", "gradnet"


class BestPeer(NamedTuple):
    """The peer that came out best. settings: what the labels chose for it."""

    method: str
    value: float
    settings: dict[str, Any]


class SuiteRow(NamedTuple):
    """One set. missing: why it was not run, else None. best: None where no peer was done. values: one a seed."""

    member: Member
    missing: str | None = None
    knn: float | None = None
    best: BestPeer | None = None
    values: tuple[float, ...] = ()
    unseen: Unseen | None = None

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        """Of single runs with other seeds, not of their mean."""
        return float(np.std(self.values, ddof=1))


def run_suite(
    members: Iterable[Member], options: CompareOptions, folder: Path | None, results: Path | None, listener: Listener
) -> Iterable[SuiteRow]:
    """A row for each member as soon as it is there; one whose files are missing says so.

    options: how many settings are tried for a peer, and what is run again. folder: where the data sets live.
    results: the file that what is known is saved in; None for one of each set.
    """
    for member in members:
        try:
            task = read_member(member, folder)
        except DataError as error:
            yield SuiteRow(member, error.problem)
            continue
        yield _row(member, task, options, Results(results or default_results(task.digest())), listener)


def _row(
    member: Member, task: RetrievalTask, options: CompareOptions, results: Results, listener: Listener
) -> SuiteRow:
    from manifind.baselines import METHODS  # imports torch

    def run(names: Iterable[str], given: CompareOptions) -> Table:
        return run_comparison(task, choose_methods(",".join(names), list(METHODS)), given, results, listener)

    tuned = replace(options, preprocess=member.preprocess, measure=member.measure, tune=True)
    tables = [run((_REFERENCE, *(peer for peer in PEERS if peer not in SLOW)), tuned)]
    if slow := [peer for peer in PEERS if peer in SLOW and peer not in member.too_slow]:
        tables.append(run(slow, replace(tuned, budget=max(1, (options.budget or USUAL_BUDGET) // 4))))
    # A comparison sets the preprocessing of every method; for GRAD-Net it is set to its own default.
    default = replace(tuned, preprocess=load_factory(_OURS)().get_params()["preprocess"], tune=False)
    values = tuple(_value(run((_OURS,), replace(default, seed=seed)), _OURS) for seed in SEEDS)
    unseen = _unseen(task, member.measure, options, results, listener)
    return SuiteRow(member, None, _value(tables[0], _REFERENCE), _best(tables), values, unseen)


def _value(table: Table, method: str) -> float:
    row = next(row for row in table.rows if row.method == method)
    if row.entry.main is None:
        raise InputError(f"{method} on {table.name} {row.entry.cell.why}", "--retry runs it again")
    return row.entry.main.score.value


def _best(tables: list[Table]) -> BestPeer | None:
    found = [
        BestPeer(row.method, row.tuned.entry.main.score.value, row.tuned.chosen)
        for table in tables
        for row in table.rows
        if row.method in PEERS and row.tuned is not None and row.tuned.entry.main is not None
    ]
    return max(found, key=lambda one: one.value, default=None)


def _unseen(task: RetrievalTask, measure: str, options: CompareOptions, results: Results, listener: Listener) -> Unseen:
    kind = {"kind": "unseen", "method": _OURS, "measure": measure}
    key = {**kind, "data": task.digest(), "version": __version__, "machine": machine()}
    arguments = {"settings": {"random_state": 0}, "options": {"measures": [measure]}, "seed": 0}
    with open_runner(task, results, replace(options, limit=None), listener) as runner:
        record, _ = runner.get(CellJob(key, FOLDS_PROCEDURE, _OURS, arguments, _OURS))
    if record["state"] != DONE:
        raise InputError(f"{_OURS} on {task.name} {record['state']}: {record['reason']}", "--retry runs it again")
    return Unseen(**record["values"])
