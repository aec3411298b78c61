"""Nearest neighbours, query expansion and database augmentation."""

from __future__ import annotations

import numpy as np

from manifind.arrays import Floats, Ints
from manifind.baselines.estimators import DescriptorEstimator
from manifind.graph.preprocess import unit_rows
from manifind.index.exact import graph_neighbours, nearest, settle
from manifind.ranking import Ranking
from manifind.settings import NOT_NEGATIVE, estimator, or_none, setting, whole


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


@estimator
class KNN(DescriptorEstimator):
    """Plain nearest neighbours by Euclidean distance: what every other method must beat.

    Items ranked by the distance of their descriptors; on unit rows the same order as by cosine.

    Scores are negative distances.
    """

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        return nearest(prepared, self.descriptors_, k, "euclidean")


@estimator
class AQE(DescriptorEstimator):
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
class AlphaQE(DescriptorEstimator):
    """Alpha query expansion (Radenovic et al. 2018): ask again with a mean in which nearer answers count more.

    Items ranked by cosine to the sum of the query and its n_neighbors nearest items times cos^alpha.

    With alpha = 0 this is average query expansion, but for neighbours at more than a right angle.
    """

    cost = "linear: two searches for each query"

    n_neighbors: int = setting(50, whole(1))
    alpha: float = setting(3.0, NOT_NEGATIVE)

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        q, x = unit_rows(prepared), unit_rows(self.descriptors_)
        found = nearest(q, x, min(self.n_neighbors, len(x)), "cosine").ids
        return nearest(expanded(q, x, found, cosine_powers(q, x, found, self.alpha)), x, k, "cosine")


@estimator
class DBA(DescriptorEstimator):
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
            found = nearest(q, x, min(self.n_query_neighbors, len(x)), "cosine").ids
            q = expanded(q, x, found, cosine_powers(q, x, found, self.alpha))
        return nearest(q, x, k, "cosine")
