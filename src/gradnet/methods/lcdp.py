"""Locally constrained diffusion (Yang, Koknar-Tezel and Latecki 2009): both ends of a pair move at once."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gradnet.arrays import Doubles, Sparse
from gradnet.config import Constraints, or_none, whole
from gradnet.graph.transition import largest_per_row, row_normalised, with_loops
from gradnet.methods.graph_method import GraphMethod


class LCDP(GraphMethod):
    """Items ranked by A_t, where A_0 = P and A_t = P_K A_{t-1} P_K^T; a pair is alike if its neighbours are.

    P: the affinity with each item's similarity of one to itself, rows divided by their sums. P_K: its n_kept
    largest per row, the item itself among them, divided again; None keeps all. steps: t.
    """

    cost = "linear: two passes over the edges for each query and step"
    constraints: ClassVar[Constraints] = {"n_kept": or_none(whole(1)), "steps": whole(0)}

    def __init__(
        self,
        *,
        preprocess: str = "unit",
        n_neighbors: int = 15,
        graph: str = "mutual",
        similarity: str = "gaussian",
        n_kept: int | None = 10,
        steps: int = 5,
    ) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.similarity = similarity
        self.n_kept = n_kept
        self.steps = steps

    def _learn(self) -> None:
        self.transition_ = row_normalised(with_loops(self.affinity_))
        self.local_ = row_normalised(largest_per_row(self.transition_, self.n_kept))

    def _scores(self, start: Sparse) -> Doubles:
        return constrained_diffusion(self.transition_, self.local_, start.toarray(), self.steps)


def constrained_diffusion(P: Sparse, P_K: Sparse, start: Doubles, steps: int) -> Doubles:
    """(b, N) start P_K^t P (P_K^T)^t: the wanted rows of A_t, one after the other factor, never all of them."""
    rows = start.T
    for _ in range(steps):
        rows = P_K.T @ rows
    rows = P.T @ rows
    for _ in range(steps):
        rows = P_K @ rows
    return np.asarray(rows.T)
