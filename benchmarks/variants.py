"""Benchmark: what rounding and narrowing change: score and time of a fit, and rankings by rounded features."""

from __future__ import annotations

from typing import Any

import default_vs_paper
from measuring import QUICK, Case

VARIANTS: dict[str, dict[str, Any]] = {
    "float32": {"precision": "float32"},
    "bfloat16": {"precision": "bfloat16"},
    "512 components": {"precision": "float32", "input_components": 512},
    "128 components": {"precision": "float32", "input_components": 128},
}
_K = 10


def cases(quick: bool) -> list[Case]:
    """Each set that is there with each variant, three seeds; components only where there are more."""
    found = []
    for name in ["digits"] if quick else default_vs_paper.available():
        for variant, settings in VARIANTS.items():
            if name != "digits" or "input_components" not in settings:  # digits are 64 wide
                one = {"dataset": name, "settings": settings | (QUICK if quick else {})}
                found.append(Case(f"{name} {variant}", one, (0,) if quick else (0, 1, 2)))
    return found


def run(dataset: str, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Score and seconds, and the share of the ten best that change in order if features are kept as float16."""
    import numpy as np

    model, numbers = default_vs_paper.fit_and_score(dataset, settings, seed)
    exact, rounded = (
        np.argsort(-(F @ F.T), axis=1, kind="stable")[:, :_K]
        for F in (model.features_, model.features_.astype(np.float16).astype(np.float32))
    )
    return {**numbers, "changed": 100 * float((exact != rounded).any(axis=1).mean())}
