"""Suites: several sets, every peer tuned with the labels, GRAD-Net's default with several seeds, on equal terms."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifind.bench.cell import CELL, DONE, TRIAL, finished
from manifind.bench.comparison import CompareOptions, Row, run_comparison
from manifind.bench.held_out import FOLDS_PROCEDURE, Unseen
from manifind.bench.methods import GRIDS, Method, candidates, load_factory
from manifind.bench.results import Results, cache_folder, default_results, provenance, versions
from manifind.bench.runner import CellJob, open_runner, task_code
from manifind.bench.sets import SETS, read_set
from manifind.bench.task import RetrievalTask
from manifind.errors import DataError, InputError
from manifind.progress import Listener


@dataclass(frozen=True)
class Member:
    """A set of a suite. Each way of preprocessing is a row, in which all methods see the same descriptors."""

    name: str  # as the suite shows it
    on: str  # of sets.SETS
    preprocess: tuple[str, ...] = ("unit",)
    budgets: dict[str, int] = field(default_factory=dict)  # most settings of peers whose grid would take hours there

    @property
    def measure(self) -> str:
        return SETS[self.on].measure


_BOTH = ("unit", "center")
_EIGENVECTORS = {"gdp": 3, "rdp": 3, "fsr": 3}  # half a minute for each setting at 5,063 items
SUITES: dict[str, tuple[Member, ...]] = {
    "local": (
        Member("ORL 112x92 pixels", "ORL", _BOTH, {"gss": 0}),  # a square network over 10,304 dimensions
        Member("ORL aligned 32x32", "ORL aligned", _BOTH),
        Member("MPEG-7 masks", "MPEG-7 masks"),
        Member("MPEG-7 EfficientNet", "MPEG-7 EfficientNet", _BOTH),
        Member("COIL-20 pixels", "COIL-20"),
        Member("digits", "digits"),
        Member("Paris subset ResNet-34", "Paris subset"),
        Member("Oxford5k CaffeNet-128", "Oxford5k CaffeNet", budgets=_EIGENVECTORS),
        Member("pairs", "pairs"),
    ),
    "modern": (
        Member("Paris subset CLIP ViT-B/32", "Paris subset CLIP"),
        Member("Paris subset DINOv2 ViT-S/14", "Paris subset DINOv2"),
        Member("Simple1K DINOv2 ViT-S/14", "Simple1K DINOv2"),
        Member("Flowers-17 EfficientNet-Lite0", "Flowers-17 EfficientNet"),
    ),
}
"""By name. "local" has the sets that the default was first developed on, "modern" those with descriptors of today."""


def read_member(member: Member, folder: Path | None = None) -> RetrievalTask:
    """The task; DataError where its files are not there."""
    return read_set(SETS[member.on], folder)._replace(name=member.name)


PEERS = tuple(GRIDS)
"""Every method that has a grid: they are tuned with the labels."""
SLOW = ("gss",)
"""Those that train, and take as long for one setting as others for ten: they get a quarter of a given budget."""
SEEDS = (0, 1, 2)
FIT, TUNING, UNSEEN = "suite fit", "suite tuning", "suite unseen"
PROCEDURES = {FIT: CELL, TUNING: TRIAL, UNSEEN: FOLDS_PROCEDURE}
"""By the kind of a record: the procedure whose code it was made by."""
_REFERENCE, _OURS = "knn", "gradnet"


class Peer(NamedTuple):
    """A peer with the best settings that the labels chose. tried: how many settings were, of `total` in its grid."""

    method: str
    value: float
    settings: dict[str, Any]  # empty where the default is the best
    tried: int
    total: int


class SuiteRow(NamedTuple):
    """A set under one preprocessing. missing: why it was not run, else None. values: GRAD-Net's, one a seed."""

    member: Member
    preprocess: str
    missing: str | None = None
    knn: float | None = None
    peers: tuple[Peer, ...] = ()
    values: tuple[float, ...] = ()
    unseen: Unseen | None = None  # for the first preprocessing alone

    @property
    def name(self) -> str:
        """The set, and the preprocessing where there are several."""
        return self.member.name + (f", {self.preprocess}" if len(self.member.preprocess) > 1 else "")

    @property
    def best(self) -> Peer | None:
        return max(self.peers, key=lambda one: one.value, default=None)

    @property
    def tried(self) -> int:
        """Settings of all peers."""
        return sum(one.tried for one in self.peers)

    @property
    def in_part(self) -> list[str]:
        """The peers whose grid was not searched as a whole, with how far it was, for people."""
        tried = [f"{one.method} {one.tried} of {one.total}" for one in self.peers if one.tried < one.total]
        return tried + [f"{name} none" for name in PEERS if name not in {one.method for one in self.peers}]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        """Of single runs with other seeds, not of their mean."""
        return float(np.std(self.values, ddof=1))


