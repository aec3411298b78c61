"""Graph transduction (Bai et al. 2010): the query's label spreads over the graph while the query holds its own."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gradnet.arrays import Doubles, Sparse
from gradnet.config import Constraints, whole
from gradnet.graph.transition import row_normalised, with_loops
from gradnet.methods.graph_method import GraphMethod


class GraphTransduction(GraphMethod):
    """Items ranked by f: the chance that a walk from the item has met the query within `steps` steps.

    f <- P f, and f = 1 at the query again after each step. The limit is 1 wherever the query is reached at
    all, so the number of steps matters.
    """

    cost = "linear: a pass over the edges for each query and step"
    constraints: ClassVar[Constraints] = {"steps": whole(1)}

    def __init__(
        self,
        *,
        preprocess: str = "unit",
        n_neighbors: int = 15,
        graph: str = "mutual",
        similarity: str = "gaussian",
        steps: int = 100,
    ) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.similarity = similarity
        self.steps = steps

    def _learn(self) -> None:
        self.transition_ = row_normalised(with_loops(self.affinity_))

    def _scores(self, start: Sparse) -> Doubles:
        return clamped_walk(self.transition_, start.toarray(), self.steps)


def clamped_walk(P: Sparse, start: Doubles, steps: int) -> Doubles:
    """(b, N) f after `steps` of f <- P f with f(q) = 1 kept, f_0 = e_q. P: (N, N) row sums of 1. start: (b, N)."""
    f0 = start.T
    f = f0
    for _ in range(steps):
        f = np.where(f0 > 0, f0, P @ f)
    return f.T
