"""`manifind reproduce`: the paper's tables, figures and claims, one command each."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from manifind.cli.options import SEEDS, AsJson, BenchFolder, Fresh, Outdated, ResultsFile, argument, option
from manifind.cli.terminal import resumable
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
_ITEM = (
    "A table or figure of the paper, the claims of its text, what lies beyond it; local: the same on data that anybody "
    "can have; all."
)
_OUT = "A folder for pages and pictures, or a .png for one figure; else no page, and here."
_COUNT = "Figure 4: are the 1,500 points of the whole word or of each letter?"
_SEED = "Of a figure; the same seed gives the same picture."


def reproduce(
    item: Annotated[ItemName, argument(None, _ITEM)],
    on: Annotated[str | None, option("Put a table or a figure on another set, such as 'ORL aligned'.")] = None,
    only: Annotated[str | None, option("Run only cells with this in 'ROW / COLUMN'.")] = None,
    seeds: Annotated[int, option("How many seeds, where a seed matters.", min=1, max=100)] = _SEEDS,
    cell: Annotated[str | None, option("Run nothing; print all that is known of this 'ROW / COLUMN'.")] = None,
    smoke: Annotated[bool, option("Try everything out on toy data, within minutes.", "--smoke")] = False,
    render: Annotated[bool, option("Run nothing; show what is known.", "--render")] = False,
    fresh: Fresh = False,
    outdated: Outdated = False,
    results: ResultsFile = None,
    folder: BenchFolder = None,
    out: Annotated[Path | None, option(_OUT)] = None,
    count: Annotated[Count, option(_COUNT)] = Count.word,
    seed: Annotated[int, option(_SEED, **SEEDS)] = 0,
    as_json: AsJson = False,
) -> None:
    """Make a table or a figure of the paper again, with the paper's numbers beside ours.

    Each cell runs in a process of its own and is kept as soon as it is finished, so that the same command goes on
    after an interruption. A cell whose data is not here stays `not run`, and the notes say what to obtain.
    """
    from manifind.bench.paper.figures import Brief
    from manifind.bench.paper.runner import PaperRunOptions, run_missing, wanted_runs
    from manifind.bench.paper.tables import ITEMS, artefacts_of, on_toy_data
    from manifind.cli import reproduce_output as shown  # imports torch: not for every verb

    if item not in ITEMS:
        ignored = {"only": only, "cell": cell, "render": render, "fresh": fresh, "outdated": outdated}
        _refuse_ignored(item, **ignored, results=results, seeds=seeds != _SEEDS)
        with progress_bars() as listener:
            brief = Brief(on, folder, seed, smoke, listener)
            path, precisions = shown.draw(item.value, brief, count.value, out or Path())
        shown.show_drawn(item.value, path, precisions, count.value, as_json)
        return
    if item is not ItemName.all:
        _refuse_ignored(item, count=count is not Count.word, seed=seed)
    # A figure is for looking at, so it goes somewhere even if nobody said where; a table is printed.
    out = out or {ItemName.figure8: Path(), ItemName.all: Path("reproduction")}.get(item)
    artefacts = artefacts_of(item.value, on)
    if smoke:
        artefacts = [on_toy_data(one) for one in artefacts]
    known = shown.open_results(results, smoke)
    if cell is not None:
        shown.show_cell(artefacts, cell, known, as_json)
        return
    if not render:
        wanted = wanted_runs(artefacts, 1 if smoke else seeds, only)
        with progress_bars() as listener, resumable(known.path):
            options = PaperRunOptions(fresh=fresh, outdated=outdated, folder=folder, smoke=smoke)
            run_missing(wanted, known, options, listener)
            if item is ItemName.all and out is not None and only is None:
                brief = Brief(None, folder, seed, smoke, listener)
                shown.draw_all(brief, count.value, out)
    shown.note_outdated(wanted_runs(artefacts, seeds, only), known)
    shown.show_artefacts(item.value, artefacts, known, out, as_json)


def _refuse_ignored(item: ItemName, **given: object) -> None:
    """Refuse the first option that was given and would do nothing."""
    for name, value in given.items():
        if value:
            kind = "a figure, which runs no cells" if item.startswith("figure") else "a table, whose seeds are --seeds"
            raise InputError(f"--{name} would do nothing: {item.value} is {kind}", f"leave --{name} out")