def suite_results(path: Path | None) -> Results:
    """The file of a suite's records; every single trial is saved in the comparisons' file of its set."""
    return Results(path or cache_folder() / "compare" / "suite.jsonl")


def run_suite(
    members: Iterable[Member], options: CompareOptions, folder: Path | None, results: Results, listener: Listener
) -> Iterator[SuiteRow]:
    """The rows of each member as soon as they are there; one whose files are missing says so.

    options: how many settings are tried for a peer, None for its whole grid, what is run again, and by how many
    workers; with several, the peers of all rows are tuned before the first row is there. folder: where the data sets
    live. results: a record for each method of a row, saved as soon as it is there.
    """
    found: list[tuple[SuiteRow, _Row | None]] = []
    for member in members:
        try:
            task = read_member(member, folder)
        except DataError as error:
            found.append((SuiteRow(member, member.preprocess[0], error.problem), None))
            continue
        rows = (_Row(member, preprocess, task, options, results, listener) for preprocess in member.preprocess)
        found += [(SuiteRow(member, row.preprocess), row) for row in rows]
    if options.workers > 1:
        _tune_side_by_side([row for _, row in found if row is not None], options.workers)
    for shown, row in found:
        if row is None:
            yield shown
        else:
            row.complete()
            yield read_row(shown.member, shown.preprocess, results)


def _tune_side_by_side(rows: Sequence["_Row"], workers: int) -> None:
    """Tune the peers of all rows, so many at once, each in a process of its own."""
    with ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(row.tune, name) for row in rows for name in PEERS]
        try:
            for one in waiting:
                one.result()
        finally:
            pool.shutdown(cancel_futures=True)


def read_rows(members: Iterable[Member], results: Results) -> list[SuiteRow]:
    """What is known of a suite."""
    return [read_row(member, preprocess, results) for member in members for preprocess in member.preprocess]


def read_row(member: Member, preprocess: str, results: Results) -> SuiteRow:
    """What is known of a set under one preprocessing."""

    def known(kind: str, method: str, seed: int | None = None) -> dict[str, Any] | None:
        return results.get(_key(member, preprocess, kind, method, seed))

    def value(record: dict[str, Any]) -> float:
        return float(record["values"][member.measure])

    reference = known(FIT, _REFERENCE, 0)
    ours = [record for seed in SEEDS if (record := known(FIT, _OURS, seed))]
    tuned = {name: record for name in PEERS if (record := known(TUNING, name)) and record["state"] == DONE}
    peers = (Peer(name, value(one), one["chosen"], one["tried"], one["total"]) for name, one in tuned.items())
    unseen = known(UNSEEN, _OURS, 0)
    return SuiteRow(
        member,
        preprocess,
        None if reference and len(ours) == len(SEEDS) else "not run yet",
        value(reference) if reference else None,
        tuple(peers),
        tuple(map(value, ours)),
        Unseen(**unseen["values"]) if unseen and unseen["state"] == DONE else None,
    )


def _key(member: Member, preprocess: str, kind: str, method: str, seed: int | None) -> dict[str, Any]:
    key = {"kind": kind, "set": member.on, "preprocess": preprocess, "method": method}
    return key if seed is None else {**key, "seed": seed}


