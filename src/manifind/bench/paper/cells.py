"""From results to what a cell shows: ours over the seeds, the paper's value, the difference, or why not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from manifind.bench.cell import DONE
from manifind.bench.paper.declared import Artefact, CellSpec, Drop, EpochsTo, Run, Value
from manifind.bench.paper.procedures import PROCEDURES, seeds_of
from manifind.bench.results import Results

NOT_RUN = "not run"
NEVER = "never"
_MOST_SEEDS = 100  # as many as are looked for in a results file


class CellValue(NamedTuple):
    """A cell. values: one for each seed that is known; None in them: a score that was never reached.

    state: "done", "refused", "failed", NOT_RUN, or "" where the paper has no such cell. why: what became of it.
    """

    entry: CellSpec
    state: str
    values: tuple[float | None, ...] = ()
    why: str = ""

    @property
    def mean(self) -> float | None:
        """Over the seeds; None where one of them has no value."""
        known = [value for value in self.values if value is not None]
        return float(np.mean(known)) if known and len(known) == len(self.values) else None

    @property
    def deviation(self) -> float | None:
        """Of single runs, not of their mean; None where there are not two."""
        return None if self.mean is None or len(self.values) < 2 else float(np.std(self.values, ddof=1))  # type: ignore[arg-type]

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        paper = self.entry.paper
        return None if self.mean is None or not isinstance(paper, (int, float)) else self.mean - paper


def records_of(run: Run, results: Results) -> dict[int, dict[str, Any]]:
    """What is known of a run, by seed."""
    found = {seed: results.get(run.key(seed)) for seed in seeds_of(run, _MOST_SEEDS)}
    return {seed: record for seed, record in found.items() if record is not None}


def cell_values(artefact: Artefact, results: Results) -> list[CellValue]:
    """Every cell of an artefact, in its order."""
    return [_shown(entry, results) for entry in artefact.entries]


def _shown(entry: CellSpec, results: Results) -> CellValue:
    if entry.run is None or entry.show is None:
        return CellValue(entry, "")
    records, *references = (records_of(run, results) for run in entry.runs)
    if not records:
        return CellValue(entry, NOT_RUN, (), "it needs a GPU" if PROCEDURES[entry.run.procedure].on_gpu else "")
    for record in (record for one in (records, *references) for record in one.values()):
        if record["state"] != DONE:
            return CellValue(entry, record["state"], (), f"{record['reason']}; {record['hint']}".strip("; "))
    if not all(references):
        return CellValue(entry, NOT_RUN, (), "what it is compared with was not run")
    values = [_value(entry, record, results) for record in records.values()]
    if isinstance(entry.show, Value) and any(value is None for value in values):
        return CellValue(entry, NOT_RUN, (), f"this machine gives no {entry.show.name}")
    return CellValue(entry, DONE, tuple(values))


def _value(entry: CellSpec, record: dict[str, Any], results: Results) -> float | None:
    show = entry.show
    if isinstance(show, Drop):
        return _mean(show.below, show.name, results) - float(record["values"][show.name])
    if isinstance(show, EpochsTo):
        return _epochs(record, _target(show, results))
    assert show is not None  # noqa: S101  the caller looked
    value = record["values"].get(show.name)
    return None if value is None else float(value)


def _mean(run: Run, name: str, results: Results) -> float:
    return float(np.mean([record["values"][name] for record in records_of(run, results).values()]))


def _target(show: EpochsTo, results: Results) -> float:
    if show.target is not None:
        return show.target
    knn, base = (_mean(run, show.name, results) for run in (show.knn, show.base))
    return knn + show.SHARE * (base - knn)


def _epochs(record: dict[str, Any], target: float) -> float | None:
    """The first epoch with at least that score."""
    reached = [epoch for epoch, score in zip(record["epochs"], record["curve"], strict=True) if score >= target]
    return float(reached[0]) if reached else None
