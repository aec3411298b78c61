"""Benchmark: latency of one unseen query against a plain search of the originals, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from measuring import QUICK, Case

if TYPE_CHECKING:
    import numpy as np

    Search = Callable[[np.ndarray], Any]

K = 10
INDEXES = {"exact": "Flat", "sq8": "IVF{n_lists},SQ8"}
"""Kinds of index by the library's name, each with faiss's description of the same kind for the plain side."""

_WARM_UP = 5
# Few steps: how long the features were trained for does not change how long a search takes.
_SETTINGS = {"n_components": 512, "max_steps": 5}


def cases(quick: bool) -> list[Case]:
    """One case for each kind of index, in one process: every query is a repetition, asked alone."""
    size = {"n": 300, "d": 32, "n_queries": 10} if quick else {"n": 100_000, "d": 512, "n_queries": 1000}
    settings = QUICK if quick else _SETTINGS
    return [Case(index, {**size, "index": index, "settings": settings}, (0,)) for index in INDEXES]


def run(n: int, d: int, n_queries: int, index: str, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Milliseconds at the median and at the 99th percentile, ours and plain, and their ratios."""
    from landmark_cloud import make_landmark_cloud

    from manifind.index.ivf import quality_summary
    from manifind.model.estimator import GradNet

    descriptors = make_landmark_cloud(n + n_queries, d).descriptors
    X, queries = descriptors[:n], descriptors[n:]
    model = GradNet(**settings, index=index, random_state=seed).fit(X)
    made = model._model.indexes()["descriptors"]
    quality = quality_summary(made and made.quality)
    searches = [lambda query: model.search(query, k=K), plain_search(X, index, quality)]
    ours, plain = latencies(searches, queries)
    return {
        "recall": quality["recall"],
        **{f"{name}_ms": value for name, value in ours.items()},
        **{f"plain_{name}_ms": value for name, value in plain.items()},
        **{f"ratio_{name}": ours[name] / plain[name] for name in ours},
    }


def plain_search(X: np.ndarray, index: str, quality: dict[str, Any]) -> Search:
    """faiss alone on the originals, with an index of the same kind that looks into as many lists."""
    import faiss

    plain = faiss.index_factory(X.shape[1], INDEXES[index].format(**quality), faiss.METRIC_L2)
    plain.train(X)
    plain.add(X)
    if "n_probes" in quality:
        plain.nprobe = quality["n_probes"]
    return lambda query: plain.search(query, K)


def latencies(searches: list[Search], queries: np.ndarray) -> list[dict[str, float]]:
    """p50 and p99 of each search in milliseconds; they take turns at every query, so both meet the same load."""
    import numpy as np

    found = np.empty((len(queries), len(searches)))
    for search in searches:
        for row in range(_WARM_UP):
            search(queries[row : row + 1])
    for row in range(len(queries)):
        for column, search in enumerate(searches):
            started = time.perf_counter()
            search(queries[row : row + 1])
            found[row, column] = 1000 * (time.perf_counter() - started)
    return [{"p50": float(p50), "p99": float(p99)} for p50, p99 in np.percentile(found, (50, 99), axis=0).T]
