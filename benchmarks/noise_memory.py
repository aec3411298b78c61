"""Benchmark: memory of a fit where nothing can be saved: in pure noise every batch needs the whole graph."""

from __future__ import annotations

from typing import Any

from measured_fit import measure_fit
from measuring import QUICK, Case


def cases(quick: bool) -> list[Case]:
    """Five steps: each needs what the one before did."""
    n, d, settings = (300, 32, QUICK) if quick else (50_000, 512, {"max_steps": 5})
    return [Case(f"{n:,} x {d:,}", {"n": n, "d": d, "settings": settings}, (0,))]


def run(n: int, d: int, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Time and memory of a short fit on standard normal descriptors."""
    import numpy as np

    rng = np.random.default_rng(0)
    return measure_fit(lambda: rng.standard_normal((n, d), dtype=np.float32), settings, seed)
