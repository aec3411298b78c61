"""Writes the table of data sets in docs/data.md, between its markers, from the catalogue.

`--check` writes nothing and fails where the page is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from manifind.datasets.catalogue import CATALOGUE, DataSet, items_text, licence_text, size_text

PAGE = Path(__file__).resolve().parent.parent / "docs" / "data.md"
START, END = "<!-- data sets: scripts/data_table.py -->", "<!-- end of data sets -->"


def table() -> str:
    """One line for each data set."""
    lines = [
        "| name | what | items | queries | ground truth | to fetch | terms, as stated | source |",
        "|---|---|--:|--:|---|---|---|---|",
    ]
    return "\n".join([*lines, *map(_line, CATALOGUE.values())])


def render(page: str) -> str:
    """The page with the table between its markers."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{table()}\n\n{END}{after}"


def _line(dataset: DataSet) -> str:
    queries = "each item" if dataset.queries is None else f"{dataset.queries}"
    optional = [part for part in dataset.parts if part not in dataset.default_parts]
    also = f"; with `--part {'`, `--part '.join(optional)}` more" if optional else ""
    size = {"not known": "size not known"}.get(size_text(dataset), size_text(dataset))
    source = f"<{dataset.source}>" if "://" in dataset.source else dataset.source
    cells = (f"`{dataset.name}`", dataset.title, items_text(dataset), queries, dataset.truth, size + also)
    return f"| {' | '.join((*cells, licence_text(dataset), source))} |"


if __name__ == "__main__":
    text = render(PAGE.read_text())
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text() == text else "docs/data.md is out of date: scripts/data_table.py")
    PAGE.write_text(text)
    print(PAGE)
