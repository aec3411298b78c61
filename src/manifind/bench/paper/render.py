"""An artefact for people and for programs: rows of text, a page in markdown, and everything as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manifind.bench.cell import DONE
from manifind.bench.paper.cells import NEVER, NOT_RUN, CellValue, cell_values, records_of
from manifind.bench.paper.declared import Artefact, EpochsTo
from manifind.bench.paper.procedures import TIMED
from manifind.bench.results import Results
from manifind.bench.sets import SETS


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
    seeds = sorted({len(one.values) for one in cells if one.state == DONE})
    told = [*artefact.notes]
    if seeds:
        told.append(f"Seeds: {' or '.join(map(str, seeds))}; ± is the deviation of single runs.")
    told += _load(cells, results)
    told += _reasons(cells)
    absent = [one.entry.run.on for one in cells if one.state == NOT_RUN and not one.why and one.entry.run]
    told += [f"Not run on {on}: `{artefact.command}` runs it, with {SETS[on].obtain}." for on in dict.fromkeys(absent)]
    return told


def _reasons(cells: Sequence[CellValue]) -> list[str]:
    """Why cells have no number, each reason once."""
    named: dict[str, list[str]] = {}
    for one in cells:
        if one.why:
            named.setdefault(f"{one.state}: {one.why}.", []).append(one.entry.name)
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''} {reason}"
        for reason, names in named.items()
    ]


def _load(cells: Sequence[CellValue], results: Results) -> list[str]:
    """Under which load seconds were measured, where an artefact shows any."""
    timed = [one.entry.run for one in cells if one.state == DONE and one.entry.run and one.entry.run.procedure in TIMED]
    loads = [record["machine"].get("load") for run in timed for record in records_of(run, results).values()]
    if not loads:
        return []
    known = [load for load in loads if load is not None]
    told = f"{min(known):.1f} to {max(known):.1f}" if len(known) == len(loads) else "not recorded"
    return [f"Seconds were measured one run at a time, under a load of the machine, this run among it, of: {told}."]


def as_markdown(artefact: Artefact, results: Results, level: str = "##") -> str:
    """A heading, the table, its notes and the command."""
    columns = ["", *artefact.columns]
    lines = [
        f"{level} {artefact.title}",
        "",
        f"`{artefact.command}`",
        "",
        f"| {' | '.join(columns)} |",
        f"|---|{'--:|' * len(artefact.columns)}",
        *(f"| {' | '.join(row)} |" for row in table_rows(artefact, results)),
        "",
        *(f"- {note}" for note in footnotes(artefact, results)),
        *(["", f"![{artefact.title}]({artefact.picture})"] if artefact.picture else []),
    ]
    return "\n".join(lines) + "\n"


def as_plain(artefact: Artefact, results: Results) -> dict[str, Any]:
    """Every cell with what it ran, what came out, and what the paper prints."""
    return {
        "artefact": artefact.name,
        "title": artefact.title,
        "command": artefact.command,
        "notes": footnotes(artefact, results),
        "cells": [_plain(one, results) for one in cell_values(artefact, results)],
    }


def cell_in_full(cell: CellValue, results: Results) -> dict[str, Any]:
    """One cell with its records: command, settings, seed, versions, machine, data, and every query's value."""
    run = cell.entry.run
    records = {} if run is None else records_of(run, results)
    kept = [{"seed": seed, **record} for seed, record in records.items()]
    return {**_plain(cell, results), "records": kept}


def _plain(cell: CellValue, results: Results) -> dict[str, Any]:
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
