"""Points moved towards their neighbours: the sum that query expansion and database augmentation share."""

from __future__ import annotations

import numpy as np

from gradnet.arrays import Floats, Ints
from gradnet.descriptors.preprocess import unit_rows
from gradnet.graph.neighbours import settle


def expanded(points: Floats, database: Floats, ids: Ints, weights: Floats) -> Floats:
    """Each point plus its neighbours times their weights, scaled to length 1, (m, d).

    points: (m, d). database: (n, d). ids, weights: (m, k).
    """
    total = points.copy()
    for column in range(ids.shape[1]):  # one neighbour at a time: (m, d) in memory, never (m, k, d)
        total += database[ids[:, column]] * weights[:, column, None]
    return unit_rows(total)


def cosine_powers(points: Floats, database: Floats, ids: Ints, alpha: float) -> Floats:
    """cos^alpha of each point and its neighbours, (m, k); 0 for a negative cosine, which has no such power.

    points: (m, d) and database: (n, d), unit rows.
    """
    cosines = settle(points, database, ids, "cosine")
    return np.where(cosines > 0, np.maximum(cosines, 0.0) ** np.float32(alpha), np.float32(0))
