"""Benchmark: preparing efficient diffusion against its direct transcription; k-reciprocal encoding in little memory."""

from __future__ import annotations

import time
from typing import Any

from measuring import Case, peak_gigabytes
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
    from landmark_cloud import make_landmark_cloud

    load_libraries()
    X = make_landmark_cloud(n, d, seed=seed).descriptors
    return _efficient(X, n_queries, settings) if what == "efficient" else _k_reciprocal(X, settings)


def _efficient(X: Any, n_queries: int, settings: dict[str, Any]) -> dict[str, float]:
    """Seconds of both, and how far their rankings agree.

    agreeing: the share of queries with the same first hundred in the same order where both solve for the
    transcription's graph. shared: of all those hundreds, where each has its own graph: faiss's rounding turns
    a few ties the other way.
    """
    from efficient_transcription import prepare

    from manifind.baselines.diffusion import Efficient

    ours = Efficient(**settings)
    seconds = _seconds(lambda: ours.fit(X))
    of = ours.get_params()
    names = ("n_neighbors", "truncation", "alpha", "iterations", "tolerance")
    direct = prepare(X, **{name: of[name] for name in names})
    k, n_queries = min(_K, len(X)), min(n_queries, len(X))
    expected = _first(direct.profiles, n_queries, k)
    profiles, systems = _same_systems(direct, of)
    return {
        "seconds": seconds,
        "transcription_seconds": direct.seconds,
        "ratio": seconds / direct.seconds,
        "systems_seconds": systems,
        "systems_ratio": systems / direct.systems_seconds,
        "agreeing": float((_first(profiles, n_queries, k) == expected).all(axis=1).mean()),
        "shared": _shared(ours.search(X[:n_queries], k=k).ids, expected),
    }


def _same_systems(direct: Any, of: dict[str, Any]) -> tuple[Any, float]:
    """The profiles of the transcription's graph and lists as the library solves for them, and its seconds."""
    import numpy as np
    from efficient_transcription import unit_rows
    from scipy import sparse

    from manifind.graph.diffusion import truncated_profiles

    S = sparse.csr_array((sparse.eye_array(len(direct.near)) - direct.L) / of["alpha"])
    near = np.sort(direct.near, axis=1).astype(np.int32)
    began = time.perf_counter()
    profiles = truncated_profiles(S, near, of["alpha"], of["iterations"], of["tolerance"])
    return unit_rows(profiles), time.perf_counter() - began


def _first(profiles: Any, n_queries: int, k: int) -> Any:
    """(m, k) the first k for each of the first m rows, a block at a time."""
    import numpy as np
    from efficient_transcription import top

    parts = np.array_split(np.arange(n_queries), -(-n_queries // _QUERIES_PER_BLOCK))
    return np.concatenate([top(profiles, rows, k) for rows in parts])


def _shared(found: Any, expected: Any) -> float:
    """The share of all expected that are found, in any order; what is not reached, -1, is not expected."""
    import numpy as np

    return float(np.mean([np.isin(e[e >= 0], f).mean() for f, e in zip(found, expected, strict=True)]))


def _k_reciprocal(X: Any, settings: dict[str, Any]) -> dict[str, float]:
    """Seconds of the fit and of the first hundred for every item; the most memory of the process."""
    from manifind.baselines.k_reciprocal import KReciprocal

    model = KReciprocal(**settings)
    fit = _seconds(lambda: model.fit(X))
    search = _seconds(lambda: model.search(k=min(_K, len(X))))
    return {"seconds": fit + search, "fit_seconds": fit, "peak_GB": peak_gigabytes()}


def _seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
