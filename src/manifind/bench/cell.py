"""One cell of a comparison: a method fitted, queried and scored, with what it cost."""

import inspect
import math
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import check_descriptors
from manifind.bench.methods import Factory, accepts, make
from manifind.bench.task import RetrievalTask
from manifind.errors import InputError, ManifindError
from manifind.evaluation.measures import Score
from manifind.evaluation.protocols import compare
from manifind.graph.preprocess import fit_preprocessor
from manifind.progress import Listener
from manifind.settings import fit_settings

DONE, REFUSED, FAILED = STATES = ("done", "refused", "failed")
CELL, TRIAL = f"{__name__}:cell", f"{__name__}:trial"
"""Procedures of the runner."""


class Scored(NamedTuple):
    """A score and the 95 % interval of its value: queries drawn anew with replacement."""

    score: Score
    low: float
    high: float


class Cell(NamedTuple):
    """How one method did on one task."""

    state: str  # one of STATES
    reason: str = ""  # why it was refused or failed
    hint: str = ""
    settings: dict[str, Any] | None = None  # all that the method has
    seconds: float | None = None  # to prepare
    milliseconds: float | None = None  # for each query, all of them asked at once
    peak: int | None = None  # most bytes of its process, libraries and all; None where the system does not tell
    before: int | None = None  # the same when it began
    ran: dict[str, str] | None = None  # on which device and in which precision; None where an earlier version ran it
    scores: tuple[Scored, ...] = ()

    @property
    def why(self) -> str:
        """What became of it where it was not done, for people."""
        return f"{self.state}: {self.reason}{f'; {self.hint}' if self.hint else ''}"

    @property
    def costs(self) -> tuple[float | None, float | None, float | None]:
        """Seconds to prepare, milliseconds for each query, and the peak in megabytes."""
        return self.seconds, self.milliseconds, None if self.peak is None else self.peak / 1e6

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "scores": [score_as_dict(one) for one in self.scores]}


def read_cell(record: dict[str, Any]) -> Cell:
    """The cell that `as_dict` wrote down; KeyError, TypeError or ValueError where that is none."""
    state, reason, hint = (str(record[name]) for name in ("state", "reason", "hint"))
    if state in (REFUSED, FAILED):
        return Cell(state, reason, hint)
    if state != DONE or not record["scores"]:
        raise ValueError(state)
    values = {name: record[name] for name in Cell._fields if name not in ("scores", "ran")} | {"ran": record.get("ran")}
    for name in ("seconds", "milliseconds"):
        values[name] = float(values[name])
    return Cell(**values, scores=tuple(_read_score(one) for one in record["scores"]))


def finished(**values: float) -> dict[str, Any]:
    """The record of a procedure that gives nothing but numbers."""
    return {"state": DONE, "reason": "", "hint": "", "values": {name: float(v) for name, v in values.items()}}


def cell(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The record of a method that was fitted, asked and scored once; what it raises is handed on."""
    return run_cell(task, factory, job["settings"], listener).as_dict()


def trial(task: RetrievalTask, factory: Factory, job: dict[str, Any], listener: Listener) -> dict[str, Any]:
    """The record of the values alone, without intervals."""
    ids, cost, _ = rank_task(task, factory, job["settings"], listener)
    return {**finished(**{one.measure: one.value for one in score_task(task, ids)}), "ran": cost["ran"]}


def run_cell(task: RetrievalTask, factory: Factory, settings: dict[str, Any], listener: Listener) -> Cell:
    """Fit, ask and score once."""
    ids, cost, shown = rank_task(task, factory, settings, listener)
    return Cell(DONE, settings=shown, **cost, scores=tuple(map(with_interval, score_task(task, ids))))


def rank_task(
    task: RetrievalTask, factory: Factory, settings: dict[str, Any], listener: Listener
) -> tuple[NDArray[Any], dict[str, Any], dict[str, Any]]:
    """Full rankings, (m, n), what they cost, and the method's settings."""
    X, queries = task.descriptors, task.queries
    if "preprocess" in settings and not accepts(factory, "preprocess"):  # then it is done for the method
        X = check_descriptors(X)
        prepare = fit_preprocessor(settings["preprocess"], X)
        X, queries = prepare(X), None if queries is None else prepare(check_descriptors(queries))
    rows = () if task.query_items is None else (X[task.query_items],)
    model, before = make(factory, settings), peak_bytes()
    started = time.perf_counter()
    model.fit(X, **fit_arguments(model, queries, listener))
    fitted = time.perf_counter()
    found = model.search(*rows, k=len(X))
    per_query = 1e3 * (time.perf_counter() - fitted) / task.n_queries
    memory = {"peak": peak_bytes(), "before": before}
    cost = {"seconds": fitted - started, "milliseconds": per_query, **memory, "ran": how_it_ran(model)}
    shown = fit_settings(model.get_params()) if hasattr(model, "get_params") else settings
    return getattr(found, "ids", found), cost, shown


def how_it_ran(model: Any) -> dict[str, str]:
    """The device and the precision of a fit, where the method tells; the others compute on the CPU, some in double."""
    facts = getattr(model, "info_", {})
    return {name: str(facts[name]) for name in ("device", "precision") if name in facts} or {"device": "cpu"}


def score_task(task: RetrievalTask, ids: NDArray[Any]) -> list[Score]:
    try:
        return task.truth.scores(ids, task.query_items)
    except InputError as error:  # the method did not refuse; it answered, and wrongly
        raise ManifindError(f"its rankings cannot be scored: {error.problem}", error.hint) from error


def peak_bytes() -> int | None:
    """The most memory that this process has had; None where the system does not tell."""
    try:  # what getrusage tells on Linux begins at the peak of the parent
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


def fit_arguments(model: Any, queries: NDArray[Any] | None, listener: Listener) -> dict[str, Any]:
    """What `fit` takes besides the database: queries where there are some, a listener where it has one."""
    arguments: dict[str, Any] = {} if queries is None else {"queries": queries}
    if "listener" in inspect.signature(model.fit).parameters:
        arguments["listener"] = listener
    return arguments


def with_interval(score: Score) -> Scored:
    above_nothing = compare(score, score._replace(per_query=np.zeros_like(score.per_query)))
    return Scored(score, above_nothing.low, above_nothing.high)


def score_as_dict(one: Scored) -> dict[str, Any]:
    """Plain values that JSON can hold; None for a query that has nothing to find."""
    per_query = [None if math.isnan(value) else value for value in one.score.per_query.tolist()]
    weights = one.score.weights.tolist()
    return {
        **one.score._asdict(),
        "per_query": per_query,
        "weights": weights[0] if len(set(weights)) == 1 else weights,
        "low": one.low,
        "high": one.high,
    }


def _read_score(record: dict[str, Any]) -> Scored:
    per_query = np.array([np.nan if value is None else value for value in record["per_query"]], dtype=np.float64)
    weights = np.broadcast_to(np.array(record["weights"], dtype=np.float64), per_query.shape)
    values = {name: record[name] for name in Score._fields}
    return Scored(Score(**{**values, "per_query": per_query, "weights": weights}), record["low"], record["high"])
