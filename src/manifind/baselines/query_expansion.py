"""Baselines without a graph: nearest neighbours, query expansion, database augmentation, codes, dissimilarity."""

import numpy as np

from manifind.arrays import Doubles, Floats, Ints
from manifind.baselines.estimators import BaselineEstimator
from manifind.graph.anchors import anchor_codes, kmeans_anchors
from manifind.graph.duplicates import distinct_rows
from manifind.graph.preprocess import unit_rows
from manifind.index.exact import Neighbours, all_scores, graph_neighbours, nearest, rank_in_blocks, settle
from manifind.model.estimator import draw_seed
from manifind.ranking import Ranking, top_k
from manifind.settings import NOT_NEGATIVE, UP_TO_ONE, estimator, or_none, setting, whole


def expanded(points: Floats, database: Floats, ids: Ints, weights: Floats) -> Floats:
    """Each point plus its neighbours times their weights, scaled to length 1, (m, d).

    points: (m, d). database: (n, d). ids, weights: (m, k).
    """
    total = points.copy()
    for column in range(ids.shape[1]):  # one neighbour at a time: (m, d) in memory, never (m, k, d)
        total += database[ids[:, column]] * weights[:, column, None]
    return unit_rows(total)


def cosine_powers(points: Floats, database: Floats, ids: Ints, alpha: float) -> Floats:
    """cos^alpha of each point and its neighbours, (m, k); 0 for a negative cosine, which has no such power.

    points: (m, d) and database: (n, d), unit rows.
    """
    cosines = settle(points, database, ids, "cosine")
    return np.where(cosines > 0, np.maximum(cosines, 0.0) ** np.float32(alpha), np.float32(0))


def expanded_by_cosine(points: Floats, database: Floats, n: int, alpha: float) -> Floats:
    """Each point plus its n nearest rows of the database times cos^alpha, scaled to length 1; all unit rows."""
    ids = nearest(points, database, min(n, len(database)), "cosine").ids
    return expanded(points, database, ids, cosine_powers(points, database, ids, alpha))


@estimator
class KNN(BaselineEstimator):
    """Plain nearest neighbours by Euclidean distance: what every other method must beat.

    Items ranked by the distance of their descriptors; on unit rows the same order as by cosine.

    Scores are negative distances.
    """

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        return nearest(prepared, self.descriptors_, k, "euclidean")


@estimator
class AQE(BaselineEstimator):
    """Average query expansion (Chum et al. 2007): ask again with the mean of the first answers.

    Items ranked by cosine to the mean of the query and its n_neighbors nearest items.

    A query that is itself an item finds itself among those neighbours, as it would in service.
    """

    cost = "linear: two searches for each query"

    n_neighbors: int = setting(10, whole(1))

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        x = self.descriptors_
        found = nearest(prepared, x, min(self.n_neighbors, len(x)), "euclidean").ids
        alike = np.ones(found.shape, dtype=np.float32)
        return nearest(expanded(prepared, x, found, alike), unit_rows(x), k, "cosine")


@estimator
class AlphaQE(BaselineEstimator):
    """Alpha query expansion (Radenovic et al. 2018): ask again with a mean in which nearer answers count more.

    Items ranked by cosine to the sum of the query and its n_neighbors nearest items times cos^alpha.

    With alpha = 0 this is average query expansion, but for neighbours at more than a right angle.
    """

    cost = "linear: two searches for each query"

    n_neighbors: int = setting(50, whole(1))
    alpha: float = setting(3.0, NOT_NEGATIVE)

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        q, x = unit_rows(prepared), unit_rows(self.descriptors_)
        return nearest(expanded_by_cosine(q, x, self.n_neighbors, self.alpha), x, k, "cosine")


@estimator
class DBA(BaselineEstimator):
    """Database augmentation (Turcot and Lowe 2009): every item is moved towards its own neighbours beforehand.

    Items ranked by the cosine of the query and x + the sum of x's n_neighbors nearest others times cos^alpha.

    n_query_neighbors: items of the augmented database by which a query is expanded in the same way; None
    leaves it as it is.
    """

    cost = "quadratic in time to prepare, an exact search for every item; linear in memory"

    n_neighbors: int = setting(10, whole(1))
    alpha: float = setting(3.0, NOT_NEGATIVE)
    n_query_neighbors: int | None = setting(None, or_none(whole(1)))

    def _learn(self) -> None:
        x = unit_rows(self.descriptors_)
        self.augmented_ = x
        if len(x) > 1:
            found = graph_neighbours(x, min(self.n_neighbors, len(x) - 1)).ids
            self.augmented_ = expanded(x, x, found, cosine_powers(x, x, found, self.alpha))

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        q, x = unit_rows(prepared), self.augmented_
        if self.n_query_neighbors is not None:
            q = expanded_by_cosine(q, x, self.n_query_neighbors, self.alpha)
        return nearest(q, x, k, "cosine")


@estimator
class Codes(BaselineEstimator):
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
class CDM(BaselineEstimator):
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
        factors, others = np.ones(len(distinct.first)), len(distinct.first) - 1
        if others > 0:
            k = min(self.n_neighbors, others)
            neighbours = graph_neighbours(self.descriptors_[distinct.first], min(_CANDIDATES * k, others))
            factors = even_factors(neighbours, k, self.alpha, self.iterations)
        self.factors_ = factors[distinct.of_row]

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        def rank(rows: slice) -> Ranking:
            plain = all_scores(prepared[rows].astype(np.float64), self.descriptors_, "euclidean")
            return top_k((plain * self.factors_).astype(np.float32), k)

        return rank_in_blocks(rank, len(prepared), k, _SCORES_PER_BLOCK // len(self.descriptors_))


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
