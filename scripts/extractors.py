"""Measures the extractors that come along on photographs of Paris, into docs/results/extractors.jsonl.

`scripts/extractors.py` describes the 1,274 photographs in paris1274/images of the data folder with each extractor, and
scores plain neighbours and GRAD-Net with three seeds: minutes on two cores. What the file has is not run again, unless
`--outdated` asks for what other code made. Then, or alone with `--render`, the table of docs/pictures.md is made.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np

from manifind.arrays import Floats
from manifind.bench.cell import DONE, TRIAL
from manifind.bench.html import markdown_table, put_between
from manifind.bench.results import Results
from manifind.bench.runner import CellJob, RunOptions, open_runner
from manifind.bench.sources import list_task
from manifind.bench.task import RetrievalTask
from manifind.datasets.catalogue import data_root
from manifind.datasets.landmarks import LandmarkFiles, join
from manifind.images.decode import Pixels, decode
from manifind.images.extractors import Extractor, make_extractor
from manifind.io.checks import Vectors
from manifind.io.ground_truth import read_ground_truth
from manifind.progress import Listener, progress_bars

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results" / "extractors.jsonl"
PAGE = ROOT / "docs" / "pictures.md"
SET = "paris1274"
SEEDS = (0, 1, 2)
PASSES = 3  # of which the fastest counts: other programs only ever make one slower
BATCH = 32  # photographs at a time, as in an index of a folder
SMALL, MEDIUM, LARGE = (f"efficientnet-lite{number}" for number in range(3))
EXTRACTORS = ("pixels", SMALL, MEDIUM, LARGE, f"{SMALL}+pixels", f"{MEDIUM}+{LARGE}", f"{SMALL}+{MEDIUM}+{LARGE}")


class Described(NamedTuple):
    """Descriptors of all photographs, and what it took to compute them; decoding is not counted."""

    rows: Floats
    facts: dict[str, float]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--render", action="store_true", help="render what is known, run nothing")
    parser.add_argument("--outdated", action="store_true", help="run again what other code made")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the results file")
    given = parser.parse_args()
    if not given.render:
        with progress_bars() as listener:
            for name in EXTRACTORS:
                run_missing(name, Results(given.out), given.outdated, listener)
    if given.out == RESULTS:
        try:
            pages = rendered_pages()
        except ValueError:
            sys.exit(
                f"{PAGE} has no marks <!-- extractors:begin --> and <!-- extractors:end -->: add them once, in order"
            )
        for page, text in pages.items():
            page.write_text(text)


def run_missing(name: str, results: Results, outdated: bool, listener: Listener) -> None:
    """Describe the photographs where one of the fits of an extractor is missing, and run those that are."""
    if not any(_is_missing(job, results, outdated) for job in jobs(name, {})):
        return
    found = describe(make_extractor(name), photographs())
    with open_runner(paris_task(found.rows), results, RunOptions(outdated=outdated), listener) as runner:
        for job, record in runner.run_all([job for job in jobs(name, found.facts) if runner.known(job) is None]):
            if record["state"] != DONE:
                sys.exit(f"{job.label} {record['state']}: {record['reason']}")


def jobs(name: str, facts: dict[str, float]) -> Iterator[CellJob]:
    """Every fit on the descriptors of an extractor. facts: of describing, saved with each."""
    fits: list[tuple[str, int, dict[str, Any]]] = [("knn", 0, {"preprocess": "unit"})]
    fits += [("gradnet", seed, {"random_state": seed}) for seed in SEEDS]
    for method, seed, settings in fits:
        notes, label = {"described": facts}, f"{method} on {name}"
        yield CellJob(_key(name, method, seed), TRIAL, method, {"settings": settings}, label, _COMMAND, notes)


_COMMAND = "scripts/extractors.py"


def _key(name: str, method: str, seed: int) -> dict[str, Any]:
    return {"kind": "extractor", "extractor": name, "set": SET, "method": method, "seed": seed}


def _is_missing(job: CellJob, results: Results, outdated: bool) -> bool:
    record = results.get(job.key)
    return record is None or record["state"] != DONE or (outdated and record.get("code") != job.code)


@cache
def photographs() -> tuple[Path, ...]:
    files = tuple(sorted((data_root() / SET / "images").glob("*.jpg")))
    if not files:
        sys.exit(f"{data_root() / SET / 'images'} has no photographs: MANIFIND_DATA names the folder of {SET}")
    return files


def describe(extractor: Extractor, files: Sequence[Path]) -> Described:
    """The fastest of some passes over all files."""
    pictures = [decode(file, extractor.longest).pixels for file in files]
    passes = [describe_once(extractor, pictures) for _ in range(PASSES)]
    return min(passes, key=lambda one: one.facts["seconds"])


def describe_once(extractor: Extractor, pictures: Sequence[Pixels]) -> Described:
    """One pass. processor: seconds of all cores together, which other programs change little."""
    started, processor = time.perf_counter(), time.process_time()
    rows = np.concatenate([extractor(pictures[i : i + BATCH]) for i in range(0, len(pictures), BATCH)])
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return Described(rows, {"seconds": seconds, "processor": processor, "load": load, "dimensions": rows.shape[1]})


def paris_task(rows: Floats) -> RetrievalTask:
    """Every right photograph of a landmark in turn finds the others."""
    vectors = Vectors(rows, [file.name for file in photographs()])
    files = LandmarkFiles(data_root() / SET / "images", data_root() / SET / "gnd_paris6k.json")
    return list_task(files, "landmarks", SET, lambda files: join(vectors, read_ground_truth(files.truth)))


def rendered_pages() -> dict[Path, str]:
    """The page, with its table as it should be; ValueError where it has no marks for one."""
    return {PAGE: put_between(PAGE.read_text(), "extractors", extractors_table(Results(RESULTS)))}


def extractors_table(results: Results) -> str:
    """One row an extractor, and under them the machine that the seconds are of."""
    rows, machines = [], set()
    for name in EXTRACTORS:
        plain = results.get(_key(name, "knn", 0))
        learned = [record for seed in SEEDS if (record := results.get(_key(name, "gradnet", seed))) is not None]
        if plain is None or len(learned) < len(SEEDS):
            rows.append([f"`{name}`", *["not run"] * 4])
            continue
        facts, values = plain["described"], [record["values"]["mAP"] for record in learned]
        machines.add(f"{plain['machine']['processor']}, {plain['machine']['threads']} threads")
        mean = f"**{np.mean(values):.1f}** ± {np.std(values, ddof=1):.1f}"
        costs = f"{facts['dimensions']:,}", f"{facts['seconds']:.1f}"
        rows.append([f"`{name}`", *costs, f"{plain['values']['mAP']:.1f}", mean])
    table = markdown_table(["extractor", "dimensions", "seconds", "k-NN", "GRAD-Net, default"], rows)
    return f"{table}\n\nSeconds to describe all, without decoding: {'; '.join(sorted(machines)) or 'not run'}."


if __name__ == "__main__":
    main()
