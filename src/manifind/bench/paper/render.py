"""From results to cells, and from cells to text, markdown and plain values."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from manifind.bench.cell import DONE
from manifind.bench.html import markdown_table
from manifind.bench.paper.declared import Artefact, CellSpec, Drop, EpochsTo, Gain, Run, Value
from manifind.bench.paper.procedures import ON_GPU, TIMED, seeds_of
from manifind.bench.results import Results
from manifind.bench.sets import SETS

NOT_RUN = "not run"
NEVER = "never"
_MOST_SEEDS = 100  # as many as are looked for in a results file


class CellValue(NamedTuple):
    """A cell with what came out of its runs."""

    entry: CellSpec
    state: str  # "done", "refused", "failed", NOT_RUN, or "" where the paper has no such cell
    values: tuple[float | None, ...] = ()  # one for each seed that is known; None: a score that was never reached
    why: str = ""  # what became of it

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
    found = {seed: results.get(run.key(seed)) for seed in seeds_of(run, _MOST_SEEDS)}
    return {seed: record for seed, record in found.items() if record is not None}


def cell_values(artefact: Artefact, results: Results) -> list[CellValue]:
    return [_cell_value(entry, results) for entry in artefact.entries]


def _cell_value(entry: CellSpec, results: Results) -> CellValue:
    if entry.run is None or entry.show is None:
        return CellValue(entry, "")
    records, *references = (records_of(run, results) for run in entry.runs)
    if not records:
        return CellValue(entry, NOT_RUN, (), "it needs a GPU" if entry.run.procedure in ON_GPU else "")
    for record in (record for one in (records, *references) for record in one.values()):
        if record["state"] != DONE:
            return CellValue(entry, record["state"], (), f"{record['reason']}; {record['hint']}".strip("; "))
    if not all(references):
        return CellValue(entry, NOT_RUN, (), "what it is compared with was not run")
    values = tuple(_shown_value(entry.show, record, results) for record in records.values())
    if None in values and not isinstance(entry.show, EpochsTo):
        return CellValue(entry, NOT_RUN, (), f"this machine gives no {entry.show.name}")
    return CellValue(entry, DONE, values)


def _shown_value(show: Value, record: dict[str, Any], results: Results) -> float | None:
    if isinstance(show, EpochsTo):  # the first epoch with at least that score
        target = _target(show, results)
        curve = zip(record["epochs"], record["curve"], strict=True)
        return next((float(epoch) for epoch, score in curve if score >= target), None)
    value = record["values"].get(show.name)
    if isinstance(show, Drop):
        return _mean(show.below, show.name, results) - float(value)
    if isinstance(show, Gain):
        return float(value) - _mean(show.over, show.name, results)
    return None if value is None else float(value)


def _target(show: EpochsTo, results: Results) -> float:
    if show.target is not None:
        return show.target
    knn, base = (_mean(run, show.name, results) for run in (show.knn, show.base))
    return knn + show.SHARE * (base - knn)


def _mean(run: Run, name: str, results: Results) -> float:
    return float(np.mean([record["values"][name] for record in records_of(run, results).values()]))


def table_rows(artefact: Artefact, results: Results) -> list[list[str]]:
    """A row of text for each row of the artefact, its name first."""
    cells = {(one.entry.row, one.entry.column): one for one in cell_values(artefact, results)}
    return [
        [row, *(_text(cells.get((row, column)), artefact.digits) for column in artefact.columns)]
        for row in artefact.rows
    ]


def footnotes(artefact: Artefact, results: Results) -> list[str]:
    """What a reader must know: rules, what failed and why, and what is needed for what was not run."""
    cells = cell_values(artefact, results)
    lines = [*artefact.notes]
    if seeds := sorted({len(one.values) for one in cells if one.state == DONE}):
        lines.append(f"Seeds: {' or '.join(map(str, seeds))}; ± is the deviation of single runs.")
    lines += _load(cells, results)
    reasons: dict[str, list[str]] = {}  # each once, with the cells that have no number for it
    for one in cells:
        if one.why:
            reasons.setdefault(f"{one.state}: {one.why}.", []).append(one.entry.name)
    for reason, (first, *more) in reasons.items():
        lines.append(f"{first}{f' and {len(more)} more' if more else ''} {reason}")
    absent = [one.entry.run.on for one in cells if one.state == NOT_RUN and not one.why and one.entry.run]
    lines += [f"Not run on {on}: `{artefact.command}` runs it, with {SETS[on].obtain}." for on in dict.fromkeys(absent)]
    return lines


def _load(cells: Sequence[CellValue], results: Results) -> list[str]:
    """Under which load seconds were measured, where an artefact shows any."""
    timed = [one.entry.run for one in cells if one.state == DONE and one.entry.run and one.entry.run.procedure in TIMED]
    loads = [record["machine"].get("load") for run in timed for record in records_of(run, results).values()]
    if not loads:
        return []
    load = "not recorded" if None in loads else f"{min(loads):.1f} to {max(loads):.1f}"
    return [f"Seconds were measured one run at a time, under a load of the machine, this run among it, of: {load}."]


def as_markdown(artefact: Artefact, results: Results) -> str:
    """A heading, the table, its notes and the command."""
    table = markdown_table(["", *artefact.columns], table_rows(artefact, results))
    notes = "".join(f"- {note}\n" for note in footnotes(artefact, results))
    picture = f"\n![{artefact.title}]({artefact.picture})\n" if artefact.picture else ""
    return f"## {artefact.title}\n\n`{artefact.command}`\n\n{table}\n\n{notes}{picture}"


def as_plain(artefact: Artefact, results: Results) -> dict[str, Any]:
    """Every cell with what it ran, what came out, and what the paper prints."""
    return {
        "artefact": artefact.name,
        "title": artefact.title,
        "command": artefact.command,
        "notes": footnotes(artefact, results),
        "cells": [_plain(one) for one in cell_values(artefact, results)],
    }


def cell_in_full(cell: CellValue, results: Results) -> dict[str, Any]:
    """One cell with its records: command, settings, seed, versions, machine, data, and every query's value."""
    records = {} if cell.entry.run is None else records_of(cell.entry.run, results)
    return {**_plain(cell), "records": [{"seed": seed, **record} for seed, record in records.items()]}


