"""Nearest neighbours on other distances: anchor codes alone, and contextual dissimilarity."""

from __future__ import annotations

import numpy as np

from manifind.arrays import Doubles, Floats, row_blocks
from manifind.baselines.estimators import DescriptorEstimator
from manifind.graph.anchors import anchor_codes, kmeans_anchors
from manifind.graph.duplicates import distinct_rows
from manifind.graph.preprocess import unit_rows
from manifind.index.exact import Neighbours, all_scores, graph_neighbours, nearest
from manifind.model.estimator import draw_seed
from manifind.ranking import Ranking, top_k
from manifind.settings import UP_TO_ONE, estimator, setting, whole


@estimator
class Codes(DescriptorEstimator):
    """Nearest neighbours on the anchor codes Z alone, as the paper reports them beside its own scores.

    Items ranked by the cosine of their sparse codes on k-means anchors.

    Answers unseen queries: they are coded on the same anchors.
    """

    n_anchors: int = setting(100, whole(1))
    n_codes: int = setting(5, whole(1))
    random_state: int | np.random.RandomState | None = None

    def _learn(self) -> None:
        distinct = self.descriptors_[distinct_rows(self.descriptors_).first]
        self.anchors_ = kmeans_anchors(distinct, self.n_anchors, draw_seed(self.random_state))
        self.codes_ = self._code(self.descriptors_)

    def _code(self, prepared: Floats) -> Floats:
        return unit_rows(anchor_codes(prepared, self.anchors_, self.n_codes).toarray())

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        return nearest(self._code(prepared), self.codes_, k, "cosine")


_CANDIDATES = 4  # times n_neighbors: among so many by distance are the nearest sought after an update
_EQUAL = 1e-3  # relative difference of the r_i at which they count as equal
_SCORES_PER_BLOCK = 1 << 22


@estimator
class CDM(DescriptorEstimator):
    """Contextual dissimilarity (Jegou et al. 2007): distances shrunk where items are sparse, so that no item is a hub.

    Items ranked by distance times a factor of their own, which evens out how near their neighbours are.

    The dissimilarity of i and j is d_ij delta_i delta_j. The factors begin at 1 and are multiplied, at most
    `iterations` times, by (r / r_i)^(alpha / 2): r_i is the mean dissimilarity of i to its n_neighbors nearest, r the
    geometric mean of all r_i. A query's own factor changes no order and is left out. Scores are negative.
    """

    cost = "quadratic in time to prepare, an exact search for every item; linear in memory"

    n_neighbors: int = setting(50, whole(1))
    alpha: float = setting(0.5, UP_TO_ONE)
    iterations: int = setting(3, whole(1))

    def _learn(self) -> None:
        distinct = distinct_rows(self.descriptors_)  # copies are one item: their distance of 0 says nothing
        self.factors_ = self._factors(self.descriptors_[distinct.first])[distinct.of_row]

    def _factors(self, nodes: Floats) -> Doubles:
        others = len(nodes) - 1
        if others == 0:
            return np.ones(1)
        k = min(self.n_neighbors, others)
        neighbours = graph_neighbours(nodes, min(_CANDIDATES * k, others))
        return even_factors(neighbours, k, self.alpha, self.iterations)

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        m, n = len(prepared), len(self.descriptors_)
        ids, scores = np.empty((m, k), dtype=np.int64), np.empty((m, k), dtype=np.float32)
        for rows in row_blocks(m, max(1, _SCORES_PER_BLOCK // n)):
            plain = all_scores(prepared[rows].astype(np.float64), self.descriptors_, "euclidean")
            ids[rows], scores[rows] = top_k((plain * self.factors_).astype(np.float32), k)
        return Ranking(ids, scores)


def even_factors(candidates: Neighbours, k: int, alpha: float, iterations: int) -> Doubles:
    """(N,) delta, under which the mean of d_ij delta_i delta_j over the k nearest j is about the same for all i.

    candidates: of each item, among which its k nearest are sought again after every update; exact where they are
    all others. Ends where the means are equal, or after so many iterations.
    """
    ids, distances = candidates
    delta = np.ones(len(ids))
    for _ in range(iterations):
        scaled = np.partition(distances * delta[ids], k - 1, axis=1)[:, :k]
        log_r = np.log(delta * scaled.mean(axis=1))
        excess = log_r - log_r.mean()
        if np.abs(excess).max() < _EQUAL:
            break
        delta *= np.exp(-alpha / 2 * excess)
    return delta
