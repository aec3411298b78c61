"""Measures where answers are cut, into docs/results/cutoff.jsonl, and renders a table and a figure of docs/default.md.

`scripts/cutoff.py` fits every set at hand with the default, and compares the F1 of cut answers with that of the best
single threshold, which the labels choose for each set; then asks 100 items of another set with the same descriptor,
strangers all of them. Minutes on two cores. What the file has is not run again, unless `--outdated` asks for
what other code made. `--render` only renders.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np

from manifind import GradNet
from manifind.arrays import Floats
from manifind.bench.cell import finished
from manifind.bench.held_out import find_items
from manifind.bench.html import markdown_table, put_between
from manifind.bench.results import Results, provenance
from manifind.bench.runner import task_code
from manifind.bench.sets import SETS, read_set
from manifind.bench.task import RetrievalTask
from manifind.errors import DataError
from manifind.graph.neighbour_agreement import LittleToLearnWarning
from manifind.search.cutoff import LIKELY

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results" / "cutoff.jsonl"
PAGE, FIGURE = ROOT / "docs" / "default.md", ROOT / "docs" / "images" / "cutoff.png"
EARLIER = ("ORL", "ORL aligned", "MPEG-7 masks", "MPEG-7 EfficientNet", "COIL-20", "digits", "Paris subset")
MODERN = ("Paris subset CLIP", "Paris subset DINOv2", "Simple1K DINOv2", "Flowers-17 EfficientNet")
NAMES = (*EARLIER, "Oxford5k CaffeNet", *MODERN)
STRANGERS = (
    ("Paris subset DINOv2", "Simple1K DINOv2"),
    ("Simple1K DINOv2", "Paris subset DINOv2"),
    ("MPEG-7 EfficientNet", "Flowers-17 EfficientNet"),
    ("Flowers-17 EfficientNet", "MPEG-7 EfficientNet"),
    ("ORL aligned", "COIL-20"),
    ("COIL-20", "ORL aligned"),
)
N_STRANGERS, MOST_QUERIES = 100, 400
THRESHOLDS = np.linspace(0, 1, 101)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--render", action="store_true", help="render what is known, run nothing")
    parser.add_argument("--outdated", action="store_true", help="run again what other code made")
    given = parser.parse_args()
    results = Results(RESULTS)
    if not given.render:
        for name in NAMES:
            run_missing(name, results, given.outdated)
    draw(results)
    for page, text in rendered_pages().items():
        page.write_text(text)


def run_missing(name: str, results: Results, outdated: bool) -> None:
    """Measure a set, and the strangers that ask it; one whose files are not at hand is left out."""
    record, code = results.get(_key(name)), task_code(f"{Path(__file__).stem}:run_missing", None)
    if record is not None and (not outdated or record["code"] == code):
        return
    try:
        task = read_set(SETS[name])
    except DataError as error:
        print(f"{name}: {error.problem}", file=sys.stderr)
        return
    X = task.descriptors
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LittleToLearnWarning)
        model = GradNet(random_state=0).fit(X)
    values = f1_scores(task, model)
    for database, others in STRANGERS:
        if database == name:
            rows = read_set(SETS[others]).descriptors.astype(np.float32)
            chosen = np.random.default_rng(0).choice(len(rows), N_STRANGERS, replace=False)
            lengths = model.search(rows[chosen], k=50).cut().lengths
            values["strangers"] = float((lengths <= 1).mean() * 100)
    results.add(_key(name), {**finished(**values), **provenance("scripts/cutoff.py", task.digest(), code)})


def f1_scores(task: RetrievalTask, model: Any) -> dict[str, float]:
    """In percent: of cut answers, and of the best single threshold on learned scores and on plain cosines."""
    places = find_items(task)
    relevance, _ = task.truth.relevance(task.query_items, "mAP")
    some = np.random.default_rng(0).permutation(len(places))[:MOST_QUERIES]
    features, plain = model.features_, model.contents().learned.descriptors
    cut, learned, cosine = [], [], []
    for query in some:
        place = places[query]
        left_out = np.union1d(relevance.ignored[query], [place])
        right = np.zeros(len(features), dtype=bool)
        right[relevance.relevant[query]] = True
        kept = np.setdiff1d(np.arange(len(features)), left_out)
        scores = features[kept] @ features[place]
        certainty = model.contents().learned.cutoff.certainty(scores[None])[0]
        cut.append(f1(certainty, right[kept], np.array([LIKELY]))[0])
        learned.append(f1(scores, right[kept], THRESHOLDS))
        cosine.append(f1(plain[kept] @ plain[place], right[kept], THRESHOLDS))
    best = {name: 100 * float(np.mean(found, axis=0).max()) for name, found in (("best", learned), ("plain", cosine))}
    return {"cut": 100 * float(np.mean(cut)), **best}


def f1(scores: Floats, right: Any, thresholds: Any) -> Any:
    """2 hits / (found + right), for each threshold from which on items count."""
    order = np.sort(scores)
    found = len(scores) - np.searchsorted(order, thresholds)
    hits = right.sum() - np.searchsorted(np.sort(scores[right]), thresholds)
    return 2 * hits / np.maximum(found + right.sum(), 1)


def _key(name: str) -> dict[str, str]:
    return {"kind": "cutoff", "set": name}


def known(results: Results) -> dict[str, dict[str, float]]:
    """The values of the sets that were run."""
    return {name: record["values"] for name in NAMES if (record := results.get(_key(name))) is not None}


def rendered_pages() -> dict[Path, str]:
    """The page, with its table as it should be."""
    rows = []
    for name, one in known(Results(RESULTS)).items():
        strangers = f"{one['strangers']:.0f} of {N_STRANGERS}" if "strangers" in one else "-"
        rows.append([name, *(f"{one[column]:.1f}" for column in ("plain", "best", "cut")), strangers])
    means = [f"{np.mean([float(row[column]) for row in rows]):.1f}" for column in (1, 2, 3)] if rows else ["", "", ""]
    header = ["set", "plain cosine, best threshold", "learned, best threshold", "cut answers", "strangers left alone"]
    return {PAGE: put_between(PAGE.read_text(), "cutoff", markdown_table(header, [*rows, ["mean", *means, ""]]))}


def draw(results: Results) -> None:
    """The figure: bars of F1 for each set."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    values = known(results)
    places = np.arange(len(values))
    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    kinds = (("plain", "plain cosine, best threshold of the set"), ("best", "learned, best threshold of the set"),
             ("cut", "cut answers, no labels"))  # fmt: skip
    for shift, ((column, label), colour) in enumerate(zip(kinds, ("#bbbbbb", "#8fb8de", "#1f5a96"), strict=True)):
        heights = [one[column] for one in values.values()]
        axes.bar(places + 0.27 * (shift - 1), heights, 0.27, label=label, color=colour)
    axes.set_xticks(places, values.keys(), rotation=30, ha="right")
    axes.set_ylabel("F1, mean over the queries")
    axes.set_ylim(0, 100)
    figure.legend(loc="outside upper center", ncols=3, fontsize="small")
    figure.savefig(FIGURE, dpi=110)


if __name__ == "__main__":
    main()
