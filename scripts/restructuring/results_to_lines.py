"""Converts performance.json, levers.json and letters.json of docs/results into the one format: lines of JSON.

`results_to_lines.py FOLDER` writes the new files beside the old ones, which the folder must have; the numbers are
copied, none is computed. golden.py runs it on the files as they were.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

from manifind.bench.paper.declared import Run
from manifind.bench.results import Results
from manifind.bench.sets import SETS
from manifind.bench.suite import SUITES

SCRIPTS = Path(__file__).resolve().parent.parent
DONE = {"state": "done", "reason": "", "hint": ""}


def performance(folder: Path) -> None:
    """One record for each case; of several repetitions only the median and the range were recorded."""
    results = Results(folder / "performance.jsonl")
    for name, benchmark in json.loads((folder / "performance.json").read_text())["benchmarks"].items():
        machine = {key: benchmark["machine"][key] for key in ("processor", "cores")}
        about = {"versions": benchmark["versions"], "machine": machine, "date": benchmark["date"]}
        about["memory_GB"] = benchmark["machine"]["memory_GB"]
        for case, found in benchmark["cases"].items():
            key = {"kind": "performance", "benchmark": name, "case": case, "settings": found["parameters"]}
            kinds = {"values": "median", "least": "min", "most": "max"}
            numbers = {
                kind: {one: float(number[old]) for one, number in found["numbers"].items()}
                for kind, old in kinds.items()
            }
            if found["repetitions"] == 1:
                numbers = {"values": numbers["values"]}
            record = {**DONE, **numbers, "repetitions": found["repetitions"], **about}
            results.add({**key, "seed": 0, "repetition": 0}, record)


def levers(folder: Path) -> None:
    """One record for each lever, set and seed."""
    rows = runpy.run_path(str(SCRIPTS / "levers.py"))["LEVERS"]
    members = {member.name: member.on for member in SUITES["local"]}
    old: dict[str, Any] = json.loads((folder / "levers.json").read_text())
    results = Results(folder / "levers.jsonl")
    for key, value in old["scores"].items():
        lever, name, seed = key.split(" | ")
        on = members.get(name, name)
        measure = SETS[on].measure if on in SETS else "mAP"
        record = {**DONE, "values": {measure: value}, "versions": old.get("versions", {}), "machine": None}
        results.add(Run("trial", on, "gradnet", rows[lever]).key(int(seed)), record)


def letters(folder: Path) -> None:
    """One record for each way to count the points."""
    old = json.loads((folder / "letters.json").read_text())
    machine = {key: old["machine"][key] for key in ("processor", "cores")}
    versions = {"python": old["machine"]["python"], **old["machine"]["versions"]}
    results = Results(folder / "letters.jsonl")
    for count in ("word", "letter"):
        (cell,) = old["cells"][f"letters/{count}"]
        values = {name: cell[name] for name in ("euclidean", "gradnet")}
        key = {"kind": "letters", "settings": {"count": count}, "seed": cell["seed"]}
        results.add(key, {**DONE, "values": values, "versions": versions, "machine": machine})


if __name__ == "__main__":
    performance(Path(sys.argv[1]))
    levers(Path(sys.argv[1]))
    letters(Path(sys.argv[1]))
