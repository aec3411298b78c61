"""Measures what whitening does to descriptors, into docs/results/whitening.jsonl; renders a table of docs/default.md.

`scripts/whitening.py` scores plain neighbours and GRAD-Net's default on every set at hand, with rows scaled to length
1, without their mean, and whitened: minutes on two cores. What the file has is not run again, unless `--outdated` asks
for what other code made. Then, or alone with `--render`, the table is made.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np

from manifind.bench.cell import DONE, TRIAL
from manifind.bench.html import markdown_table, put_between
from manifind.bench.results import Results
from manifind.bench.runner import CellJob, RunOptions, open_runner
from manifind.bench.sets import SETS, read_set
from manifind.bench.task import RetrievalTask
from manifind.errors import DataError
from manifind.progress import Listener, progress_bars

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results" / "whitening.jsonl"
PAGE = ROOT / "docs" / "default.md"
KINDS = ("unit", "center", "whiten")
METHODS = ("knn", "gradnet")
SETS_SHOWN = {
    "Paris subset CLIP ViT-B/32": "Paris subset CLIP",
    "Paris subset DINOv2 ViT-S/14": "Paris subset DINOv2",
    "simple1k DINOv2 ViT-S/14": "Simple1K DINOv2",
    "Flowers17 EfficientNet-Lite0": "Flowers-17 EfficientNet",
    "Paris subset ResNet-34": "Paris subset",
    "Oxford5k CaffeNet-128": "Oxford5k CaffeNet",
    "MPEG-7 EfficientNet-Lite0": "MPEG-7 EfficientNet",
    "MPEG-7 masks": "MPEG-7 masks",
    "ORL aligned 32x32 pixels": "ORL aligned",
    "COIL-20 pixels": "COIL-20",
    "digits": "digits",
}
NAMES = tuple(SETS_SHOWN)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--render", action="store_true", help="render what is known, run nothing")
    parser.add_argument("--outdated", action="store_true", help="run again what other code made")
    given = parser.parse_args()
    results = Results(RESULTS)
    if not given.render:
        with progress_bars() as listener:
            for name in NAMES:
                run_missing(name, results, given.outdated, listener)
    for page, text in rendered_pages().items():
        page.write_text(text)


def run_missing(name: str, results: Results, outdated: bool, listener: Listener) -> None:
    """Score a set with every preprocessing; one whose files are not at hand is left out."""
    try:
        task = read(name)
    except DataError as error:
        print(f"{name}: {error.problem}", file=sys.stderr)
        return
    dimensions = effective_dimensions(task)
    with open_runner(task, results, RunOptions(outdated=outdated), listener) as runner:
        for job, record in runner.run_all([job for job in jobs(name, dimensions) if runner.known(job) is None]):
            if record["state"] != DONE:
                sys.exit(f"{job.label} {record['state']}: {record['reason']}")


def jobs(name: str, dimensions: float) -> Iterator[CellJob]:
    """Every score of a set. dimensions: saved with each."""
    for method in METHODS:
        for kind in KINDS:
            settings = {"preprocess": kind} | ({"random_state": 0} if method == "gradnet" else {})
            notes, label = {"effective dimensions": dimensions}, f"{method} on {name}, {kind}"
            arguments = {"settings": settings}
            yield CellJob(_key(name, method, kind), TRIAL, method, arguments, label, "scripts/whitening.py", notes)


def _key(name: str, method: str, kind: str) -> dict[str, str]:
    return {"kind": "whitening", "set": name, "method": method, "preprocess": kind}


def effective_dimensions(task: RetrievalTask) -> float:
    """(sum of v)^2 / sum of v^2, where v are the variances along the principal directions."""
    X = task.descriptors.astype(np.float64)
    variances = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    return float(variances.sum() ** 2 / (variances**2).sum())


def read(name: str) -> RetrievalTask:
    """A set; DataError where its files are not there."""
    return read_set(SETS[SETS_SHOWN[name]], None)


def rendered_pages() -> dict[Path, str]:
    """The page, with its table as it should be; ValueError where it has no marks for one."""
    return {PAGE: put_between(PAGE.read_text(), "whitening", whitening_table(Results(RESULTS)))}


def whitening_table(results: Results) -> str:
    """One row a set: plain neighbours and GRAD-Net with each preprocessing."""
    rows = []
    for name in NAMES:
        found = {(m, k): results.get(_key(name, m, k)) for m in METHODS for k in KINDS}
        first = found[METHODS[0], KINDS[0]]
        cells = ["not run" if one is None else f"{next(iter(one['values'].values())):.1f}" for one in found.values()]
        rows.append([name, "" if first is None else f"{first['effective dimensions']:.0f}", *cells])
    heads = [f"{label}, {kind}" for label in ("k-NN", "GRAD-Net") for kind in KINDS]
    return markdown_table(["set", "effective dimensions", *heads], rows)


if __name__ == "__main__":
    main()
