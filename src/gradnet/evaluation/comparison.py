"""Is one method better than another? The difference query by query, with its confidence interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradnet.arrays import Doubles, row_blocks
from gradnet.errors import InputError
from gradnet.evaluation.score import Score

_RESAMPLES = 10_000
_NUMBERS_PER_BLOCK = 1 << 22


class Difference(NamedTuple):
    """Mean of first minus second in points, the ends of its interval, and for how many queries who won."""

    mean: float
    low: float
    high: float
    confidence: float
    wins: int
    losses: int
    ties: int


def compare(first: Score, second: Score, confidence: float = 0.95, seed: int = 0) -> Difference:
    """How far first is above second: paired bootstrap over the queries, percentile interval.

    Queries are drawn with replacement, each with its pair of values, 10,000 times. An interval that
    contains 0 says that these queries cannot tell the two apart. Queries count as independent, which those
    of one landmark are not: the interval is then too narrow.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence}; expected a number between 0 and 1, such as 0.95")
    _check_comparable(first, second)
    counts = first.weights > 0
    differences = (first.per_query - second.per_query)[counts]
    weights = first.weights[counts]
    low, high = np.quantile(
        _resampled(differences, weights, seed), [(1 - confidence) / 2, (1 + confidence) / 2]
    )
    return Difference(
        float(np.average(differences, weights=weights)),
        float(low),
        float(high),
        confidence,
        int((differences > 0).sum()),
        int((differences < 0).sum()),
        int((differences == 0).sum()),
    )


def _check_comparable(first: Score, second: Score) -> None:
    for name in ("measure", "rule"):
        if getattr(first, name) != getattr(second, name):
            raise InputError(
                f"the {name} of one score is {getattr(first, name)!r}, of the other {getattr(second, name)!r}; "
                "expected the same",
                "score both rankings against the same ground truth by the same rule",
            )
    if (first.cut is None) != (second.cut is None):
        raise InputError(
            f"one set of rankings is cut at {second.cut if first.cut is None else first.cut}, the other is whole; "
            "expected both of a kind, since what a cut leaves out counts as not found",
            "cut both at the same length, or rank everything in both",
        )
    if not np.array_equal(first.weights, second.weights):
        raise InputError(
            f"the scores are over different queries ({first.n_queries} and {second.n_queries} that count); "
            "expected the same queries in the same order"
        )


def _resampled(differences: Doubles, weights: Doubles, seed: int) -> Doubles:
    """(10,000,) the weighted mean in each resample."""
    rng = np.random.default_rng(seed)
    m = len(differences)
    means = np.empty(_RESAMPLES)
    for block in row_blocks(_RESAMPLES, max(1, _NUMBERS_PER_BLOCK // m)):
        drawn = rng.integers(m, size=(block.stop - block.start, m))
        means[block] = (weights * differences)[drawn].sum(axis=1) / weights[drawn].sum(axis=1)
    return means
