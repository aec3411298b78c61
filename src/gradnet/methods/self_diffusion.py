"""Self-diffusion (Wang and Tu 2012): the affinity walks on its own graph, and restarts in full at each step."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gradnet.arrays import Doubles, Sparse
from gradnet.config import Constraints, whole
from gradnet.graph.transition import row_normalised, with_loops
from gradnet.methods.graph_method import GraphMethod


class SelfDiffusion(GraphMethod):
    """Items ranked by W* = W_t D^-1, where W_0 = W and W_t = W_{t-1} P + I; P = D^-1 W.

    W: the affinity with each item's similarity of one to itself, as a kernel over all pairs has it; so a node
    without an edge keeps itself. steps: t.
    """

    cost = "linear: a pass over the edges for each query and step"
    constraints: ClassVar[Constraints] = {"steps": whole(0)}

    def __init__(
        self,
        *,
        preprocess: str = "unit",
        n_neighbors: int = 15,
        graph: str = "mutual",
        similarity: str = "gaussian",
        steps: int = 20,
    ) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.similarity = similarity
        self.steps = steps

    def _learn(self) -> None:
        self.loops_ = with_loops(self.affinity_)

    def _scores(self, start: Sparse) -> Doubles:
        return self_diffusion(self.loops_, start.toarray(), self.steps)


def self_diffusion(W: Sparse, start: Doubles, steps: int) -> Doubles:
    """(b, N) start W_t D^-1: each row of W_t = W_{t-1} P + I depends on the same row before, so no other is made."""
    P_T = row_normalised(W).T
    e = start.T
    w = W.T @ e
    for _ in range(steps):
        w = P_T @ w + e
    return np.asarray(w.T / W.sum(axis=1))
