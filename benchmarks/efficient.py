"""Benchmark: preparing efficient diffusion against its direct transcription; k-reciprocal encoding in little memory."""

from __future__ import annotations

import time
from typing import Any

from case import Case
from peak_memory import peak_gigabytes
from warm_up import load_libraries

LIMIT = 2 / 3  # of the time of the transcription
LIMIT_GB = 4.0  # for the k-reciprocal ranking, libraries and all
_K = 100
_QUERIES_PER_BLOCK = 200


def cases(quick: bool) -> list[Case]:
    """Both on the same landmark cloud; three repetitions, since the transcription's threads get in each other's way."""
    size = {"n": 400, "d": 16, "n_queries": 100} if quick else {"n": 20_000, "d": 128, "n_queries": 2_000}
    settings = {"n_neighbors": 10, "truncation": 60} if quick else {}
    seeds = (0,) if quick else (0, 0, 0)
    return [
        Case("efficient", {"what": "efficient", **size, "settings": settings}, seeds),
        Case("k-reciprocal", {"what": "k-reciprocal", **size, "settings": {}}, seeds[:1]),
    ]


def run(what: str, n: int, d: int, n_queries: int, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Seconds, ratio and agreement with the transcription for "efficient"; seconds and memory for the other."""
    from gradnet.data.landmark_cloud import make_landmark_cloud

    load_libraries()
    X = make_landmark_cloud(n, d, seed=seed).descriptors
    return _efficient(X, n_queries, settings) if what == "efficient" else _k_reciprocal(X, settings)


def _efficient(X: Any, n_queries: int, settings: dict[str, Any]) -> dict[str, float]:
    """Seconds of both, and how far they agree."""
    import numpy as np
    from efficient_transcription import prepare, top

    from gradnet.methods.efficient import Efficient

    k = min(_K, len(X))
    rows = np.arange(min(n_queries, len(X)))
    ours = Efficient(**settings)
    seconds = _seconds(lambda: ours.fit(X))
    found = ours.search(X[rows], k=k).ids
    of = ours.get_params()
    names = ("n_neighbors", "truncation", "alpha", "iterations", "tolerance")
    direct = prepare(X, **{name: of[name] for name in names})
    blocks = [rows[start : start + _QUERIES_PER_BLOCK] for start in rows[::_QUERIES_PER_BLOCK]]
    expected = np.concatenate([top(direct.profiles, block, k) for block in blocks])
    return {
        "seconds": seconds,
        "transcription_seconds": direct.seconds,
        "ratio": seconds / direct.seconds,
        **_systems(ours, direct.systems_seconds),
        **_agreement(found, expected),
    }


def _agreement(found: Any, expected: Any) -> dict[str, float]:
    """agreeing: the share of queries with the same first hundred in the same order; shared: of all those hundreds.

    What the transcription does not reach, -1 in `expected`, is not asked for.
    """
    import numpy as np

    reached = expected >= 0
    shared = [np.isin(e[r], f).mean() for f, e, r in zip(found, expected, reached, strict=True)]
    agreeing = ((found == expected) | ~reached).all(axis=1).mean()
    return {"agreeing": float(agreeing), "shared": float(np.mean(shared))}


def _systems(model: Any, transcription_seconds: float) -> dict[str, float]:
    """Seconds of the systems alone, the sets of nearest nodes given, as the transcription's are."""
    from gradnet.graph.transition import transition
    from gradnet.graph.truncated_profiles import nearest_sets, truncated_profiles

    S, near = transition(model.affinity_), nearest_sets(model.nodes_.descriptors, model.truncation)
    stop = (model.alpha, model.iterations, model.tolerance)
    seconds = _seconds(lambda: truncated_profiles(S, near, *stop))
    return {"systems_seconds": seconds, "systems_ratio": seconds / transcription_seconds}


def _k_reciprocal(X: Any, settings: dict[str, Any]) -> dict[str, float]:
    """Seconds of the fit and of the first hundred for every item; the most memory of the process."""
    from gradnet.methods.k_reciprocal import KReciprocal

    model = KReciprocal(**settings)
    fit = _seconds(lambda: model.fit(X))
    search = _seconds(lambda: model.search(k=min(_K, len(X))))
    return {"seconds": fit + search, "fit_seconds": fit, "peak_GB": peak_gigabytes()}


def _seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
