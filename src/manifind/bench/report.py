"""A comparison as one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from manifind.bench.cell import Cell
from manifind.bench.comparison import TUNED, Entry, Row, Table
from manifind.bench.html import Html, Scale, cost_bar, cost_text, document, join, score_bar, tag
from manifind.bench.results import machine, versions
from manifind.files import write_file
from manifind.text import count

_COSTS: tuple[tuple[str, str, Callable[[Cell], float | None]], ...] = (
    ("Prepare", "s", lambda cell: cell.seconds),
    ("One query", "ms", lambda cell: cell.milliseconds),
    ("Peak memory", "MB", lambda cell: None if cell.peak is None else cell.peak / 1e6),
)


def write_page(source: str, tables: Sequence[Table], path: Path, seed: int) -> None:
    """Write the page; a file that is there already is replaced in one step."""
    write_file(Path(path), page(source, tables, seed).encode())


def page(source: str, tables: Sequence[Table], seed: int) -> str:
    """The whole document."""
    title = f"Retrieval methods compared on {source}"
    main = tag("main", tag("h1", title), _introduction(tables), *map(_section, tables), _making(seed))
    return document(title, ("report.css", "compare.css"), main)


def _introduction(tables: Sequence[Table]) -> Html:
    words = [
        tag(
            "p",
            "Every method was given the same descriptors and ranked the whole database for the same queries, each "
            "in a process of its own and with its default settings, which saw no label. The line across the "
            "end of a score's bar is the 95 % interval: queries drawn anew with replacement.",
            class_="lead",
        )
    ]
    if any(row.tuned for table in tables for row in table.rows):
        words.append(
            tag(
                "p",
                tag("strong", f"Dashed bars are {TUNED}: "),
                "their settings were chosen by the very score that they show. Nobody without labels can choose so; "
                "they flatter, and stand here to be seen beside the honest default.",
            )
        )
    return join(*words)


def _section(table: Table) -> Html:
    cells = [row.entry.cell for row in table.rows]
    cells += [row.tuned.entry.cell for row in table.rows if row.tuned]
    scales = [Scale.around(filter(None, map(value, cells))) for _, _, value in _COSTS]
    return join(
        tag("h2", table.name),
        tag(
            "p",
            f"{count(table.items, 'item')}, {count(table.dimension, 'dimension')}, "
            f"{count(table.queries, 'query')}; descriptors {table.preprocess}. "
            f"{f'Rule: {table.rule}. ' if table.rule else ''}"
            "The queries were known while the methods were fitted.",
        ),
        tag(
            "div",
            tag("table", _header(table, scales), tag("tbody", *_rows(table, scales)), class_="compare"),
            class_="scroll",
        ),
        tag(
            "p",
            "Bars of cost grow with the logarithm: each vertical line is ten times the one before. One query: all "
            "queries asked at once, full rankings, divided by their number. Peak memory: of the whole process, "
            "libraries and descriptors too.",
            class_="note",
        ),
        _chosen(table.rows),
    )


def _header(table: Table, scales: Sequence[Scale]) -> Html:
    columns = [tag("th", "Method", scope="col")]
    columns.append(tag("th", f"{table.measure or 'Score'}, %", tag("small", "0 to 100"), scope="col"))
    columns.append(tag("th", "Against k-NN", scope="col", class_="number"))
    for (name, unit, _), scale in zip(_COSTS, scales, strict=True):
        columns.append(tag("th", f"{name}, {unit}", tag("small", f"{scale} {unit}"), scope="col"))
    return tag("thead", tag("tr", *columns))


def _rows(table: Table, scales: Sequence[Scale]) -> Iterable[Html]:
    for row in table.rows:
        yield _line(row.method, row.entry, scales, "ours" if row.method.startswith("gradnet") else "peer")
        if row.tuned is not None and row.tuned.chosen:
            yield _line(TUNED, row.tuned.entry, scales, "tuned")


def _line(name: str, entry: Entry, scales: Sequence[Scale], kind: str) -> Html:
    cell, main = entry.cell, entry.main
    if main is None:
        why = tag("td", cell.why, colspan=2 + len(scales), class_="reason")
        return tag("tr", tag("th", name, scope="row"), why, class_=kind)
    value = main.score.value
    costs = (
        _cost(value_of(cell), scale, f"{name}: {title}", unit)
        for (title, unit, value_of), scale in zip(_COSTS, scales, strict=True)
    )
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag(
            "td",
            tag("b", f"{value:.2f}"),
            tag("small", f"{main.low:.2f} to {main.high:.2f}"),
            score_bar(name, value, main.low, main.high),
        ),
        tag("td", _against(entry), class_="number"),
        *costs,
        class_=kind,
    )


def _cost(value: float | None, scale: Scale, name: str, unit: str) -> Html:
    if value is None:
        return tag("td", "not known")
    return tag("td", cost_text(value), cost_bar(name, value, unit, scale))


def _against(entry: Entry) -> Html:
    if entry.against is None:
        return join("")
    mean, low, high = entry.against[:3]
    return join(f"{mean:+.2f}", tag("small", f"{low:+.2f} to {high:+.2f}"))


def _chosen(rows: Iterable[Row]) -> Html:
    """What tuning chose for each method."""
    lines = [tag("li", f"{row.method}: {row.tuned.words}") for row in rows if row.tuned is not None]
    if not lines:
        return join("")
    summary = tag("summary", f"Settings that were {TUNED}")
    return tag("details", summary, tag("ul", *lines))


def _making(seed: int) -> Html:
    here = machine()
    made_with = ", ".join(f"{name} {number}" for name, number in versions().items())
    return tag(
        "footer",
        tag("h2", "How this was made"),
        tag(
            "p",
            tag("code", "manifind compare"),
            f", seed {seed}; {here['processor']}, {count(here['cores'], 'core')}, threads {here['threads']}; "
            f"{made_with}. This file is complete: it loads nothing and runs nothing.",
        ),
    )
