"""Benchmark: a fit with the default settings at the size of Oxford5k and at that of Oxford105k."""

from __future__ import annotations

from typing import Any

from measured_fit import measure_fit
from measuring import QUICK, Case

LIMITS = {"5,063 x 2,048": {"seconds": 60}, "105,000 x 512": {"seconds": 600, "peak_GB": 4}}


def cases(quick: bool) -> list[Case]:
    """The two sizes, the smaller one three times."""
    if quick:
        return [_case(300, 32, QUICK, (0,))]
    return [_case(5063, 2048, {}, (0, 0, 0)), _case(105_000, 512, {}, (0,))]


def _case(n: int, d: int, settings: dict[str, Any], seeds: tuple[int, ...]) -> Case:
    return Case(f"{n:,} x {d:,}", {"n": n, "d": d, "settings": settings}, seeds)


def run(n: int, d: int, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Time and memory of a fit on a landmark cloud, the same for every seed.

    settings: other than the default; only the quick form has any.
    """
    from landmark_cloud import make_landmark_cloud

    return measure_fit(lambda: make_landmark_cloud(n, d).descriptors, settings, seed)
