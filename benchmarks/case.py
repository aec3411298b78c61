"""What one measurement of a benchmark is: its name, what it is run with, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

QUICK = {"max_steps": 2, "layers": [32, 16]}
"""Settings of GradNet for quick forms: a short training of a small network."""


@dataclass(frozen=True)
class Case:
    """One row of a benchmark: `run(**parameters, seed=...)` in a fresh process for each of `seeds`.

    parameters: plain JSON values. seeds: one for each repetition; the same again where only time varies.
    """

    name: str
    parameters: dict[str, Any]
    seeds: tuple[int, ...]
