"""Renders docs/results/paper.md, docs/results/local.md and tables of the README from docs/results/reproduction.jsonl.

`manifind reproduce local --results docs/results/reproduction.jsonl` runs what the file lacks; this script runs nothing.
"""

from __future__ import annotations

from pathlib import Path

import findings as counting_rules
from findings import findings, findings_table, judge

from manifind.bench.html import markdown_table, put_between, write_figure
from manifind.bench.paper.figures import draw_results
from manifind.bench.paper.render import as_markdown, table_rows
from manifind.bench.paper.tables import LOCAL_SETS, artefacts_of, default_beside_paper, local, table3
from manifind.bench.results import Results

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "results"
RESULTS = FOLDER / "reproduction.jsonl"
README = ROOT / "README.md"
_OF_THE_PAPER = ("table1", "table2", "table3", "table4", "table5", "figure8", "claims", "beyond")

_OF_DIGITS = ("figure5", "figure6", "figure7")

_PAPER = """# The paper's tables and figures

Ours, then in brackets what the paper prints and the difference. Most cells are `not run`:
their descriptors are not to be had here, and the notes say which files they need.
[How to run and read these](../reproduction.md).
"""
_LOCAL = """# The same on data that anybody can have

The paper's tables with its methods and settings on other sets. None of these numbers can stand beside the paper's,
whose sets or descriptors are others, but for ORL's. [How to run and read these](../reproduction.md).

## What the paper finds, and what these sets say

A finding holds where its value is ahead of the best of the others by more than twice the larger deviation over the
seeds. A verdict says so where it rests on a single seed; methods without a seed, and costs, count as exact.
"""
_RULES = """
## Which ORL, counted how

The paper does not say by which rule its Table 2 counts, and marks only Efficient and GSS as run for it. How far our
rows lie from it, in points:
"""


def rendered_pages() -> dict[Path, str]:
    """Each page that shows these results, as it should read."""
    results = Results(RESULTS)
    paper = [one for item in _OF_THE_PAPER for one in artefacts_of(item)]
    verdicts = findings_table(judge(one, results) for one in findings())
    rules = counting_rules.distances_table(counting_rules.distances(results))
    return {
        FOLDER / "paper.md": "\n".join([_PAPER, *(as_markdown(one, results) for one in paper), _figures()]),
        FOLDER / "local.md": "\n".join(
            [_LOCAL, verdicts, _RULES, rules, "", *(as_markdown(one, results) for one in local())]
        ),
        README: put_between(README.read_text(), "reproduction", _main_table(results)),
    }


def _figures() -> str:
    """The figures that are no plots of results: drawn here, or with the command that draws them."""
    lines = ["## Figures 1 to 7", ""]
    for name in (f"figure{number}" for number in range(1, 8)):
        picture = {"figure4": "../images/letters.png"}.get(name, f"{name}.png")
        shown = f"\n\n![{name}]({picture})\n" if (FOLDER / picture).exists() else "; not drawn here"
        of = ", of digits and with the paper's settings" if name in _OF_DIGITS else ""
        lines.append(f"- `manifind reproduce {name}`{of}{shown}")
    return "\n".join(lines) + "\n"


def _main_table(results: Results) -> str:
    """Table 3's methods on the sets here, the default below them."""
    table, default = table3(LOCAL_SETS), default_beside_paper(LOCAL_SETS, "local")
    ours = [row for row in table_rows(default, results) if row[0] == "GRAD-Net, default"]
    rows = [*table_rows(table, results), *ours]
    names = {"GRAD-Net": "GRAD-Net, paper's settings", "GRAD-Net, k = 15": "the same, k = 15 on Paris too"}
    named = [[names.get(row[0], row[0]), *row[1:]] for row in rows]
    return markdown_table(["", *table.columns], named)


def draw() -> None:
    """The plots that the pages show."""
    results = Results(RESULTS)
    every = [*(one for item in _OF_THE_PAPER for one in artefacts_of(item)), *local()]
    for one in (one for one in every if one.picture):
        write_figure(draw_results(one, results), FOLDER / str(one.picture))


if __name__ == "__main__":
    for page, text in rendered_pages().items():
        page.write_text(text)
    draw()
