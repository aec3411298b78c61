"""Manifold ranking (Zhou et al. 2004): a random walk with restart from the query over the graph."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gradnet.arrays import Doubles, Sparse
from gradnet.config import SHARE, Constraints, or_none, whole
from gradnet.graph.diffusion import closed_form, limit, walk
from gradnet.graph.transition import transition
from gradnet.methods.graph_method import GraphMethod

_DENSE_UP_TO = 3000  # nodes for which all walks are found at once, in 72 MB; beyond, those of the queries


class ManifoldRanking(GraphMethod):
    """Items ranked by where a walk from the query, which restarts with probability 1 - alpha, is found.

    steps: of the walk; None goes to its limit. n_query_neighbors: nodes next to an unseen query at which the
    walk begins; None for n_neighbors.
    """

    answers_unseen = True
    cost = "linear: a walk over the edges for each query; small graphs by an inverse"
    constraints: ClassVar[Constraints] = {"alpha": SHARE, "steps": or_none(whole(1))}

    def __init__(
        self,
        *,
        preprocess: str = "unit",
        n_neighbors: int = 15,
        graph: str = "mutual",
        similarity: str = "euclidean",
        alpha: float = 0.99,
        steps: int | None = None,
        n_query_neighbors: int | None = None,
    ) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.similarity = similarity
        self.alpha = alpha
        self.steps = steps
        self.n_query_neighbors = n_query_neighbors

    def _learn(self) -> None:
        self.transition_ = transition(self.affinity_)
        is_small = self.steps is None and self.transition_.shape[0] <= _DENSE_UP_TO
        self._all_walks = closed_form(self.transition_, self.alpha) if is_small else None

    def _scores(self, start: Sparse) -> Doubles:
        if self._all_walks is not None:
            return np.asarray(
                np.maximum(start @ self._all_walks, 0.0)
            )  # rounding may leave less than nothing
        f0, S = start.toarray().T, self.transition_
        return (limit(S, f0, self.alpha) if self.steps is None else walk(S, f0, self.alpha, self.steps)).T
