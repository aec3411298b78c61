"""Descriptors smoothed along the graph: each becomes a mean over what a walk from it finds."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gradnet.arrays import Floats, row_blocks
from gradnet.config import SHARE, Constraints
from gradnet.descriptors.preprocess import unit_rows
from gradnet.graph.diffusion import limit
from gradnet.graph.transition import transition
from gradnet.methods.feature_method import FeatureMethod

_COLUMNS_PER_BLOCK = 64  # dimensions at a time: the walk needs a few copies of them in double precision


class Smooth(FeatureMethod):
    """Nearest neighbours by the cosine of (I - alpha S)^-1 X, rows scaled to length 1."""

    cost = "linear: a walk over the edges for each dimension"
    constraints: ClassVar[Constraints] = {"alpha": SHARE}

    def __init__(
        self,
        *,
        preprocess: str = "unit",
        n_neighbors: int = 15,
        graph: str = "mutual",
        similarity: str = "euclidean",
        alpha: float = 0.9,
        n_query_neighbors: int | None = 5,
    ) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.similarity = similarity
        self.alpha = alpha
        self.n_query_neighbors = n_query_neighbors

    def _features(self) -> Floats:
        X = self.nodes_.descriptors
        S, smooth = transition(self.affinity_), np.empty_like(X)
        for columns in row_blocks(X.shape[1], _COLUMNS_PER_BLOCK):
            smooth[:, columns] = limit(S, X[:, columns].astype(np.float64), self.alpha)
        return unit_rows(smooth)
