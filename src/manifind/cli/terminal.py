"""What people see: tables on standard output; progress, notes and errors on standard error.

Names come from files and collections of anybody's making: whatever could move the cursor, change colours, or turn the
direction of a line is shown as an escape.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from manifind.errors import ManifindError
from manifind.text import UNSEEN, visible


def show_error(error: ManifindError) -> None:
    """The problem on one line, the way out on the next."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(Text.assemble(("error:", "bold red"), " ", visible(error.problem)))
    if error.hint:
        console.print(Text.assemble((" hint:", "bold cyan"), " ", visible(error.hint)))


def show_json(value: Any) -> None:
    """One JSON document on standard output, in which every control character is written as JSON escapes it."""
    is_unicode = sys.stdout.encoding.lower() in ("utf-8", "utf8")
    text = json.dumps(value, indent=2, ensure_ascii=not is_unicode)
    print(UNSEEN.sub(_in_json, text))  # noqa: T201


def _in_json(found: re.Match[str]) -> str:
    return "\n" if found[0] == "\n" else f"\\u{ord(found[0]):04x}"  # a line break stands between values only


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[str] = ()) -> None:
    """A table on standard output; `numeric` columns are aligned to the right.

    Text is shown as it is: an id may look like rich's markup or like the name of an emoji.
    """
    table = Table(title=_text(title) if title else None, title_justify="left")
    for column in columns:
        table.add_column(_text(column), justify="right" if column in numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    Console(highlight=False).print(table)


def say(text: str, stderr: bool = False) -> None:
    """One line on standard output, or on standard error."""
    Console(stderr=stderr, highlight=False, soft_wrap=True).print(_text(text))


note = partial(say, stderr=True)


def _text(text: str) -> Text:
    return Text(visible(text))


@contextmanager
def resumable(results: Path | None = None) -> Iterator[None]:
    """Ctrl-C ends with how to go on. results: the file that what is finished is kept in, if it is one."""
    try:
        yield
    except KeyboardInterrupt:
        place = "" if results is None else f" in {results}"
        note(f"stopped; what is finished is kept{place}: the same command goes on from there")
        raise typer.Exit(130) from None


def speaks_for_all() -> bool:
    """Whether this process is the one of several that fit together which writes and prints; it is, if alone."""
    return os.environ.get("RANK", "0") == "0"