def _plain(cell: CellValue) -> dict[str, Any]:
    entry, run = cell.entry, cell.entry.run
    obtain = SETS[run.on].obtain if run is not None and cell.state == NOT_RUN else None
    return {
        "cell": entry.name,
        "state": cell.state,
        "why": cell.why,
        "obtain": obtain,
        "set": run and run.on,
        "method": run and run.method,
        "settings": run and dict(run.settings),
        "values": list(cell.values),
        "mean": cell.mean,
        "deviation": cell.deviation,
        "paper": entry.paper,
        "paper_deviation": entry.paper_deviation,
        "difference": cell.difference,
    }


def _text(cell: CellValue | None, digits: int) -> str:
    """Ours, then in brackets the paper's and the difference."""
    if cell is None or cell.state == "":
        return "-"
    paper = _paper(cell, digits)
    if cell.state != DONE:
        return f"{cell.state}{paper}"
    if cell.mean is None:
        return f"{NEVER}{paper}"
    if isinstance(cell.entry.show, EpochsTo):
        digits = min(digits, len(cell.values) - 1)  # epochs are whole, their mean need not be
    deviation = "" if cell.deviation is None else f" ± {cell.deviation:,.{digits}f}"
    return f"{cell.mean:,.{digits}f}{deviation}{paper}"


def _paper(cell: CellValue, digits: int) -> str:
    printed = cell.entry.paper
    if printed is None:
        return ""
    if isinstance(printed, str):
        return f" (paper {printed})"
    difference = "" if cell.difference is None else f", {cell.difference:+,.{digits}f}"
    places = digits if isinstance(printed, float) else 0
    spread = "" if cell.entry.paper_deviation is None else f" ± {cell.entry.paper_deviation}"
    return f" (paper {printed:,.{places}f}{spread}{difference})"
