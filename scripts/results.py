"""Runs the toy letters into docs/results/letters.json, and renders the table and the picture of the README.

`make results` runs what the file lacks, then renders; remove the file to run it anew. `scripts/results.py --render`
only renders. The other rows come from docs/results/suite.json, which `manifind compare --suite local --json` prints.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "docs" / "results" / "letters.json"
SUITE = ROOT / "docs" / "results" / "suite.json"
PICTURE = ROOT / "docs" / "images" / "letters.png"


def run() -> None:
    """Every cell that the file does not have yet from this machine and these versions."""
    results: dict[str, Any] = {"machine": _machine(), "cells": {}}
    if RESULTS.is_file():
        before = json.loads(RESULTS.read_text())
        results = before if before["machine"] == results["machine"] else results
    for count in ("word", "letter"):
        if f"letters/{count}" not in results["cells"]:
            results["cells"][f"letters/{count}"] = [measure_letters(count, seed=0)]
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def measure_letters(count: str, seed: int) -> dict[str, Any]:
    """The toy letters; the picture of the README is drawn from the run over the word."""
    from manifind.bench.letters import draw_letters, run_letters

    result = run_letters(count=count, seed=seed)
    if count == "word":
        draw_letters(result, PICTURE)
    euclidean, learned = float(result.euclidean_precision.mean()), float(result.gradnet_precision.mean())
    return {"euclidean": euclidean, "gradnet": learned, "seed": seed}


def _machine() -> dict[str, Any]:
    packages = ("manifind", "numpy", "scipy", "torch", "faiss-cpu", "scikit-learn")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


def rendered_pages() -> dict[Path, str]:
    """Each page that shows these results, as it should read."""
    return {README: _between(README, "results", _main_table())}


def _main_table() -> str:
    lines = [
        "| set | score | k-NN | best of ten peers, tuned with the labels | GRAD-Net, default |",
        "|---|---|--:|--:|--:|",
    ]
    for row in json.loads(SUITE.read_text())["sets"]:
        peer, ours = row["best_tuned_peer"], row["gradnet"]
        lines.append(
            f"| {row['set']} | {row['measure']} | {row['knn']:.1f} | {peer['value']:.1f} ({peer['method']}) | "
            f"**{ours['mean']:.1f}** ± {ours['deviation']:.1f} |"
        )
    cells = json.loads(RESULTS.read_text())["cells"]
    for count in ("word", "letter"):
        (cell,) = cells[f"letters/{count}"]
        knn, learned = 100 * cell["euclidean"], 100 * cell["gradnet"]
        lines.append(f"| toy letters, 1,500 points per {count} | precision | {knn:.1f} | | **{learned:.1f}** |")
    return "\n".join(lines)


def _between(page: Path, mark: str, text: str) -> str:
    begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    head, rest = page.read_text().split(begin)
    return f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    if "--render" not in sys.argv:
        run()
    for page, text in rendered_pages().items():
        page.write_text(text)
