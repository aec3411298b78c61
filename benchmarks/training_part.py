"""Benchmark: what training on a part of the graph saves, and what it costs."""

from __future__ import annotations

from typing import Any

from growth import precision, some_views
from measured_fit import measure_fit
from measuring import QUICK, Case


def cases(quick: bool) -> list[Case]:
    """All nodes, half of them, a fifth; the quick form a half alone."""
    n, d, settings = (600, 16, QUICK) if quick else (100_000, 128, {})
    parts = {"a half": n // 2} if quick else {"all": None, "a half": n // 2, "a fifth": n // 5}
    return [
        Case(name, {"n": n, "d": d, "settings": {**settings, "training_nodes": nodes}}, (0,))
        for name, nodes in parts.items()
    ]


def run(n: int, d: int, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Time and memory of a fit on a landmark cloud, and how many of ten found for a view show its landmark."""
    from landmark_cloud import make_landmark_cloud

    clouds = []  # made after the libraries are loaded, so that its memory counts

    def make() -> Any:
        clouds.append(make_landmark_cloud(n, d))
        return clouds[0].descriptors

    def right(model: Any, X: Any) -> dict[str, float]:
        labels, asked = clouds[0].labels, some_views(clouds[0].labels)
        return {"precision": precision(model.search(X[asked], k=11).ids, asked, labels)}

    return measure_fit(make, settings, seed, right)
