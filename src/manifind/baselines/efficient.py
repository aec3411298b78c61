"""Efficient diffusion (Yang et al. 2019): the diffusion from every item, computed before there is a query."""

from __future__ import annotations

import numpy as np

from manifind.arrays import Doubles, Floats, Ints, Mask, Sparse, row_blocks
from manifind.baselines.estimators import DiffusionEstimator
from manifind.graph.diffusion import nearest_sets, truncated_profiles, whole_profiles
from manifind.graph.knn_graph import transition
from manifind.settings import POSITIVE, SHARE, estimator, or_none, setting, whole

_ROWS_PER_BLOCK = 64  # of queries: a product with so many columns is fastest


@estimator
class Efficient(DiffusionEstimator):
    """Efficient diffusion (Yang et al. 2019): the diffusion from every item, computed before there is a query.

    Items ranked by the cosine between their diffusion profile and the query's.

    The profile of a node holds what a walk from it, with restart, leaves at the `truncation` nodes nearest to it,
    itself among them; None for all nodes. An unseen query has no profile; its scores are those of its
    n_query_neighbors nearest nodes, added up with their similarities. iterations, tolerance: where conjugate
    gradients stop. n_neighbors: Yang's 50 count the item itself, these do not.
    """

    answers_unseen = True
    cost = (
        "quadratic in time to prepare, an exact search and a small system for every item; in memory linear, "
        "`truncation` numbers for each"
    )

    n_neighbors: int = 49
    similarity: str = "cubed"
    alpha: float = setting(0.99, SHARE)
    truncation: int | None = setting(1000, or_none(whole(1)))
    iterations: int = setting(20, whole(1))
    tolerance: float = setting(1e-6, POSITIVE)
    n_query_neighbors: int | None = setting(10, or_none(whole(1)))

    def _learn(self) -> None:
        """profiles_: (N, N) CSR float32, rows of length 1. lengths_: (N,) those they had."""
        self.profiles_ = self._profiles()
        self.lengths_ = np.sqrt((self.profiles_ * self.profiles_).sum(axis=1, dtype=np.float64))
        self.profiles_.data /= np.repeat(self.lengths_, np.diff(self.profiles_.indptr))

    def _profiles(self) -> Sparse:
        S, X = transition(self.affinity_), self.nodes_.descriptors
        stop = (self.alpha, self.iterations, self.tolerance)
        if self.truncation is None or self.truncation >= len(X):
            return whole_profiles(S, *stop)
        return truncated_profiles(S, nearest_sets(X, self.truncation), *stop)

    def _scores(self, start: Sparse) -> Doubles:
        known = _in_graph(start)
        scores = np.empty(start.shape)
        scores[known] = self._cosines(start[known].indices)
        scores[~known] = self._sums(start[~known])
        return scores

    def _cosines(self, nodes: Ints) -> Floats:
        """(b, N) the cosines of the profiles of some nodes with all."""
        cosines = np.empty((len(nodes), self.profiles_.shape[0]), dtype=np.float32)
        for rows in row_blocks(len(nodes), _ROWS_PER_BLOCK):
            cosines[rows] = (self.profiles_ @ self.profiles_[nodes[rows]].toarray().T).T
        return cosines

    def _sums(self, weights: Sparse) -> Floats:
        """(b, N) the profiles, with their lengths, added up with weights, (b, N) CSR."""
        weights = weights.astype(np.float32)  # or the profiles would be copied into float64 to meet them
        weights.data *= self.lengths_[weights.indices]
        return np.asarray((weights @ self.profiles_).toarray())


def _in_graph(start: Sparse) -> Mask:
    """(b,) which queries begin at one node, with a one: at their own, or where they cannot be told from it."""
    alone = np.diff(start.indptr) == 1
    alone[alone] = start.data[start.indptr[:-1][alone]] == 1.0
    return np.asarray(alone)
