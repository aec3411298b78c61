"""Measures what each lever of the default is worth, into docs/results/levers.json, and renders docs/default.md.

`scripts/levers.py` runs every row on every set of the local suite with three seeds: hours on two cores, minutes with
`--workers 14` beside a GPU. `--more FOLDER` adds labelled .npz files, the sets for confirmation. `--render` only
renders, these results and those of `manifind compare --suite local --json > docs/results/suite.json`. What the file has
is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results" / "levers.json"
SUITE = ROOT / "docs" / "results" / "suite.json"
PAGE = ROOT / "docs" / "default.md"
SEEDS = (0, 1, 2)

EARLIER: dict[str, Any] = {
    "n_neighbors": 15,
    "graph": "mutual",
    "similarity": "euclidean",
    "inputs": "both",
    "positives": "edges",
    "walk_weight": 0.0,
    "global_weight": 1.0,
    "temperature": 1.0,
    "dropout": 0.3,
    "milestones": (0.5, 0.75),
    "max_steps": 100,
    "guard": False,
}
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
    "all of them as the paper has them": EARLIER,
}


class Job(NamedTuple):
    """One fit: a row of LEVERS on a set with a seed. file: of a set that is no member."""

    lever: str
    set: str
    file: str | None
    seed: int

    @property
    def key(self) -> str:
        return f"{self.lever} | {self.set} | {self.seed}"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--render", action="store_true", help="render what is known, run nothing")
    parser.add_argument("--workers", type=int, default=1, help="processes at once")
    parser.add_argument("--more", type=Path, help="folder of labelled .npz files to run as well")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which to stop")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the results file")
    asked = parser.parse_args()
    if not asked.render:
        run(jobs(asked.more), asked.workers, asked.limit, asked.out)
    if asked.out == RESULTS:
        PAGE.write_text(rendered_pages()[PAGE])


def jobs(more: Path | None) -> list[Job]:
    """Every fit, seed by seed, so that what is cut off is the last seed."""
    from manifind.bench.suite import SUITES

    sets: list[tuple[str, str | None]] = [(member.name, None) for member in SUITES["local"]]
    sets += [(file.stem, str(file)) for file in sorted(more.glob("*.npz"))] if more else []
    return [Job(lever, name, file, seed) for seed in SEEDS for lever in LEVERS for name, file in sets]


def run(wanted: list[Job], workers: int, limit: float, out: Path) -> None:
    """What is missing, kept as it comes."""
    known = read(out)
    missing = [job for job in wanted if job.key not in known]
    started = time.perf_counter()
    with get_context("spawn").Pool(workers) as pool:
        for number, (job, value) in enumerate(pool.imap_unordered(measure, missing), 1):
            known[job.key] = value
            left = (time.perf_counter() - started) / number * (len(missing) - number)
            print(f"{number}/{len(missing)} {job.key}: {value:.2f}, {left / 60:.0f} min left", flush=True)
            if number % 50 == 0 or number == len(missing):
                write(out, known)
            if time.perf_counter() - started > limit:
                write(out, known)
                break
        pool.terminate()


def measure(job: Job) -> tuple[Job, float]:
    """The score of one fit."""
    import warnings

    import torch

    warnings.simplefilter("ignore", UserWarning)  # the guard on pairs
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    from manifind.bench.cell import run_trial
    from manifind.bench.sources import read_tasks
    from manifind.bench.suite import SUITES, read_member
    from manifind.model.estimator import GradNet
    from manifind.progress import ignore

    if job.file is None:
        member = next(member for member in SUITES["local"] if member.name == job.set)
        task, score = read_member(member), member.measure
    else:
        task, score = read_tasks(job.file)[0], "mAP"
    settings = {**LEVERS[job.lever], "random_state": job.seed}
    return job, run_trial(task, GradNet, settings, ignore)[score]


def read(path: Path) -> dict[str, float]:
    return dict(json.loads(path.read_text())["scores"]) if path.exists() else {}


def write(path: Path, scores: dict[str, float]) -> None:
    from manifind.bench.results import versions

    path.write_text(json.dumps({"versions": versions(), "scores": scores}, indent=1, sort_keys=True) + "\n")


def rendered_pages() -> dict[Path, str]:
    """The page, with its tables as they should be."""
    from manifind.bench.suite import SUITES

    developed = [member.name for member in SUITES["local"]]
    scores: dict[str, dict[str, list[float]]] = {}
    for key, value in read(RESULTS).items():
        lever, name, _ = key.split(" | ")
        scores.setdefault(lever, {}).setdefault(name, []).append(value)
    others = sorted(set(scores["the default"]) - set(developed))
    text = PAGE.read_text()
    text = put(text, "levers", levers_table(scores, developed))
    text = put(text, "confirmed", levers_table(scores, others))
    if SUITE.exists():
        rows = [row for row in json.loads(SUITE.read_text())["sets"] if "missing" not in row]
        text = put(text, "suite", suite_table(rows))
        text = put(text, "unseen", unseen_table(rows))
    return {PAGE: text}


def levers_table(scores: dict[str, dict[str, list[float]]], names: list[str]) -> str:
    """One row a lever, one column a set, and the mean over them; pairs say nothing of a graph."""
    header = ["", *names, "mean"]
    rows = []
    for lever in LEVERS:
        means = {name: float(np.mean(scores[lever][name])) for name in names}
        mean = float(np.mean([value for name, value in means.items() if name != "pairs"]))
        rows.append([lever, *(f"{value:.1f}" for value in means.values()), f"{mean:.1f}"])
    return table(header, rows)


def suite_table(rows: list[dict[str, Any]]) -> str:
    header = ["set", "score", "k-NN", "best tuned peer", "GRAD-Net, default"]
    shown = []
    for row in rows:
        peer, ours = row["best_tuned_peer"], row["gradnet"]
        best = f"{peer['value']:.1f} ({peer['method']})"
        mine = f"**{ours['mean']:.1f}** ± {ours['deviation']:.1f}"
        shown.append([row["set"], row["measure"], f"{row['knn']:.1f}", best, mine])
    return table(header, shown)


def unseen_table(rows: list[dict[str, Any]]) -> str:
    header = ["set", "in the graph", "unseen, by QFE", "lost", "inside the thinner graph"]
    shown = []
    for row in rows:
        inside, unseen, thinner = (row["held_out"][name] for name in ("in_graph", "unseen", "thinner"))
        values = [f"{value:.1f}" for value in (inside, unseen, inside - unseen, thinner)]
        shown.append([row["set"], *values])
    return table(header, shown)


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] + ["--:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def put(text: str, mark: str, content: str) -> str:
    """The page with this between two marks."""
    begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    head, rest = text.split(begin)
    return f"{head}{begin}\n{content}\n{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    main()
