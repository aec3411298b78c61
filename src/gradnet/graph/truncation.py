"""Truncation: keeping only what the queries could want."""

from __future__ import annotations

import numpy as np

from gradnet.arrays import Floats, Ints
from gradnet.graph.neighbours import nearest


def truncate(X: Floats, queries: Floats, top: int) -> Ints:
    """Positions, rising, of the items that are among the `top` nearest of at least one query."""
    wanted = nearest(queries, X, min(top, len(X)), "euclidean").ids
    return np.unique(wanted)
