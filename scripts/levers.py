"""Measures what each lever of the default is worth, into docs/results/levers.jsonl, and renders docs/default.md.

`scripts/levers.py` runs every row on every set of the local suite with three seeds: hours on two cores, minutes with
`--workers 14` beside a GPU. `--more FOLDER` adds labelled .npz files, the sets for confirmation. `--render` only
renders, these results and those of `manifind compare --suite local --results docs/results/suite.jsonl`. What the file
has is not run again, unless `--outdated` asks for what other code made.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np

from manifind.bench.html import markdown_table, put_between
from manifind.bench.paper.declared import Run
from manifind.bench.paper.runner import PaperRunOptions, Wanted, run_missing
from manifind.bench.paper.tables import score_run
from manifind.bench.results import Results
from manifind.bench.sets import SETS, file_set
from manifind.bench.suite import PEERS, SUITES, SuiteRow, read_rows
from manifind.progress import progress_bars

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results" / "levers.jsonl"
REPRODUCED = ROOT / "docs" / "results" / "reproduction.jsonl"
SUITE = ROOT / "docs" / "results" / "suite.jsonl"
PAGE = ROOT / "docs" / "default.md"
SEEDS = (0, 1, 2)

LEVERS: dict[str, dict[str, Any]] = {
    "the default": {},
    '`similarity="gaussian"`, wider weights': {"similarity": "gaussian"},
    '`graph="mutual"`': {"graph": "mutual"},
    "`n_neighbors=15`": {"n_neighbors": 15},
    '`positives="edges"`': {"positives": "edges"},
    "`walk_weight=0`": {"walk_weight": 0.0},
    '`inputs="both"`, with anchor codes': {"inputs": "both"},
    "`global_weight=0`": {"global_weight": 0.0},
    "`global_weight=1`": {"global_weight": 1.0},
    "`temperature=1`": {"temperature": 1.0},
    "`dropout=0.3`": {"dropout": 0.3},
    '`layer="gcn"`, no second order': {"layer": "gcn"},
    '`preprocess="center"`': {"preprocess": "center"},
    "`max_steps=0`, nothing learned": {"max_steps": 0},
    "`max_steps=50`": {"max_steps": 50},
    "`max_steps=500`": {"max_steps": 500},
    "`guard=False`": {"guard": False},
}
PAPERS = "the paper's settings, `GradNet(**manifind.PAPER)`"
"""Not one lever but all, and the paper's 300 epochs: from `manifind reproduce local`, with k = 60 on Paris."""


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--render", action="store_true", help="render what is known, run nothing")
    parser.add_argument("--workers", type=int, default=1, help="processes at once")
    parser.add_argument("--more", type=Path, help="folder of labelled .npz files to run as well")
    parser.add_argument("--outdated", action="store_true", help="run again what other code made")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which to stop")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the results file")
    given = parser.parse_args()
    if not given.render:
        until, results, every = time.monotonic() + given.limit, Results(given.out), wanted(given.more)
        with progress_bars() as listener:
            for seed in SEEDS:  # what is cut off is the last seed
                left = until - time.monotonic()
                options = PaperRunOptions(outdated=given.outdated, workers=given.workers, seconds=left)
                run_missing([one for one in every if one.seed == seed], results, options, listener)
    if given.out == RESULTS:
        PAGE.write_text(rendered_pages()[PAGE])


def lever_run(lever: str, on: str) -> Run:
    """A row on a set."""
    return Run("trial", on, "gradnet", LEVERS[lever])


def wanted(more: Path | None) -> list[Wanted]:
    """Every fit. more: a folder of further sets."""
    names = [member.on for member in SUITES["local"]]
    for file in sorted(more.glob("*.npz")) if more else []:
        SETS[file.stem] = file_set(file.stem, str(file.resolve()))
        names.append(file.stem)
    return [
        Wanted(lever_run(lever, on), seed, "scripts/levers.py") for seed in SEEDS for lever in LEVERS for on in names
    ]


def rendered_pages() -> dict[Path, str]:
    """The page, with its tables as they should be."""
    results = Results(RESULTS)
    developed = {member.name: member.on for member in SUITES["local"]}
    others = sorted({key["set"] for key, *_ in results.items()} - set(developed.values()))
    text = PAGE.read_text()
    text = put_between(text, "levers", levers_table(results, list(developed), list(developed.values()), PAPERS))
    text = put_between(text, "confirmed", levers_table(results, others, others))
    rows = read_rows(SUITES["local"], Results(SUITE))
    text = put_between(text, "suite", suite_table(rows))
    text = put_between(text, "modern", suite_table(read_rows(SUITES["modern"], Results(SUITE))))
    text = put_between(text, "searched", searched_table(rows))
    text = put_between(text, "unseen", unseen_table(rows))
    return {PAGE: text}


def levers_table(results: Results, names: Sequence[str], sets: Sequence[str], papers: str | None = None) -> str:
    """One row a lever, one column a set, and the mean over them; pairs say nothing of a graph.

    papers: the name of a last row with the paper's settings, if there is to be one.
    """
    rows = {lever: [_mean(results, lever_run(lever, on)) for on in sets] for lever in LEVERS}
    if papers:
        reproduced = Results(REPRODUCED)
        rows[papers] = [_mean(reproduced, score_run(on, "gradnet-paper")) for on in sets]
    shown = []
    for name, means in rows.items():
        mean = np.mean([value for on, value in zip(sets, means, strict=True) if on != "pairs" and value is not None])
        shown.append([name, *("-" if value is None else f"{value:.1f}" for value in means), f"{mean:.1f}"])
    return markdown_table(["", *names, "mean"], shown)


def _mean(results: Results, run: Run) -> float | None:
    """The score of the set over the seeds that are known; None where there are none."""
    measure = SETS[run.on].measure if run.on in SETS else "mAP"
    known = [record for seed in SEEDS if (record := results.get(run.key(seed))) is not None]
    return float(np.mean([record["values"][measure] for record in known])) if known else None


def suite_table(rows: list[SuiteRow]) -> str:
    """One row a set and preprocessing; those that were not run are left out."""
    header = ["set", "descriptors", "score", "k-NN", "best tuned peer", "GRAD-Net, default"]
    shown = []
    for row in (one for one in rows if one.missing is None):
        best = "" if row.best is None else f"{row.best.value:.1f} ({row.best.method})"
        mine = f"**{row.mean:.1f}** ± {row.deviation:.1f}"
        shown.append([row.member.name, row.preprocess, row.member.measure, f"{row.knn:.1f}", best, mine])
    return markdown_table(header, shown, n_texts=3)


def searched_table(rows: list[SuiteRow]) -> str:
    """The best score of every peer, and of how many settings."""
    shown = []
    for name in PEERS:
        found = [next((one for one in row.peers if one.method == name), None) for row in rows]
        shown.append([name, *("-" if one is None else f"{one.value:.1f} of {one.tried}" for one in found)])
    totals = ["settings tried", *(f"{row.tried:,}" for row in rows)]
    return markdown_table(["", *(row.name for row in rows)], [*shown, totals])


def unseen_table(rows: list[SuiteRow]) -> str:
    header = ["set", "in the graph", "unseen, by QFE", "lost", "inside the thinner graph"]
    shown = []
    for row in rows:
        if row.unseen is not None:
            inside, unseen, thinner = row.unseen
            values = [f"{value:.1f}" for value in (inside, unseen, inside - unseen, thinner)]
            shown.append([row.member.name, *values])
    return markdown_table(header, shown)


if __name__ == "__main__":
    main()
