"""A comparison as one HTML file."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from manifind.bench.comparison import TUNED, Entry, Table
from manifind.bench.html import Html, Scale, cost_bar, cost_text, document, fill, join, score_bar, tag
from manifind.bench.results import machine, versions
from manifind.files import write_file
from manifind.text import count

_COSTS = (("Prepare", "s"), ("One query", "ms"), ("Peak memory", "MB"))
"""Of Cell.costs: the name and the unit."""


def write_page(source: str, tables: Sequence[Table], path: Path, seed: int) -> None:
    """Write the page; a file that is there already is replaced in one step."""
    write_file(Path(path), page(source, tables, seed).encode())


def page(source: str, tables: Sequence[Table], seed: int) -> str:
    title, here = f"Retrieval methods compared on {source}", machine()
    is_tuned = any(row.tuned for table in tables for row in table.rows)
    main = fill(
        "report/page",
        title=title,
        flatters=fill("report/flatters", TUNED) if is_tuned else "",
        sections=join(*map(_section, tables)),
        seed=seed,
        here=here,
        cores=count(here["cores"], "core"),
        versions=", ".join(f"{name} {number}" for name, number in versions().items()),
    )
    return document(title, ("report.css", "compare.css"), main)


def _section(table: Table) -> Html:
    cells = [row.entry.cell for row in table.rows]
    cells += [row.tuned.entry.cell for row in table.rows if row.tuned]
    scales = [Scale.around(filter(None, values)) for values in zip(*(cell.costs for cell in cells), strict=True)]
    heads = (
        fill("report/cost_head", name=name, unit=unit, scale=scale)
        for (name, unit), scale in zip(_COSTS, scales, strict=True)
    )
    chosen = [tag("li", f"{row.method}: {row.tuned.words}") for row in table.rows if row.tuned is not None]
    return fill(
        "report/section",
        table=table,
        rule=f"Rule: {table.rule}. " if table.rule else "",
        measure=table.measure or "Score",
        costs=join(*heads),
        rows=join(*_rows(table, scales)),
        chosen=fill("report/chosen", TUNED, join(*chosen)) if chosen else "",
    )


def _rows(table: Table, scales: Sequence[Scale]) -> Iterable[Html]:
    for row in table.rows:
        yield _line(row.method, row.entry, scales, "ours" if row.method.startswith("gradnet") else "peer")
        if row.tuned is not None and row.tuned.chosen:
            yield _line(TUNED, row.tuned.entry, scales, "tuned")


def _line(name: str, entry: Entry, scales: Sequence[Scale], kind: str) -> Html:
    if entry.main is None:
        return fill("report/no_score", kind, name, entry.cell.why)
    main, against = entry.main, entry.against
    costs = (
        tag("td", "not known")
        if value is None
        else tag("td", cost_text(value), cost_bar(f"{name}: {title}", value, unit, scale))
        for value, (title, unit), scale in zip(entry.cell.costs, _COSTS, scales, strict=True)
    )
    difference = "" if against is None else fill("report/against", against)
    bar = score_bar(name, main.score.value, main.low, main.high)
    return fill("report/line", kind=kind, name=name, main=main, bar=bar, against=difference, costs=join(*costs))
