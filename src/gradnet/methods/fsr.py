"""Fast spectral ranking (Iscen et al. 2018): diffusion as a filter on the leading eigenvectors of the graph."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from gradnet.arrays import Doubles, Sparse
from gradnet.config import SHARE, Constraints, whole
from gradnet.graph.reach import one_hot_components, within_reach
from gradnet.graph.transition import transition
from gradnet.methods.graph_method import GraphMethod

_DENSE_UP_TO = 1000  # nodes for which all eigenvectors are found at once


class FSR(GraphMethod):
    """Items ranked by U h(Lambda) U^T y + (1 - alpha) (y - U U^T y), h(x) = (1 - alpha) / (1 - alpha x).

    U, Lambda: the `rank` leading eigenpairs of S. The second term, which the authors leave out, is what
    diffusion gives to the rest of y where the other eigenvalues are near zero; with all eigenvectors it vanishes and
    the answer is manifold ranking's.
    """

    answers_unseen = True
    cost = "n times rank in memory and for each query; the eigenvectors once"
    constraints: ClassVar[Constraints] = {"alpha": SHARE, "rank": whole(1)}

    def __init__(
        self,
        *,
        preprocess: str = "unit",
        n_neighbors: int = 15,
        graph: str = "mutual",
        similarity: str = "euclidean",
        alpha: float = 0.99,
        rank: int = 1000,
        n_query_neighbors: int | None = None,
    ) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.similarity = similarity
        self.alpha = alpha
        self.rank = rank
        self.n_query_neighbors = n_query_neighbors

    def _learn(self) -> None:
        values, self.vectors_ = leading_eigenpairs(transition(self.affinity_), self.rank)
        self._component = one_hot_components(self.affinity_)
        # Of the filter, what the second term has already.
        self.filter_ = (1 - self.alpha) * (1 / (1 - self.alpha * values) - 1)

    def _scores(self, start: Sparse) -> Doubles:
        filtered = (start @ self.vectors_) * self.filter_  # (b, r)
        # A product for each query, not one for all, so that no answer depends on the other queries.
        spread = np.matmul(filtered[:, None], self.vectors_.T)[:, 0]
        scores = spread + (1 - self.alpha) * start.toarray()
        return np.where(within_reach(start, self._component), scores, 0.0)


def leading_eigenpairs(S: Sparse, rank: int) -> tuple[Doubles, Doubles]:
    """The `rank` largest eigenvalues of a symmetric matrix, and their eigenvectors, (N, rank)."""
    N = S.shape[0]
    if N <= _DENSE_UP_TO or 2 * rank >= N:  # where most are wanted, Lanczos would find them one by one
        values, vectors = eigh(S.toarray().astype(np.float64))
        return values[-rank:], np.ascontiguousarray(vectors[:, -rank:])
    begin = np.random.default_rng(0).standard_normal(N)  # the same one always: the same answer always
    values, vectors = eigsh(S.astype(np.float64), k=rank, which="LA", v0=begin)
    return values, np.ascontiguousarray(vectors)