class _Row:
    """Runs what the results file does not have of a row."""

    def __init__(
        self,
        member: Member,
        preprocess: str,
        task: RetrievalTask,
        options: CompareOptions,
        results: Results,
        listener: Listener,
    ) -> None:
        self._member, self.preprocess, self._task, self._results = member, preprocess, task, results
        self._options = replace(options, preprocess=preprocess, measure=member.measure)
        self._listener, self._digest = listener, task.digest()
        self._trials = Results(default_results(self._digest))

    def complete(self) -> None:
        self._fit(_REFERENCE, 0)
        for name in PEERS:
            self.tune(name)
        for seed in SEEDS:
            self._fit(_OURS, seed)
        if self.preprocess == self._member.preprocess[0]:
            self._hold_out()

    def _fit(self, name: str, seed: int) -> None:
        key = _key(self._member, self.preprocess, FIT, name, seed)
        if not self._is_known(key):
            row = self._run(name, replace(self._options, tune=False, seed=seed))
            if row.entry.main is None:
                raise InputError(f"{name} on {self._task.name} {row.entry.cell.why}", "--retry runs it again")
            ran = {"ran": row.entry.cell.ran, "settings": row.entry.cell.settings}
            self._save(key, finished(**{self._member.measure: row.entry.main.score.value}) | ran)

    def tune(self, name: str) -> None:
        """Unless as many settings are known; a refusal of all of them is saved, too."""
        key, total = _key(self._member, self.preprocess, TUNING, name, None), len(candidates(name, load_factory(name)))
        wanted = min(total, self._budget(name, total))
        if wanted == 0 or self._is_known(key, wanted):
            return
        tuned = self._run(name, replace(self._options, tune=True, budget=wanted)).tuned
        if tuned is not None and tuned.entry.main is not None:
            found = {"chosen": tuned.chosen, "tried": tuned.tried, "total": total, "scores": list(tuned.scores)}
            self._save(key, finished(**{self._member.measure: tuned.entry.main.score.value}) | found)

    def _budget(self, name: str, total: int) -> int:
        given = self._options.budget
        wanted = total if given is None else max(1, given // 4) if name in SLOW else given
        return min(self._member.budgets.get(name, total), wanted)

    def _hold_out(self) -> None:
        key = _key(self._member, self.preprocess, UNSEEN, _OURS, 0)
        if self._is_known(key):
            return
        settings = {"preprocess": self.preprocess, "random_state": 0}
        arguments = {"settings": settings, "options": {"measures": [self._member.measure]}, "seed": 0}
        options = replace(self._options, limit=None, fresh=True)  # whether it is known was asked above
        with open_runner(self._task, self._results, options, self._listener) as runner:
            record, _ = runner.get(CellJob(key, FOLDS_PROCEDURE, _OURS, arguments, _OURS))
        if record["state"] != DONE:
            raise InputError(
                f"{_OURS} on {self._task.name} {record['state']}: {record['reason']}", "--retry runs it again"
            )

    def _run(self, name: str, options: CompareOptions) -> Row:
        method = Method(name, name, name)
        (row,) = run_comparison(self._task, [method], options, self._trials, self._listener).rows
        return row

    def _is_known(self, key: dict[str, Any], wanted: int = 0) -> bool:
        """Whether there is a record of this data and version, with as many settings tried."""
        record = None if self._options.fresh else self._results.get(key)
        if record is None or record["state"] != DONE or record["data"] != self._digest:
            return False
        if record["versions"]["manifind"] != versions()["manifind"] or record.get("tried", 0) < wanted:
            return False
        return not self._options.outdated or record["code"] == _code(key)

    def _save(self, key: dict[str, Any], record: dict[str, Any]) -> None:
        about = provenance("manifind compare --suite local", self._digest, _code(key))
        self._results.add(key, {**record, **about})


def _code(key: dict[str, Any]) -> str:
    """The digest of the code that makes such a record today."""
    return task_code(PROCEDURES[key["kind"]], key["method"])
