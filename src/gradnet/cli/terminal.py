"""What people see: tables on standard output; progress, notes and errors on standard error.

Names come from files and collections of anybody's making: whatever could move the cursor, change colours, or turn the
direction of a line is shown as an escape.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from gradnet.errors import GradNetError
from gradnet.progress import Listener, ignore
from gradnet.progress import Progress as Report

_SECONDS_BETWEEN_LINES = 60.0  # in a log
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, separators of lines, and what changes the direction of writing."""
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


def visible(text: str) -> str:
    """A text on one line, of which a terminal does nothing but show it: \\x1b for an escape, \\u202e, \\n."""
    return _UNSEEN.sub(lambda found: repr(found[0])[1:-1], text)


def show_error(error: GradNetError) -> None:
    """The problem on one line, the way out on the next."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(Text.assemble(("error:", "bold red"), " ", visible(error.problem)))
    if error.hint:
        console.print(Text.assemble((" hint:", "bold cyan"), " ", visible(error.hint)))


def show_json(value: Any) -> None:
    """One JSON document on standard output, in which every control character is written as JSON escapes it."""
    is_unicode = sys.stdout.encoding.lower() in ("utf-8", "utf8")
    text = json.dumps(value, indent=2, ensure_ascii=not is_unicode)
    print(_UNSEEN.sub(_in_json, text))  # noqa: T201


def _in_json(found: re.Match[str]) -> str:
    return "\n" if found[0] == "\n" else f"\\u{ord(found[0]):04x}"  # a line break stands between values only


def show_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[str] = ()
) -> None:
    """A table on standard output; `numeric` columns are aligned to the right.

    Text is shown as it is: an id may look like rich's markup or like the name of an emoji.
    """
    table = Table(title=_text(title) if title else None, title_justify="left")
    for column in columns:
        table.add_column(_text(column), justify="right" if column in numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    Console(highlight=False).print(table)


def say(text: str) -> None:
    """One line on standard output."""
    Console(highlight=False, soft_wrap=True).print(_text(text))


def note(text: str) -> None:
    """One line on standard error."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(_text(text))


def _text(text: str) -> Text:
    return Text(visible(text))


def speaks_for_all() -> bool:
    """Whether this process is the one of several that fit together which writes and prints; it is, if alone."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def silence() -> Iterator[Listener]:
    """A listener for the others."""
    yield ignore


@contextmanager
def progress_bars() -> Iterator[Listener]:
    """A listener that draws one bar per stage, with the time left.

    Where nobody watches, in a log, bars appear only at the end; until then a line says now and then how it stands.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=10),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}
        is_log, told = not bars.console.is_terminal, time.monotonic()

        def listen(report: Report) -> None:
            nonlocal told
            if report.stage not in tasks:
                name = visible(_STAGES.get(report.stage, report.stage))
                tasks[report.stage] = bars.add_task(name, total=report.total, note="")
            bars.update(
                tasks[report.stage], completed=report.done, total=report.total, note=visible(report.note)
            )
            if is_log and time.monotonic() - told >= _SECONDS_BETWEEN_LINES:
                told = time.monotonic()
                line = _text(_in_words(bars.tasks[tasks[report.stage]]))
                bars.console.print(line, highlight=False, soft_wrap=True)

        yield listen


def _in_words(task: Task) -> str:
    left = "" if task.time_remaining is None else f", {timedelta(seconds=int(task.time_remaining))} left"
    return f"{task.description}: {task.completed} of {task.total}{left}"
