"""How `gradnet reproduce` draws: a picture for each figure, and the numbers behind the toy letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from gradnet.cli.terminal import say, show_json, show_table
from gradnet.experiments.canvas import new_figure
from gradnet.experiments.letters import LettersResult, run_letters
from gradnet.experiments.letters_figure import draw_letters
from gradnet.reproduce.drawing import Brief, write_figure
from gradnet.reproduce.figures import FIGURES

_LETTERS = "figure4"


class Drawn(NamedTuple):
    """A picture that is there. letters: what it shows, where it is Figure 4. per: how its points were counted."""

    name: str
    path: Path
    letters: LettersResult | None = None
    per: str = ""


def draw(name: str, brief: Brief, count: str, out: Path) -> Drawn:
    """One figure, in the file `out` if that is a .png, else in that folder."""
    path = out if out.suffix.lower() == ".png" else out / f"{name}.png"
    new_figure(1, 1)  # where matplotlib is missing, say so before a minute of work
    if name != _LETTERS:
        write_figure(FIGURES[name](brief), path)
        return Drawn(name, path)
    brief.refuse_set(name)
    short: dict[str, Any] = {"n_points": 300, "max_steps": 20} if brief.smoke else {}
    result = run_letters(count=count, seed=brief.seed, listener=brief.listener, **short)
    draw_letters(result, path)
    return Drawn(name, path, result, count)


def draw_all(brief: Brief, count: str, folder: Path) -> list[Drawn]:
    """Every figure that is no plot of results."""
    return [draw(name, brief, count, folder) for name in sorted((*FIGURES, _LETTERS))]


def show(drawn: Drawn, as_json: bool) -> None:
    """Where the picture is; of the letters also how precise each query is."""
    letters = drawn.letters
    rows = {} if letters is None else _precisions(letters)
    if as_json:
        show_json({name: list(values) for name, values in rows.items()} or {drawn.name: str(drawn.path)})
        return
    if rows:
        show_table(
            f"precision of the retrieved letter, 1,500 points per {drawn.per}",
            ("method", *"PAMI", "mean"),
            [(name, *(f"{v:.3f}" for v in (*values, sum(values) / 4))) for name, values in rows.items()],
            numeric=(*"PAMI", "mean"),
        )
    say(f"look at it: {drawn.path}")


def _precisions(letters: LettersResult) -> dict[str, list[float]]:
    return {
        "Euclidean": letters.euclidean_precision.tolist(),
        "GRAD-Net": letters.gradnet_precision.tolist(),
    }
