"""Measures tuning by judged queries, into docs/results/tuning.jsonl, and renders a table of docs/default.md.

`scripts/tuning.py` fits every set at hand with each setting that `manifind tune` tries. Then, ten times, it draws 20
queries, judges the first 20 answers of the default and of plain neighbours to each by the labels, and lets these
judgements choose. Half an hour on two cores. What the file has is not run again, unless `--outdated` asks
for what other code made. `--render` only renders.
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
from manifind.bench.cell import finished
from manifind.bench.held_out import find_items
from manifind.bench.html import markdown_table, put_between
from manifind.bench.results import Results, provenance
from manifind.bench.runner import task_code
from manifind.bench.sets import SETS, read_set
from manifind.bench.suite import SUITES, read_rows
from manifind.bench.tuning import SPACE, choose
from manifind.errors import DataError
from manifind.evaluation.measures import average_precision
from manifind.evaluation.relevance import Hits
from manifind.graph.neighbour_agreement import LittleToLearnWarning

ROOT = Path(__file__).resolve().parent.parent
RESULTS, SUITE = ROOT / "docs" / "results" / "tuning.jsonl", ROOT / "docs" / "results" / "suite.jsonl"
PAGE = ROOT / "docs" / "default.md"
NAMES = tuple(member.on for suite in ("modern", "local") for member in SUITES[suite] if member.on != "pairs")
DRAWS, QUERIES, POOL = 10, 20, 20
CANDIDATES: tuple[dict[str, Any], ...] = ({}, *SPACE)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--render", action="store_true", help="render what is known, run nothing")
    parser.add_argument("--outdated", action="store_true", help="run again what other code made")
    given = parser.parse_args()
    if not given.render:
        for name in NAMES:
            run_missing(name, Results(RESULTS), given.outdated)
    for page, text in rendered_pages().items():
        page.write_text(text)


def run_missing(name: str, results: Results, outdated: bool) -> None:
    """Fit a set with all candidates, and let ten draws of judgements choose; one that is not at hand is left out."""
    record, code = results.get(_key(name)), task_code(f"{Path(__file__).stem}:run_missing", None)
    if record is not None and (not outdated or record["code"] == code):
        return
    try:
        task = read_set(SETS[name])
    except DataError as error:
        print(f"{name}: {error.problem}", file=sys.stderr)
        return
    measure, places = SETS[name].measure, find_items(task)
    relevance, _ = task.truth.relevance(task.query_items, measure)
    plain, similarities, scores = None, [], []
    for settings in CANDIDATES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LittleToLearnWarning)
            model = GradNet(**settings, random_state=0).fit(task.descriptors, queries=task.queries)
        asked = model.query_features_ if task.queries is not None else model.features_[places]
        similarities.append(asked @ model.features_.T)
        found = task.truth.scores(np.argsort(-similarities[-1], axis=1, kind="stable"), task.query_items)
        scores.append({one.measure: one.value for one in found}[measure])
        if plain is None:
            descriptors = model.contents().learned.descriptors
            plain = descriptors[places] @ descriptors.T
    chosen, gains = [], []
    for draw in range(DRAWS):
        some = np.random.default_rng(draw).permutation(len(places))[:QUERIES]
        values = judged_values(some, places, relevance, similarities, plain)
        choice = choose(values)
        chosen.append(choice.best if choice.is_beyond_chance else 0)
        gains.append(choice.gain.mean)
    numbers = {"default": scores[0], "tuned": float(np.mean([scores[one] for one in chosen])), "best": max(scores)}
    record = {"scores": scores, "chosen": chosen, "gains": gains, "candidates": list(CANDIDATES)}
    results.add(_key(name), {**finished(**numbers), **record, **provenance("scripts/tuning.py", task.digest(), code)})


def judged_values(some: Any, places: Any, relevance: Any, similarities: Any, plain: Any) -> list[Any]:
    """AP of each candidate over the judged items of each query that has a right and a wrong one, (m,) in percent."""
    ranks: list[list[Any]] = [[] for _ in similarities]
    n_right = []
    for query in some:
        left_out = set(relevance.ignored[query].tolist()) | {int(places[query])}
        right = set(relevance.relevant[query].tolist())
        heads = (np.argsort(-rows[query], kind="stable")[: POOL + len(left_out)] for rows in (similarities[0], plain))
        pool = sorted({int(item) for head in heads for item in [i for i in head if int(i) not in left_out][:POOL]})
        is_right = np.array([item in right for item in pool])
        if not 0 < is_right.sum() < len(pool):
            continue
        n_right.append(int(is_right.sum()))
        for rows, found in zip(similarities, ranks, strict=True):
            order = np.argsort(-rows[query][pool], kind="stable")
            found.append(np.flatnonzero(is_right[order]))
    R = np.array(n_right)
    return [100 * average_precision(Hits(found, R, R))[0] for found in ranks]


def _key(name: str) -> dict[str, str]:
    return {"kind": "tuning", "set": name}


def rendered_pages() -> dict[Path, str]:
    """The page, with its table as it should be."""
    results, peers = Results(RESULTS), {}
    for row in read_rows((*SUITES["modern"], *SUITES["local"]), Results(SUITE)):
        if row.best is not None and row.preprocess == "unit":
            peers[row.member.on] = row.best.value
    rows = []
    for name in NAMES:
        if (record := results.get(_key(name))) is None:
            continue
        values, chosen = record["values"], record["chosen"]
        changed = [candidate_in_words(record["candidates"][one]) for one in chosen if one]
        common = max(dict.fromkeys(changed), key=changed.count) if changed else "-"
        peer = f"{peers[name]:.1f}" if name in peers else "-"
        rows.append(
            [name, peer, *(f"{values[part]:.1f}" for part in ("default", "tuned", "best")), str(len(changed)), common]
        )
    header = [
        "set",
        "best tuned peer",
        "default",
        "tuned, mean of ten draws",
        "best of the space",
        "changed of ten",
        "to",
    ]
    return {PAGE: put_between(PAGE.read_text(), "tuning", markdown_table(header, rows))}


def candidate_in_words(settings: dict[str, Any]) -> str:
    """Settings in words, without the similarity, which is the default's."""
    return ", ".join(f"`{name}` {value}" for name, value in settings.items() if name != "similarity")


if __name__ == "__main__":
    main()
