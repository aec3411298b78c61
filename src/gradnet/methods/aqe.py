"""Average query expansion (Chum et al. 2007): ask again with the mean of the first answers."""

from __future__ import annotations

import numpy as np

from gradnet.arrays import Floats
from gradnet.descriptors.preprocess import unit_rows
from gradnet.graph.neighbours import nearest
from gradnet.methods.expansion import expanded
from gradnet.methods.plain import PlainMethod
from gradnet.ranking import Ranking


class AQE(PlainMethod):
    """Items ranked by cosine to the mean of the query and its n_neighbors nearest items.

    A query that is itself an item finds itself among those neighbours, as it would in service.
    """

    cost = "linear: two searches for each query"

    def __init__(self, *, preprocess: str = "unit", n_neighbors: int = 10) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        x = self.descriptors_
        found = nearest(prepared, x, min(self.n_neighbors, len(x)), "euclidean").ids
        alike = np.ones(found.shape, dtype=np.float32)
        return nearest(expanded(prepared, x, found, alike), unit_rows(x), k, "cosine")
