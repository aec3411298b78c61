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
_LEAD = (
    "Every method was given the same descriptors and ranked the whole database for the same queries, each "
    "in a process of its own and with its default settings, which saw no label. The line across the "
    "end of a score's bar is the 95 % interval: queries drawn anew with replacement."
)
_FLATTERS = """
<p><strong>Dashed bars are {}: </strong>their settings were chosen by the very score that they show. Nobody without
labels can choose so; they flatter, and stand here to be seen beside the honest default.</p>"""
_SECTION = """
<h2>{table.name}</h2>
<p>{table.size}; descriptors {table.preprocess}. {rule}The queries were known while the methods were
fitted.</p>
<div class="scroll"><table class="compare"><thead><tr><th scope="col">Method</th>
<th scope="col">{measure}, %<small>0 to 100</small></th><th scope="col" class="number">Against k-NN</th>
{costs}</tr></thead>
<tbody>{rows}</tbody></table></div>
<p class="note">Bars of cost grow with the logarithm: each vertical line is ten times the one before. One query: all
queries asked at once, full rankings, divided by their number. Peak memory: of the whole process,
libraries and descriptors too.</p>
{chosen}"""
_COST_HEAD = """<th scope="col">{name}, {unit}<small>{scale} {unit}</small></th>"""
_LINE = """
<tr class="{kind}"><th scope="row">{name}</th>
<td><b>{main.score.value:.2f}</b><small>{main.low:.2f} to {main.high:.2f}</small>{bar}</td>
<td class="number">{against}</td>{costs}</tr>"""
_NO_SCORE = """<tr class="{}"><th scope="row">{}</th><td colspan="5" class="reason">{}</td></tr>"""
_AGAINST = "{0.mean:+.2f}<small>{0.low:+.2f} to {0.high:+.2f}</small>"
_CHOSEN = "<details><summary>Settings that were {}</summary><ul>{}</ul></details>"
_MAKING = """
<footer><h2>How this was made</h2>
<p><code>manifind compare</code>, seed {seed}; {here[processor]}, {cores}, threads {here[threads]};
{versions}. This file is complete: it loads nothing and runs nothing.</p></footer>"""


def write_page(source: str, tables: Sequence[Table], path: Path, seed: int) -> None:
    """Write the page; a file that is there already is replaced in one step."""
    write_file(Path(path), page(source, tables, seed).encode())


def page(source: str, tables: Sequence[Table], seed: int) -> str:
    title, here = f"Retrieval methods compared on {source}", machine()
    is_tuned = any(row.tuned for table in tables for row in table.rows)
    made_with = ", ".join(f"{name} {number}" for name, number in versions().items())
    making = fill(_MAKING, seed=seed, here=here, cores=count(here["cores"], "core"), versions=made_with)
    lead = join(tag("h1", title), tag("p", _LEAD, class_="lead"), fill(_FLATTERS, TUNED) if is_tuned else "")
    return document(title, ("report.css", "compare.css"), join(lead, *map(_section, tables), making))


def _section(table: Table) -> Html:
    cells = [row.entry.cell for row in table.rows]
    cells += [row.tuned.entry.cell for row in table.rows if row.tuned]
    scales = [Scale.around(filter(None, values)) for values in zip(*(cell.costs for cell in cells), strict=True)]
    heads = (
        fill(_COST_HEAD, name=name, unit=unit, scale=scale) for (name, unit), scale in zip(_COSTS, scales, strict=True)
    )
    chosen = [tag("li", f"{row.method}: {row.tuned.words}") for row in table.rows if row.tuned is not None]
    return fill(
        _SECTION,
        table=table,
        rule=f"Rule: {table.rule}. " if table.rule else "",
        measure=table.measure or "Score",
        costs=join(*heads),
        rows=join(*_rows(table, scales)),
        chosen=fill(_CHOSEN, TUNED, join(*chosen)) if chosen else "",
    )


def _rows(table: Table, scales: Sequence[Scale]) -> Iterable[Html]:
    for row in table.rows:
        yield _line(row.method, row.entry, scales, "ours" if row.method.startswith("gradnet") else "peer")
        if row.tuned is not None and row.tuned.chosen:
            yield _line(TUNED, row.tuned.entry, scales, "tuned")


def _line(name: str, entry: Entry, scales: Sequence[Scale], kind: str) -> Html:
    if entry.main is None:
        return fill(_NO_SCORE, kind, name, entry.cell.why)
    main, against = entry.main, entry.against
    costs = (
        tag("td", "not known")
        if value is None
        else tag("td", cost_text(value), cost_bar(f"{name}: {title}", value, unit, scale))
        for value, (title, unit), scale in zip(entry.cell.costs, _COSTS, scales, strict=True)
    )
    difference = "" if against is None else fill(_AGAINST, against)
    bar = score_bar(name, main.score.value, main.low, main.high)
    return fill(_LINE, kind=kind, name=name, main=main, bar=bar, against=difference, costs=join(*costs))
