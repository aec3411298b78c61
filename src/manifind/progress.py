"""Progress reports of long work, and bars that show them; nothing is printed unless a caller wants it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from manifind.text import visible

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import Task, TaskID

_SECONDS_BETWEEN_LINES = 60.0  # in a log
_SECONDS_BETWEEN_PICTURES = 0.2  # in a notebook
_STAGES = {
    "reading": "looking at the files",
    "pictures": "describing pictures",
    "graph": "building the graph",
    "walks": "walking along it",
    "positives": "seeing where walks end",
    "training": "training",
    "features": "computing features",
    "saving": "writing the collection",
    "publishing": "sending to the database",
}


@dataclass(frozen=True)
class Progress:
    """A report of how far a long operation is, passed to the listener given to it.

    Parameters
    ----------
    stage : str
        What is running, such as ``"graph"``, ``"training"`` or ``"saving"``.
    done : int
        Units of this stage that are finished.
    total : int
        Units of this stage altogether.
    note : str, default=""
        A remark to show beside the numbers, such as the current loss.
    """

    stage: str
    done: int
    total: int
    note: str = ""


Listener: TypeAlias = Callable[[Progress], None]


def ignore(progress: Progress) -> None:
    """The listener of callers who want no reports."""


@contextmanager
def in_one_piece(stage: str, listener: Listener) -> Iterator[None]:
    """A stage that cannot say how far it is: reported when it begins, and when it is done."""
    listener(Progress(stage, 0, 1))
    yield
    listener(Progress(stage, 1, 1))


@contextmanager
def with_bars(listener: Listener, wanted: bool) -> Iterator[Listener]:
    """The listener itself, or one that draws bars, too."""
    with progress_bars() if wanted else nullcontext(ignore) as draw:

        def tell(progress: Progress) -> None:
            listener(progress)
            draw(progress)

        yield tell


@contextmanager
def progress_bars() -> Iterator[Listener]:
    """A listener that draws one bar per stage, with the time left: on standard error, or below the cell of a notebook.

    In a log, where no bar can move, bars appear only at the end; until then a line says now and then how far it is.
    """
    from rich import progress as drawn  # not needed by those who only listen
    from rich.console import Console

    columns = (
        drawn.SpinnerColumn(),
        drawn.TextColumn("{task.description}", markup=False),
        drawn.BarColumn(bar_width=10),
        drawn.TextColumn("{task.completed}/{task.total}"),
        drawn.TimeElapsedColumn(),
        drawn.TextColumn("left"),
        drawn.TimeRemainingColumn(),
        drawn.TextColumn("{task.fields[note]}", markup=False),
    )
    console = Console(stderr=True)
    # In a notebook rich would need ipywidgets, and leaves out the last state.
    with drawn.Progress(*columns, console=console, disable=console.is_jupyter) as bars:
        tasks: dict[str, TaskID] = {}
        pause, show = _manner(bars)
        shown = time.monotonic()

        def listen(report: Progress) -> None:
            nonlocal shown
            if report.stage not in tasks:
                name = visible(_STAGES.get(report.stage, report.stage))
                tasks[report.stage] = bars.add_task(name, total=report.total, note="")
            bars.update(tasks[report.stage], completed=report.done, total=report.total, note=visible(report.note))
            if time.monotonic() - shown >= pause:
                shown = time.monotonic()
                show(bars.tasks[tasks[report.stage]])

        yield listen
        if console.is_jupyter and bars.tasks:
            show(bars.tasks[-1])


def _manner(bars: Bars) -> tuple[float, Callable[[Task], None]]:
    """Seconds between two times that something has to be shown, and how."""
    console = bars.console

    def print_line(task: Task) -> None:
        left = "" if task.time_remaining is None else f", {timedelta(seconds=int(task.time_remaining))} left"
        text = f"{task.description}: {task.completed} of {task.total}{left}"
        console.print(text, highlight=False, soft_wrap=True)

    if console.is_jupyter:  # below the cell, in the place of the bars drawn before
        from IPython.display import display

        handle = display(bars.make_tasks_table(bars.tasks), display_id=True)
        return _SECONDS_BETWEEN_PICTURES, lambda task: handle.update(bars.make_tasks_table(bars.tasks))
    if console.is_terminal and not console.is_dumb_terminal:
        return math.inf, lambda task: None  # bars move by themselves
    return _SECONDS_BETWEEN_LINES, print_line
