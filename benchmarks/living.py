"""Benchmark: what a large collection costs to open, to ask, to add to, to remove from and to compress."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import QUICK, Case, environment

MOST_SECONDS = 2.0  # to open a collection and to answer for the first time
MOST_SEARCHES = 5.0  # that placing one new item may cost, the commit apart

# Few steps: how long the features were trained for does not change how long anything here takes.
_SETTINGS = {"max_steps": 5}
_TIMES = 100
_OPEN = """
import sys, time
began = time.perf_counter()
import numpy, manifind
query = numpy.load(sys.argv[2])
imported = time.perf_counter()
collection = manifind.load(sys.argv[1])
loaded = time.perf_counter()
collection.search(query, 10)
answered = time.perf_counter()
assert "torch" not in sys.modules
print([imported - began, loaded - imported, answered - loaded])
"""


def cases(quick: bool) -> list[Case]:
    """One size, once: all but the opening, which takes the best of three, is a median of a hundred."""
    size = {"n": 300, "d": 16} if quick else {"n": 100_000, "d": 512}
    return [Case(f"{size['n']:,} x {size['d']}", {**size, "settings": QUICK if quick else _SETTINGS}, (0,))]


def run(n: int, d: int, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Seconds and milliseconds of everything; medians where it is done often."""
    import numpy as np
    from landmark_cloud import make_landmark_cloud

    from manifind.model.estimator import GradNet

    X = make_landmark_cloud(n + 2 * _TIMES, d).descriptors
    model = GradNet(**settings, random_state=seed).fit(X[:n])
    with tempfile.TemporaryDirectory() as folder:
        path, query = Path(folder) / "c", Path(folder) / "query.npy"
        np.save(query, X[n : n + 1])
        started = time.perf_counter()
        collection = model.save(path, [f"item {i}" for i in range(n)])
        saving = time.perf_counter() - started
        imports, loading, answering = min((_opened(path, query) for _ in range(3)), key=sum)
        numbers = _changes(collection, X[n:])
        return {
            "save_seconds": saving,
            "import_seconds": imports,
            "load_seconds": loading,
            "first_answer_seconds": answering,
            "open_seconds": loading + answering,
            **numbers,
            **_compressed(collection, Path(folder) / "small"),
        }


def _opened(path: Path, query: Path) -> list[float]:
    """In a process of its own, the files already in memory."""
    command = [sys.executable, "-c", _OPEN, str(path), str(query)]
    done = subprocess.run(command, env=os.environ | environment(), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def _changes(collection: Any, X: Any) -> dict[str, float]:
    """Milliseconds of one search, of adding and removing one item, and of a commit that places nobody."""
    from manifind.collection.writer import Change, commit_change

    manifest = collection.version.manifest
    search = _median(lambda row: collection.search(X[row : row + 1], 10))
    add = _median(lambda row: collection.add(X[row : row + 1], [f"new {row}"]))
    remove = _median(lambda row: collection.remove([f"new {row}"]))
    placed = [_placed(collection, X[row : row + 1]) for row in range(_TIMES)]
    commit = _median(
        lambda row: commit_change(collection.path, manifest, Change((), placed[row], [f"newer {row}"], [None]))
    )
    return {
        "search_ms": search,
        "add_ms": add,
        "remove_ms": remove,
        "commit_ms": commit,
        "searches": (add - commit) / search,
    }


def _placed(collection: Any, row: Any) -> Any:
    from manifind.search.live_index import place

    return place(collection.version.learned, row, collection.version.manifest.sizes.neighbors)


def _median(work: Callable[[int], Any]) -> float:
    """Milliseconds of doing it once, at the median."""
    import numpy as np

    times = []
    for row in range(_TIMES):
        started = time.perf_counter()
        work(row)
        times.append(time.perf_counter() - started)
    return 1000 * float(np.median(times))


def _compressed(collection: Any, target: Path) -> dict[str, float]:
    """Bytes per item on the disk, of the whole collection and of what serves for it."""
    import manifind

    collection.refresh()
    collection.export(target, "compressed")
    small = manifind.load(target)
    return {
        "bytes_per_item": sum(collection.segment_bytes.values()) / len(collection),
        "compressed_bytes_per_item": sum(small.segment_bytes.values()) / len(small),
        "compressed_recall": small.index_quality()["features"]["recall"],
    }
