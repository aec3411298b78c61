"""Pairs: descriptors of which each has one relative only, so that there is no manifold to learn from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradnet.arrays import Floats, Ints
from gradnet.errors import InputError


class Pairs(NamedTuple):
    """descriptors: (2 n, d). labels: (2 n,) which pair each belongs to."""

    descriptors: Floats
    labels: Ints


def make_pairs(n: int = 1000, d: int = 64, *, noise: float = 0.8, seed: int = 0) -> Pairs:
    """n Gaussian points, each seen twice through noise of its own.

    noise: deviation of a view from its point, in units of the points' own; each view has from half of it to 1.3
    times as much, so that some relatives are near and some are lost among strangers.
    """
    if n < 2 or d < 2:
        raise InputError(f"n = {n}, d = {d}; expected at least two pairs in two dimensions")
    rng = np.random.default_rng(seed)
    points = np.tile(rng.normal(size=(n, d)), (2, 1))
    strength = noise * rng.uniform(0.5, 1.3, size=(2 * n, 1))
    views = points + strength * rng.normal(size=points.shape)
    return Pairs(views.astype(np.float32), np.tile(np.arange(n, dtype=np.int64), 2))
