"""Benchmark: items that are added later against the same items in a fit of everything."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measuring import QUICK, Case

if TYPE_CHECKING:
    import numpy as np

MOST_POINTS = 2.0  # that added items may score less than after a full refit
SHARE = 0.1  # of the items that come later
SETS = {"digits": "digits", "mpeg7": "MPEG-7 EfficientNet", "paris": "Paris subset ResNet-34"}
"""Members of the suite "local", by a short name."""

_FILES = {"mpeg7": "mpeg7/mpeg7.npz", "paris": "paris1274/resnet34.npz"}


def cases(quick: bool) -> list[Case]:
    """Each set that is there, five draws of who comes later."""
    return [
        Case(name, {"dataset": name, "settings": QUICK if quick else {}}, (0,) if quick else (0, 1, 2, 3, 4))
        for name in (["digits"] if quick else available())
    ]


def available() -> list[str]:
    """The names of the sets whose files are there; the others are named on the screen."""
    folder = os.environ.get("MANIFIND_DATA")
    missing = [name for name, file in _FILES.items() if not (folder and (Path(folder) / file).is_file())]
    for name in missing:
        print(f"adding: {name} is left out, {_FILES[name]} is not under MANIFIND_DATA")
    return [name for name in SETS if name not in missing]


def run(dataset: str, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Scores of the added items as queries: when they are added, after a warm refit, and in a fit of everything."""
    import numpy as np

    import manifind

    task = Task(dataset)
    n = len(task.X)
    later = np.sort(np.random.default_rng(seed).choice(n, round(SHARE * n), replace=False))
    first = np.setdiff1d(np.arange(n), later)
    order = np.concatenate([first, later])
    with tempfile.TemporaryDirectory() as folder:
        model = manifind.GradNet(**settings, random_state=seed).fit(task.X[first])
        collection = model.save(Path(folder) / "c", first.tolist())
        before = collection.search(task.X, 10)
        collection.add(task.X[later], later.tolist())
        added = task.score(collection, later)
        collection.remove(later.tolist())
        after = collection.search(task.X, 10)
        same = np.array_equal(before.ids, after.ids) and np.array_equal(before.scores, after.scores)
        collection.add(task.X[later], later.tolist())
        started = time.perf_counter()
        manifind.refit(collection)
        warm_seconds, warm = time.perf_counter() - started, task.score(collection, later)
        started = time.perf_counter()
        whole = manifind.GradNet(**settings, random_state=seed).fit(task.X[order])
        full_seconds = time.perf_counter() - started
        full = task.score(whole.save(Path(folder) / "full", order.tolist()), later)
    return {
        "added": added,
        "refit": warm,
        "full": full,
        "lost": full - added,
        "restored": float(same),
        "refit_seconds": warm_seconds,
        "full_seconds": full_seconds,
    }


class Task:
    """A member of the suite, some of whose queries are asked."""

    def __init__(self, dataset: str) -> None:
        from manifind.bench.held_out import positions_of
        from manifind.bench.suite import SUITES, read_member

        member = next(member for member in SUITES["local"] if member.name == SETS[dataset])
        task = read_member(member)
        self.X = task.descriptors
        self._asked = positions_of(task)
        self._relevance, self._how = task.truth.relevance(task.query_items, member.measure)

    def score(self, collection: Any, some: np.ndarray) -> float:
        """Of the queries that are among some items; the ids of the collection are positions."""
        import numpy as np

        from manifind.evaluation.measures import score

        rows = np.flatnonzero(np.isin(self._asked, some))
        relevant, ignored = self._relevance.relevant, self._relevance.ignored
        judged = self._relevance._replace(
            relevant=[relevant[row] for row in rows], ignored=[ignored[row] for row in rows]
        )
        found = collection.search_ids(self._asked[rows].tolist(), len(self.X))
        return float(score(found.ids, judged, [self._how], "not stated")[0].value)
