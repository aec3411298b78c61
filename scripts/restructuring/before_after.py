"""Compares methods of two versions of the package on the same data: whether their answers are equal, and their times.

`before_after.py PYTHON PACKAGE [--large]`: PYTHON is an interpreter in which the earlier version is installed as
PACKAGE, such as `../before/.venv/bin/python gradnet`. The sets of the local suite are taken as far as they are here.
Fits of the two versions take turns, each in a process of its own; times mean something on a quiet machine only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from landmark_cloud import make_landmark_cloud

from manifind.bench.suite import SUITES, read_member
from manifind.errors import DataError

RUN = """
import hashlib, importlib, json, sys, time
import numpy as np
package, method, seed, folder = sys.argv[1:]
made = importlib.import_module(package).METHODS[method]
X, Q = np.load(f"{folder}/X.npy"), np.load(f"{folder}/Q.npy")
model = made(random_state=int(seed)) if int(seed) >= 0 else made()
started = time.perf_counter()
model.fit(X)
fitted = time.perf_counter()
learns = hasattr(model, "features_")
ids = model.search(*([Q] if learns else []), k=min(len(X), 1000)).ids
searched = time.perf_counter()
digest = hashlib.sha256(np.ascontiguousarray(ids, dtype="<i8").tobytes())
if learns:
    digest.update(np.ascontiguousarray(model.features_, dtype="<f4").tobytes())
print(json.dumps({"digest": digest.hexdigest(), "fit": fitted - started, "search": searched - fitted}))
"""
METHODS = ("knn", "aqe", "alpha-qe", "dba", "mr", "rdp", "gdp", "lcdp", "efficient", "smooth", "k-reciprocal")
MOST_QUERIES = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("python", help="an interpreter that has the earlier version")
    parser.add_argument("package", help="the name of the earlier package")
    parser.add_argument("--large", action="store_true", help="also 105,000 x 512, which takes ten minutes or more")
    parser.add_argument("--only", default="", help="sets with this text in their name")
    given = parser.parse_args()
    versions = {"before": (given.python, given.package), "after": (sys.executable, "manifind")}
    differing = 0
    for name, X, runs in data_sets(given.large):
        if given.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/X.npy", X)
            np.save(f"{folder}/Q.npy", X[:: -(-len(X) // MOST_QUERIES)])
            for method, seeds in runs.items():
                differing += not compare(versions, name, method, seeds, folder)
    sys.exit(f"{differing} answers differ" if differing else 0)


def data_sets(large: bool):
    """Name, descriptors, and the seeds of each method to run; -1 where a method has none."""
    for member in SUITES["local"]:
        try:
            task = read_member(member)
        except DataError as error:
            print(f"{member.name}: {error.problem}")
            continue
        yield member.name, task.descriptors, {"gradnet": (0, 1, 2), **dict.fromkeys(METHODS, (-1,))}
    yield "fit_sizes 5,063 x 2,048", make_landmark_cloud(5063, 2048).descriptors, {"gradnet": (0, 0, 0)}
    if large:
        yield "fit_sizes 105,000 x 512", make_landmark_cloud(105_000, 512).descriptors, {"gradnet": (0,)}


def compare(versions: dict[str, tuple[str, str]], name: str, method: str, seeds: tuple[int, ...], folder: str) -> bool:
    """Whether both versions give the same features and rankings for all seeds; prints that and the times."""
    found: dict[str, list[dict[str, float]]] = {version: [] for version in versions}
    for seed in seeds:
        for version, (python, package) in versions.items():
            command = [python, "-c", RUN, package, method, str(seed), folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(folder))
            if done.returncode:
                sys.exit(f"{version}, {method} on {name}: {done.stderr[-500:]}")
            found[version].append(json.loads(done.stdout))
    is_equal = [one["digest"] for one in found["before"]] == [one["digest"] for one in found["after"]]
    before, after = ({part: median(one[part] for one in found[v]) for part in ("fit", "search")} for v in versions)
    times = ", ".join(f"{part} {before[part]:.3g} s, now {after[part]:.3g} s" for part in before)
    print(f"{name}, {method}: {'equal' if is_equal else 'DIFFERENT'}; {times}", flush=True)
    return is_equal


if __name__ == "__main__":
    main()
