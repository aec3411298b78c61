"""Locally constrained diffusion (Yang, Koknar-Tezel and Latecki 2009): both ends of a pair move at once."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import sparse

from gradnet.arrays import Doubles, Sparse
from gradnet.config import Constraints, or_none, whole
from gradnet.methods.graph_method import GraphMethod


class LCDP(GraphMethod):
    """Items ranked by A_t, where A_0 = P and A_t = P_K A_{t-1} P_K^T; a pair is alike if its neighbours are.

    P: the affinity with each item's similarity of one to itself, rows divided by their sums. P_K: its n_kept
    largest per row, the item itself among them, divided again; None keeps all. steps: t.
    """

    cost = "linear: 2 steps + 1 passes over the edges for each query"
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


def with_loops(A: Sparse) -> Sparse:
    """A + I, (N, N) CSR float64: an item has the largest similarity, one, to itself."""
    loops = (A.astype(np.float64) + sparse.eye_array(A.shape[0], format="csr")).tocsr()
    loops.sort_indices()
    return loops


def row_normalised(A: Sparse) -> Sparse:
    """P = D^-1 A, D the row sums of A; a row of zeros stays one."""
    sums = A.sum(axis=1, dtype=np.float64)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
    values = A.data * np.repeat(scale, np.diff(A.indptr))
    return sparse.csr_array((values, A.indices, A.indptr), shape=A.shape)


def largest_per_row(A: Sparse, K: int | None) -> Sparse:
    """A without all but the K largest entries of each row, of equal ones the first; all stay if K is None."""
    if K is None:
        return A
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    order = np.lexsort((A.indices, -A.data, rows))  # by row, in it by falling value, in those by column
    place = np.arange(A.nnz) - A.indptr[rows]
    kept = np.sort(order[place < K])
    return sparse.csr_array((A.data[kept], (rows[kept], A.indices[kept])), shape=A.shape)
