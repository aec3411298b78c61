"""`manifind reproduce`: the paper's tables, figures and claims, one command each."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from manifind.datasets.catalogue import VARIABLE
from manifind.errors import InputError
from manifind.progress import progress_bars

ItemName = StrEnum(
    "ItemName",
    "table1 table2 table3 table4 table5 figure1 figure2 figure3 figure4 figure5 figure6 figure7 figure8 "
    "claims beyond local all",
)
"""What can be made again."""
Count = StrEnum("Count", "word letter")
"""The two readings of the paper's 1,500 points."""
_SEEDS = 3


def reproduce(
    item: Annotated[
        ItemName,
        typer.Argument(
            help="A table or figure of the paper, the claims of its text, what lies beyond it; local: the same on "
            "data that anybody can have; all."
        ),
    ],
    on: Annotated[
        str | None, typer.Option(help="Put a table or a figure on another set, such as 'ORL aligned'.")
    ] = None,
    only: Annotated[str | None, typer.Option(help="Run only cells with this in 'ROW / COLUMN'.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many seeds, where a seed matters.")] = _SEEDS,
    cell: Annotated[
        str | None, typer.Option(help="Run nothing; print all that is known of this 'ROW / COLUMN'.")
    ] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Try everything out on toy data, within minutes.")] = False,
    render: Annotated[bool, typer.Option("--render", help="Run nothing; show what is known.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run everything, whatever is kept.")] = False,
    results: Annotated[
        Path | None, typer.Option(help="Where finished cells are kept; else this system's folder for caches.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help=f"Where data sets live; else {VARIABLE}, else the folder for caches.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for pages and pictures, or a .png for one figure; else no page, and here."),
    ] = None,
    count: Annotated[
        Count, typer.Option(help="Figure 4: are the 1,500 points of the whole word or of each letter?")
    ] = Count.word,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Of a figure; the same seed gives the same picture.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Make a table or a figure of the paper again, with the paper's numbers beside ours.

    Each cell runs in a process of its own and is kept as soon as it is finished, so that the same command goes on
    after an interruption. A cell whose data is not here stays `not run`, and the notes say what to obtain.
    """
    from manifind.bench.paper.artefacts import ITEMS, artefacts_of, on_toy_data
    from manifind.bench.paper.figures import Brief
    from manifind.bench.paper.runner import PaperRunOptions, run_missing, wanted_runs
    from manifind.cli import reproduce_output as shown  # imports torch: not for every verb

    if item not in ITEMS:
        _refuse_ignored(item, only=only, cell=cell, render=render, fresh=fresh, results=results, seeds=seeds != _SEEDS)
        with progress_bars() as listener:
            brief = Brief(on, folder, seed, smoke, listener)
            drawn = shown.draw(item.value, brief, count.value, out or Path())
        shown.show(drawn, as_json)
        return
    if item is not ItemName.all:
        _refuse_ignored(item, count=count is not Count.word, seed=seed)
    out = out or _usual_place(item)
    artefacts = artefacts_of(item.value, on)
    if smoke:
        artefacts = [on_toy_data(one) for one in artefacts]
    kept = shown.open_results(results, smoke)
    if cell is not None:
        shown.show_cell(artefacts, cell, kept, as_json)
        return
    if not render:
        wanted = wanted_runs(artefacts, 1 if smoke else seeds, only)
        with progress_bars() as listener, shown.interruptible(kept):
            run_missing(wanted, kept, PaperRunOptions(folder, fresh, smoke), listener)
            if item is ItemName.all and out is not None and only is None:
                brief = Brief(None, folder, seed, smoke, listener)
                shown.draw_all(brief, count.value, out)
    shown.show_artefacts(item.value, artefacts, kept, out, as_json)


def _refuse_ignored(item: ItemName, **given: object) -> None:
    """Refuse the first option that was given and would do nothing."""
    for name, value in given.items():
        if value:
            kind = "a figure, which runs no cells" if item.startswith("figure") else "a table, whose seeds are --seeds"
            raise InputError(f"--{name} would do nothing: {item.value} is {kind}", f"leave --{name} out")


def _usual_place(item: ItemName) -> Path | None:
    """A figure is for looking at, so it goes somewhere even if nobody said where; a table is printed."""
    return {ItemName.figure8: Path(), ItemName.all: Path("reproduction")}.get(item)
