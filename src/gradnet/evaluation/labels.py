"""Scores where every item of the database is a query and shares a label with what is relevant."""

from __future__ import annotations

import numpy as np

from gradnet.arrays import Doubles, Ints, Mask
from gradnet.errors import InputError


def average_precisions(ids: Ints, labels: Ints) -> Doubles:
    """(n,) average precision of every query, itself left out; NaN where nothing else has its label.

    AP = 1/R sum over the relevant of the precision at their rank, R all that are relevant.
    ids: (n, n) full rankings, row i for item i. labels: (n,).
    """
    n = len(labels)
    if ids.shape != (n, n):
        raise InputError(
            f"rankings of shape {ids.shape} for {n} labels; expected the full ranking, ({n}, {n})"
        )
    relevant = _relevant(ids, labels)[ids != np.arange(n)[:, None]].reshape(n, n - 1)
    precision = np.cumsum(relevant, axis=1) / np.arange(1, n)
    total = relevant.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((precision * relevant).sum(axis=1) / total)


def mean_average_precision(ids: Ints, labels: Ints) -> float:
    """Mean over the queries that have something to find, in percent; rule: query left out."""
    return float(100 * np.nanmean(average_precisions(ids, labels)))


def bullseye(ids: Ints, labels: Ints, window: int) -> float:
    """Share of its class that a query finds among its first `window`, in percent; rule: query counted.

    ids: (n, k) with k >= window. The query is put first wherever its ranking has it.
    """
    n = len(labels)
    if ids.shape[0] != n or ids.shape[1] < window:
        raise InputError(f"rankings of shape {ids.shape}; expected {n} of at least {window}")
    others = ids != np.arange(n)[:, None]
    before = np.cumsum(others, axis=1)  # how many others stand up to here
    hits = _relevant(ids, labels) & others & (before <= window - 1)
    class_sizes = np.unique(labels, return_inverse=True, return_counts=True)[2]
    return float(100 * (hits.sum() + n) / (class_sizes.astype(np.float64) ** 2).sum())


def _relevant(ids: Ints, labels: Ints) -> Mask:
    return np.asarray(labels[ids] == labels[:, None])
