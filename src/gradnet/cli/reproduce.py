"""`gradnet reproduce`: the paper's figures, one command each."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gradnet.cli.terminal import progress_bars, say, show_json, show_table


class Item(StrEnum):
    """What can be reproduced so far."""

    figure4 = "figure4"


class Count(StrEnum):
    """The two readings of the paper's 1,500 points."""

    word = "word"
    letter = "letter"


def reproduce(
    item: Annotated[Item, typer.Argument(help="figure4: the toy letters, panels a to e, as one PNG.")],
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("figure4.png"),
    count: Annotated[
        Count, typer.Option(help="Are the 1,500 points of the whole word or of each letter?")
    ] = Count.word,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same picture.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the precisions as JSON.")] = False,
) -> None:
    """Make a figure of the paper again and print the numbers behind it."""
    from gradnet.experiments.canvas import new_figure
    from gradnet.experiments.letters import run_letters
    from gradnet.experiments.letters_figure import draw_letters

    new_figure(1, 1)  # where matplotlib is missing, say so before a minute of work
    with progress_bars() as listener:
        result = run_letters(count=count.value, seed=seed, listener=listener)
        draw_letters(result, out)
    rows = {"Euclidean": result.euclidean_precision, "GRAD-Net": result.gradnet_precision}
    if as_json:
        show_json({name: values.tolist() for name, values in rows.items()})
        return
    show_table(
        f"precision of the retrieved letter, 1,500 points per {count.value}",
        ("method", *"PAMI", "mean"),
        [(name, *(f"{v:.3f}" for v in values), f"{values.mean():.3f}") for name, values in rows.items()],
        numeric=(*"PAMI", "mean"),
    )
    say(f"look at it: {out}")
