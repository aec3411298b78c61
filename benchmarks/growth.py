"""Benchmark: how time and memory grow with the number of items, up to a million: a fit, its collection, a search."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from math import log
from pathlib import Path
from statistics import linear_regression
from typing import Any

from measured_fit import measure_fit
from measuring import QUICK, Case

LIMIT = 1.15  # of the exponent
LIMITS = {"1,000,000": {"total_seconds": 3 * 3600, "peak_GB": 12}}
_SIZES = (10_000, 20_000, 50_000, 100_000, 200_000, 1_000_000)
_QUICK_SIZES = (500, 1500)
_QUERIES, _K = 1000, 10


def cases(quick: bool) -> list[Case]:
    """One case for each size, once: six points on a line, and the largest takes long."""
    settings = QUICK if quick else {}
    sizes, d = (_QUICK_SIZES, 16) if quick else (_SIZES, 128)
    return [Case(f"{n:,}", {"n": n, "d": d, "settings": settings}, (0,)) for n in sizes]


def run(n: int, d: int, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Seconds and memory of a fit on a landmark cloud, of saving it, and of asking the collection.

    total_seconds: of all of that. precision, plain: how many of ten that are found for views of landmarks show the same
    one, in percent, and how many of their plain neighbours do. loss_left: what training leaves of the loss, in percent.
    """
    from landmark_cloud import make_landmark_cloud

    clouds = []  # made after the libraries are loaded, so that its memory counts

    def make() -> Any:
        clouds.append(make_landmark_cloud(n, d))
        return clouds[0].descriptors

    numbers = measure_fit(make, settings, seed, lambda model, X: _used(model, X, clouds[0].labels))
    parts = ("seconds", "save_seconds", "open_seconds", "search_seconds")
    return {**numbers, "total_seconds": sum(numbers[part] for part in parts)}


def _used(model: Any, X: Any, labels: Any) -> dict[str, float]:
    """The model saved as a collection, opened again, and asked for the neighbours of a thousand views."""
    import numpy as np

    import manifind
    from manifind.index.exact import nearest

    asked = some_views(labels)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.manifind"
        marks = [time.perf_counter()]
        model.save(path)
        marks.append(time.perf_counter())
        collection = manifind.load(path)
        marks.append(time.perf_counter())
        found = np.asarray(collection.search(X[asked], k=_K + 1).ids, dtype=np.int64)
        marks.append(time.perf_counter())
    plain = nearest(X[asked], X, _K + 1, "cosine").ids
    seconds = dict(zip(("save_seconds", "open_seconds", "search_seconds"), np.diff(marks).tolist(), strict=True))
    right = {"precision": precision(found, asked, labels), "plain": precision(plain, asked, labels)}
    return {**seconds, **right, "loss_left": 100 * float(model.loss_curve_[-1, 0] / model.loss_curve_[0, 0])}


def some_views(labels: Any) -> Any:
    """Rising numbers of a thousand items that show a landmark, always the same."""
    import numpy as np

    views = np.flatnonzero(labels >= 0)
    return np.sort(np.random.default_rng(0).choice(views, min(_QUERIES, len(views)), replace=False))


def precision(ids: Any, asked: Any, labels: Any) -> float:
    """Of ten others for each view, in percent: how many show the same landmark."""
    right = (labels[ids] == labels[asked][:, None]) & (ids != asked[:, None])
    return 100 * float(right.sum()) / (_K * len(asked))


def exponents(cases: dict[str, Any]) -> dict[str, float]:
    """The exponents of time and of memory over the measured cases."""
    sizes = [case["parameters"]["n"] for case in cases.values()]
    return {
        key: exponent(sizes, [case["numbers"][key]["median"] for case in cases.values()])
        for key in ("total_seconds", "memory_GB")
    }


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The p of values ~ sizes^p: the least-squares slope of their logarithms."""
    return linear_regression([log(n) for n in sizes], [log(v) for v in values]).slope
