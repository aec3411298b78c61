"""Tensor product graph diffusion (Yang, Prasad and Latecki 2013): affinities of pairs, spread over pairs of edges."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gradnet.arrays import Doubles, Floats, Sparse, row_blocks
from gradnet.config import Constraints, or_none, whole
from gradnet.errors import InputError
from gradnet.graph.affinity import local_graph
from gradnet.graph.neighbours import Neighbours, graph_neighbours
from gradnet.graph.transition import row_normalised, with_loops
from gradnet.methods.graph_method import GraphMethod

_NUMBERS_KEPT = 1 << 24  # 128 MB of float64: the states of all steps for the queries taken at a time


class TensorProduct(GraphMethod):
    """Items ranked by W_t, where W_t = Q W_{t-1} Q^T + I; the sum over all t is what pairs of walks share.

    W_0: affinities to the n_normalised nearest, an item's own of one among them, rows divided by their sums.
    Q: those entries of W_0 that the graph of n_neighbors has, and the diagonal, not divided again. What is
    left out makes its rows sum to less than one; so the sum converges, and n_normalised must be the larger.
    None is twice n_neighbors. The kernel over all pairs of the authors is the largest n_normalised there can be.
    steps: t.
    """

    cost = "linear: two passes over the edges for each query and step, all steps in memory at once"
    constraints: ClassVar[Constraints] = {"n_normalised": or_none(whole(2)), "steps": whole(0)}

    def __init__(
        self,
        *,
        preprocess: str = "unit",
        n_neighbors: int = 10,
        graph: str = "union",
        similarity: str = "gaussian",
        n_normalised: int | None = None,
        steps: int = 200,
    ) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.similarity = similarity
        self.n_normalised = n_normalised
        self.steps = steps

    def _affinity(self, nodes: Floats, neighbours: Neighbours) -> Sparse:
        """The affinity of the wide graph; `edges_` says where the graph of n_neighbors has an edge or a node."""
        self.edges_ = with_loops(super()._affinity(nodes, neighbours) > 0)
        wide = graph_neighbours(nodes, min(self._width(), len(nodes) - 1))
        return local_graph(nodes, wide, "union", self.similarity)

    def _width(self) -> int:
        if self.n_normalised is None:
            return 2 * self.n_neighbors
        if self.n_normalised <= self.n_neighbors:
            raise InputError(
                f"n_normalised = {self.n_normalised}; expected more than n_neighbors = {self.n_neighbors}",
                "the diffusion converges because rows lose the neighbours beyond n_neighbors",
            )
        return self.n_normalised

    def _learn(self) -> None:
        self.wide_ = row_normalised(with_loops(self.affinity_))
        self.local_ = (self.wide_ * self.edges_).tocsr()

    def _scores(self, start: Sparse) -> Doubles:
        b, N = start.shape
        scores = np.empty((b, N))
        for rows in row_blocks(b, max(1, _NUMBERS_KEPT // (N * (self.steps + 1)))):
            e = start[rows.start : rows.stop].toarray()
            scores[rows] = tensor_diffusion(self.local_, self.wide_, e, self.steps)
        return scores


def tensor_diffusion(Q: Sparse, W: Sparse, start: Doubles, steps: int) -> Doubles:
    """(b, N) start W_t, where W_0 = W and W_t = Q W_{t-1} Q^T + I (Eq. 5), without the other rows of W_t.

    W_t = Q^t W (Q^T)^t + sum over s < t of Q^s (Q^T)^s, by Horner's rule in Q^T. start: (b, N).
    """
    v = [start.T]
    for _ in range(steps):
        v.append(Q.T @ v[-1])
    rows = W.T @ v.pop()
    while v:
        rows = Q @ rows + v.pop()
    return np.asarray(rows.T)
