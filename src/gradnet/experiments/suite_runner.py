"""A suite run: on every set the peers tuned with the labels, and GRAD-Net with its default and several seeds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradnet import __version__
from gradnet.errors import DataError, InputError
from gradnet.experiments.compare import Options, Table, run_comparison
from gradnet.experiments.compare_cell import DONE
from gradnet.experiments.compare_methods import Method, choose_methods, load_factory
from gradnet.experiments.compare_provenance import machine
from gradnet.experiments.compare_question import Question
from gradnet.experiments.compare_store import Results
from gradnet.experiments.suite import Member, read_member
from gradnet.experiments.unseen import Unseen, measure_unseen
from gradnet.graph.trust import LittleToLearnWarning
from gradnet.progress import Listener

PEERS = ("aqe", "dba", "mr", "efficient", "smooth", "rdp", "gdp", "lcdp", "k-reciprocal", "gss")
"""The ten that are tuned with the labels."""
SLOW = ("gss",)
"""Those that train, and take as long for one setting as others for ten: they get a quarter of the settings."""
SEEDS = (0, 1, 2)
_REFERENCE, _OURS = "knn", "gradnet"


class Best(NamedTuple):
    """The peer that came out best. settings: what the labels chose for it."""

    method: str
    value: float
    settings: dict[str, Any]


class SuiteRow(NamedTuple):
    """One set. missing: why it was not run, else None. best: None where no peer was done. values: one a seed."""

    member: Member
    missing: str | None = None
    knn: float | None = None
    best: Best | None = None
    values: tuple[float, ...] = ()
    unseen: Unseen | None = None

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        """Of single runs with other seeds, not of their mean."""
        return float(np.std(self.values, ddof=1))


class SuiteOptions(NamedTuple):
    """budget: most settings to try for a peer. limit: seconds for one. fresh, retry: as in Options."""

    budget: int
    limit: float | None = None
    fresh: bool = False
    retry: bool = False


def run_suite(
    members: Iterable[Member],
    options: SuiteOptions,
    folder: Path | None,
    results: Callable[[Question], Results],
    listener: Listener,
) -> Iterable[SuiteRow]:
    """A row for each member as soon as it is there; one whose files are missing says so.

    folder: where the data sets live. results: where what is known of a question is kept.
    """
    for member in members:
        try:
            question = read_member(member, folder, listener)
        except DataError as error:
            yield SuiteRow(member, error.problem)
            continue
        yield _row(member, question, options, results(question), listener)


def _row(
    member: Member, question: Question, options: SuiteOptions, results: Results, listener: Listener
) -> SuiteRow:
    default = Options(
        _default_preprocess(),
        measure=member.measure,
        limit=options.limit,
        fresh=options.fresh,
        retry=options.retry,
    )
    peers = default._replace(preprocess=member.preprocess, tune=True, budget=options.budget)
    quick = [peer for peer in PEERS if peer not in SLOW]
    tables = [run_comparison(question, _methods(_REFERENCE, *quick), peers, results, listener)]
    if slow := [peer for peer in PEERS if peer in SLOW and peer not in member.too_slow]:
        fewer = peers._replace(budget=max(1, options.budget // 4))
        tables.append(run_comparison(question, _methods(*slow), fewer, results, listener))
    values = []
    for seed in SEEDS:
        one = run_comparison(question, _methods(_OURS), default._replace(seed=seed), results, listener)
        values.append(_value(one, _OURS))
    unseen = _unseen(question, member, options, results, listener)
    return SuiteRow(member, None, _value(tables[0], _REFERENCE), _best(tables), tuple(values), unseen)


def _methods(*names: str) -> list[Method]:
    from gradnet.methods import METHODS  # imports torch

    return choose_methods(",".join(names), list(METHODS))


def _default_preprocess() -> str:
    """A comparison tells every method how to preprocess; here GRAD-Net is told what it would do anyway."""
    preprocess: str = load_factory(_OURS)().get_params()["preprocess"]
    return preprocess


def _value(table: Table, method: str) -> float:
    row = next(row for row in table.rows if row.method == method)
    if row.entry.main is None:
        raise InputError(f"{method} on {table.name} {row.entry.cell.why}", "--retry runs it again")
    return row.entry.main.score.value


def _best(tables: list[Table]) -> Best | None:
    """Of the tuned peers."""
    found = [
        Best(row.method, row.tuned.entry.main.score.value, row.tuned.chosen)
        for table in tables
        for row in table.rows
        if row.method in PEERS and row.tuned is not None and row.tuned.entry.main is not None
    ]
    return max(found, key=lambda one: one.value, default=None)


def _unseen(
    question: Question, member: Member, options: SuiteOptions, results: Results, listener: Listener
) -> Unseen:
    """Measured here, in this process, and kept like everything else."""
    key = {
        "kind": "unseen",
        "method": _OURS,
        "measure": member.measure,
        "data": question.digest(),
        "version": __version__,
        "machine": machine(),
    }
    known = None if options.fresh else results.get(key)
    if known is not None:
        return Unseen(**known["values"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LittleToLearnWarning)  # the guard speaks once for each fold
        found = measure_unseen(question, load_factory(_OURS), {"random_state": 0}, member.measure, listener)
    results.add(key, {"state": DONE, "values": found._asdict()})
    return found
