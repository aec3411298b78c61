"""What people see: tables on standard output; progress, notes and errors on standard error.

Names come from files and collections of anybody's making: whatever could move the cursor, change colours, or turn the
direction of a line is shown as an escape.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.cells import cell_len, chop_cells
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from manifind.errors import ManifindError
from manifind.images.files import path_text
from manifind.text import UNSEEN, visible

_HEADS = ("rank", "id", "path", "score", "metadata")
_NARROWEST = 40  # columns of a ranking; a terminal that is narrower breaks its lines
_BESIDE = 24  # columns that metadata need to stand beside a name, unless they are shorter


class ResultLine(NamedTuple):
    """A result for people. path: of its file, where its name does not say it. metadata: what else is known of it."""

    name: str
    path: str
    score: str
    metadata: str


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


def show_paths(paths: Sequence[Path], null: bool) -> None:
    """Paths for programs, byte for byte, each with a line break or a NUL behind it; a terminal sees them as text."""
    if sys.stdout.isatty():
        for path in paths:
            say(path_text(str(path)))
        return
    sys.stdout.buffer.write(b"".join(os.fsencode(path) + (b"\0" if null else b"\n") for path in paths))
    sys.stdout.buffer.flush()


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[str] = ()) -> None:
    """A table on standard output; `numeric` columns are aligned to the right.

    Text is shown as it is: an id may look like rich's markup or like the name of an emoji.
    """
    console = Console(highlight=False)
    _show_title(console, title)
    table = Table()
    for column in columns:
        table.add_column(_text(column), justify="right" if column in numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    console.print(table)


def show_ranking(title: str, results: Sequence[ResultLine]) -> None:
    """A table of results, best first, in which every name is whole.

    Where a line has no room for everything, path and metadata stand below the name.
    """
    console = Console(highlight=False)
    console.width = max(console.width, _NARROWEST)
    _show_title(console, title)
    widths, cells = _laid_out([ResultLine(*map(visible, one)) for one in results], console.width)
    table = Table()
    for head, width in widths.items():
        side: JustifyMethod = "right" if head in ("rank", "score") else "left"
        table.add_column(head, justify=side, overflow="fold", width=None if head == "metadata" else width)
    for row in zip(*(cells[head] for head in widths), strict=True):
        table.add_row(*row)
    console.print(table)


def _laid_out(results: Sequence[ResultLine], room: int) -> tuple[dict[str, int], dict[str, list[RenderableType]]]:
    """The columns of a table that is at most `room` wide, by their heads: how wide they are, and their cells."""
    ranks = tuple(str(rank) for rank, _ in enumerate(results, 1))
    texts = dict(zip(_HEADS, [ranks, *zip(*results, strict=True)], strict=True))
    widths = {head: max(map(cell_len, (head, *column))) for head, column in texts.items() if any(column)}
    if "metadata" in widths:
        widths["metadata"] = min(widths["metadata"], _BESIDE)
    cells: dict[str, list[RenderableType]] = {head: [*map(Text, texts[head])] for head in widths}
    if _table_width(widths) > room:
        widths = {"rank": widths["rank"], "id": 0, "score": widths["score"]}
        widths["id"] = room - _table_width(widths)
        cells["id"] = [_above_the_rest(one, widths["id"]) for one in results]
    return widths, cells


def _table_width(widths: Mapping[str, int]) -> int:
    """Of a table with columns of these widths: a space on either side of each, and lines between them."""
    return sum(widths.values()) + 3 * len(widths) + 1


def _above_the_rest(result: ResultLine, width: int) -> Group:
    """The name of a result, and what else there is to say indented below it."""
    below = [Text(_folded(f"path {result.path}", width - 2))] if result.path else []
    below += [Text(result.metadata, style="dim")] if result.metadata else []
    return Group(Text(_folded(result.name, width)), *(Padding(part, (0, 0, 0, 2)) for part in below))


def _folded(name: str, width: int) -> str:
    """A name on lines of at most `width` columns, broken behind slashes where it can be; nothing is left out."""
    lines = [""]
    for part in re.findall(r"[^/]*/|[^/]+", name):
        for piece in chop_cells(part, width):
            if cell_len(lines[-1] + piece) > width:
                lines.append("")
            lines[-1] += piece
    return "\n".join(lines)


def _show_title(console: Console, title: str) -> None:
    if title:
        console.print(Text(_folded(visible(title), console.width), style="table.title"))


def show_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Sentences on standard output, each with a word before it that says what it is about."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, sentence in facts:
        table.add_row(_text(name), _text(sentence))
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
