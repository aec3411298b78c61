"""What every drawn figure is told, and the words and colours that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from gradnet.errors import InputError
from gradnet.experiments.canvas import as_png
from gradnet.experiments.compare_question import Question
from gradnet.progress import Listener, ignore
from gradnet.reproduce.sets import find_set, read_set
from gradnet.reproduce.toy import toy_question
from gradnet.whole_files import put_in_place

INK, RIGHT, WRONG, FAINT = "#1f2328", "#2f86d6", "#d1242f", "#d5d5d8"
_DOTS_PER_INCH = 150


class Brief(NamedTuple):
    """How a figure is to be drawn. on: another set than the figure's own. smoke: as quickly as possible."""

    on: str | None = None
    folder: Path | None = None
    seed: int = 0
    smoke: bool = False
    listener: Listener = ignore

    def question(self, usual: str) -> Question:
        """The question that the figure is drawn from; toy data in its place where it is only tried out."""
        dataset = find_set(self.on or usual)
        return toy_question(dataset) if self.smoke else read_set(dataset, self.folder)

    def refuse_set(self, figure: str) -> None:
        """For figures that are of no data set."""
        if self.on is not None:
            raise InputError(
                f"{figure} is of no data set, so it cannot be put on {self.on!r}", "leave --on out"
            )


def write_figure(figure: Any, path: Path) -> None:
    """As a PNG, whole or not at all."""
    put_in_place(path, as_png(figure, _DOTS_PER_INCH))
