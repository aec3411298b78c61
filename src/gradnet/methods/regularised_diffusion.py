"""Regularised diffusion (Bai et al. 2017): pairs of items that are neighbours at both ends become alike."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import linalg

from gradnet.arrays import Doubles, Sparse
from gradnet.config import SHARE, Constraints, one_of, whole
from gradnet.graph.transition import renormalised, with_loops
from gradnet.methods.graph_method import GraphMethod, refuse_beyond

_ROUNDING = 1e-12  # of the largest score: what stands below it is the rounding of an eigen-decomposition


class RegularisedDiffusion(GraphMethod):
    """Items ranked by the limit of A <- alpha S A S^T + (1 - alpha) Y, as exact as eigenvectors make it.

    S: the affinity with each item's similarity of one to itself, divided by the roots of both row sums. Without
    those ones both ends of a pair must move in every step, and on a chain two neighbours are never alike.
    target: Y, "identity" or "affinity", the latter with the ones too. max_items: a larger graph is refused.
    """

    cost = "cubic in time and quadratic in memory: matrices over all pairs of items"
    constraints: ClassVar[Constraints] = {
        "alpha": SHARE,
        "target": one_of("identity", "affinity"),
        "max_items": whole(1),
    }

    def __init__(
        self,
        *,
        preprocess: str = "unit",
        n_neighbors: int = 15,
        graph: str = "mutual",
        similarity: str = "gaussian",
        alpha: float = 0.99,
        target: str = "identity",
        max_items: int = 10_000,
    ) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.similarity = similarity
        self.alpha = alpha
        self.target = target
        self.max_items = max_items

    def _check_size(self, N: int) -> None:
        refuse_beyond(N, self.max_items, 4 if self.target == "identity" else 5, type(self).__name__)

    def _learn(self) -> None:
        S = renormalised(self.affinity_).toarray().astype(np.float64)
        Y = None if self.target == "identity" else with_loops(self.affinity_).toarray()
        self.diffused_ = regularised_limit(S, Y, self.alpha)

    def _scores(self, start: Sparse) -> Doubles:
        return np.asarray(start @ self.diffused_)


def regularised_limit(S: Doubles, Y: Doubles | None, alpha: float) -> Doubles:
    """(N, N) A* = U [(1 - alpha) / (1 - alpha lam_i lam_j) (U^T Y U)_ij] U^T, S = U diag(lam) U^T symmetric.

    Y: (N, N); None for the identity, where this is (1 - alpha) (I - alpha S^2)^-1.
    """
    lam, U = linalg.eigh(S)
    lam = np.clip(lam, -1.0, 1.0)  # beyond which only rounding takes them
    if Y is None:
        limit = (U * ((1 - alpha) / (1 - alpha * lam**2))) @ U.T
    else:
        limit = U @ ((1 - alpha) / (1 - alpha * np.outer(lam, lam)) * (U.T @ Y @ U)) @ U.T
    limit[limit <= _ROUNDING * limit.max()] = 0.0
    return np.asarray(limit)
