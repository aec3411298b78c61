"""A retrieval method of your own, in a file of your own, beside those of the library.

It needs a constructor that only stores its settings, `fit(X, queries=None)` and `search(Q=None, k=10)`:

    manifind compare digits --methods knn,examples/own_method.py:FewHubs
"""

import numpy as np
from sklearn.base import BaseEstimator

from manifind.baselines import METHODS
from manifind.ranking import Ranking


class FewHubs(BaseEstimator):
    """Nearest neighbours in which an item that lies close to everybody counts as farther away."""

    answers_unseen = True
    cost = "linear: a search for each item, then one for each query"

    def __init__(self, *, preprocess: str = "unit", n_neighbors: int = 10) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors

    def fit(self, X: np.ndarray, queries: np.ndarray | None = None) -> "FewHubs":
        """Measure how crowded the surroundings of every item are."""
        self.plain_ = METHODS["knn"](preprocess=self.preprocess).fit(X, queries)
        others = METHODS["knn"](preprocess=self.preprocess).fit(X).search(k=self.n_neighbors + 1)
        self.reach_ = -others.scores[:, 1:].mean(axis=1)  # of each item to its neighbours
        return self

    def search(self, Q: np.ndarray | None = None, k: int = 10) -> Ranking:
        """The k items with the smallest distance relative to their own surroundings."""
        every = self.plain_.search(Q, k=len(self.reach_))
        crowded = np.maximum(self.reach_[every.ids], np.finfo(np.float32).tiny)
        relative = every.scores / np.sqrt(crowded)
        order = np.lexsort((every.ids, -relative), axis=1)[:, :k]  # best first, ties by position
        return Ranking(np.take_along_axis(every.ids, order, 1), np.take_along_axis(relative, order, 1))
