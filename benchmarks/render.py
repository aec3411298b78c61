"""Renders docs/performance.md, between its markers, and its pictures from the results file.

`benchmarks/render.py` writes both; every number of the page comes from the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from measuring import read_benchmarks
from rendered_plots import PLOTS
from rendered_tables import TABLES, gpu_table, provenance_table

from manifind.bench.html import put_between
from manifind.bench.results import Results

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "performance.md"
_NOT_YET = "Not measured yet."


def results_path(folder: Path) -> Path:
    """Where the results file is under a folder like docs/."""
    return folder / "results" / "performance.jsonl"


def render(folder: Path) -> None:
    """Write the page and the pictures under a folder like docs/; the words of the page are those of docs/."""
    benchmarks = read_benchmarks(Results(results_path(folder)))
    for name, draw in PLOTS.items():
        if name in benchmarks:
            picture = folder / picture_path(name)
            picture.parent.mkdir(parents=True, exist_ok=True)
            picture.write_bytes(draw(benchmarks[name]["cases"]))
    (folder / PAGE.name).write_text(rendered_page(PAGE.read_text(), benchmarks, folder / "results" / "gpu.json"))


def rendered_page(page: str, benchmarks: dict[str, Any], gpu: Path) -> str:
    """The page with what was measured between its markers. gpu: what `gpu.py` has printed, if there is such a file."""
    for name in TABLES:
        page = put_between(page, name, _block(name, benchmarks[name]["cases"]) if name in benchmarks else _NOT_YET)
    page = put_between(page, "gpu", gpu_table(json.loads(gpu.read_text())) if gpu.exists() else _NOT_YET)
    return put_between(page, "provenance", provenance_table(benchmarks) if benchmarks else _NOT_YET)


def picture_path(name: str) -> str:
    """Where a benchmark's picture is, seen from the page."""
    return f"images/performance_{name}.png"


def _block(name: str, cases: dict[str, Any]) -> str:
    picture = f"\n\n![{PLOTS[name].__doc__}]({picture_path(name)})" if name in PLOTS else ""
    return TABLES[name](cases) + picture


if __name__ == "__main__":
    render(DOCS)
