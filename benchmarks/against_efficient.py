"""Benchmark: a default fit against preparing efficient diffusion with its published truncation, in one run."""

from __future__ import annotations

import time
from typing import Any

from measuring import QUICK, Case, peak_gigabytes
from warm_up import load_libraries

MOST_TIME, MOST_MEMORY = 1.0, 0.5  # of efficient's


def cases(quick: bool) -> list[Case]:
    """The size of Oxford105k, and 5,000 numbers for each item; once, since efficient takes long."""
    if quick:
        return [Case("400 x 16", {"n": 400, "d": 16, "truncation": 60, "settings": QUICK}, (0,))]
    return [Case("105,000 x 128", {"n": 105_000, "d": 128, "truncation": 5_000, "settings": {}}, (0,))]


def run(n: int, d: int, truncation: int, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Seconds and peaks of both, each in a process of its own, one after the other, and their ratios."""
    size = {"n": n, "d": d, "seed": seed}
    ours = _call("manifind", {**size, "settings": settings})
    theirs = _call("efficient", {**size, "settings": {"truncation": truncation}})
    both = {"": ours, "efficient_": theirs}
    numbers = {f"{who}{key}": value for who, found in both.items() for key, value in found.items()}
    ratios = {f"{key}_ratio": ours[key] / theirs[key] for key in ("seconds", "peak_GB")}
    return numbers | ratios


def _call(function: str, arguments: dict[str, Any]) -> dict[str, float]:
    from manifind.worker import call

    numbers: dict[str, float] = call(f"against_efficient:{function}", arguments).value
    return numbers


def manifind(n: int, d: int, seed: int, settings: dict[str, Any]) -> dict[str, float]:
    """A fit of GRAD-Net."""
    from manifind.model.estimator import GradNet

    return _fitted(GradNet(**settings, random_state=seed), n, d)


def efficient(n: int, d: int, seed: int, settings: dict[str, Any]) -> dict[str, float]:
    """Efficient diffusion prepared; it draws nothing, so the seed is not asked."""
    del seed
    from manifind.baselines.diffusion import Efficient

    return _fitted(Efficient(**settings), n, d)


def _fitted(model: Any, n: int, d: int) -> dict[str, float]:
    from landmark_cloud import make_landmark_cloud

    load_libraries()
    X = make_landmark_cloud(n, d).descriptors
    began = time.perf_counter()
    model.fit(X)
    return {"seconds": time.perf_counter() - began, "peak_GB": peak_gigabytes()}
