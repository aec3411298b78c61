"""Benchmark: how time and memory of a default fit grow with the number of items."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from statistics import linear_regression
from typing import Any

from case import QUICK, Case
from fit_sizes import run

__all__ = ["LIMIT", "cases", "exponent", "exponents", "run"]

LIMIT = 1.15  # of the exponent
_SIZES = (10_000, 20_000, 50_000, 100_000, 200_000)
_QUICK_SIZES = (500, 1500)


def cases(quick: bool) -> list[Case]:
    """One case for each size, once: five points on a line, and the largest takes long."""
    settings = QUICK if quick else {}
    sizes, d = (_QUICK_SIZES, 16) if quick else (_SIZES, 128)
    return [Case(f"{n:,}", {"n": n, "d": d, "settings": settings}, (0,)) for n in sizes]


def exponents(cases: dict[str, Any]) -> dict[str, float]:
    """The exponents of time and of memory over the measured cases."""
    sizes = [case["parameters"]["n"] for case in cases.values()]
    return {
        key: exponent(sizes, [case["numbers"][key]["median"] for case in cases.values()])
        for key in ("seconds", "memory_GB")
    }


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The p of values ~ sizes^p: the least-squares slope of their logarithms."""
    return linear_regression([log(n) for n in sizes], [log(v) for v in values]).slope
