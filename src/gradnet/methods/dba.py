"""Database augmentation (Turcot and Lowe 2009): every item is moved towards its own neighbours beforehand."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from gradnet.arrays import Floats
from gradnet.config import NOT_NEGATIVE, Constraints
from gradnet.descriptors.preprocess import unit_rows
from gradnet.graph.neighbours import graph_neighbours, nearest
from gradnet.methods.expansion import cosine_powers, expanded
from gradnet.methods.plain import PlainMethod
from gradnet.ranking import Ranking


class DBA(PlainMethod):
    """Items ranked by the cosine of the query and x + the sum of x's n_neighbors nearest others times cos^alpha.

    n_query_neighbors: items of the augmented database by which a query is expanded in the same way; None
    leaves it as it is.
    """

    cost = "quadratic in time to prepare, an exact search for every item; linear in memory"
    constraints: ClassVar[Constraints] = {"alpha": NOT_NEGATIVE}

    def __init__(
        self,
        *,
        preprocess: str = "unit",
        n_neighbors: int = 10,
        alpha: float = 3.0,
        n_query_neighbors: int | None = None,
    ) -> None:
        self.preprocess = preprocess
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.n_query_neighbors = n_query_neighbors

    def fit(self, X: Any, queries: Any = None) -> Self:
        """Keep the database X, (n, d), augmented, and the queries, (m, d), if they are known."""
        super().fit(X, queries)
        x = unit_rows(self.descriptors_)
        self.augmented_ = x
        if len(x) > 1:
            found = graph_neighbours(x, min(self.n_neighbors, len(x) - 1)).ids
            self.augmented_ = expanded(x, x, found, cosine_powers(x, x, found, self.alpha))
        return self

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        q, x = unit_rows(prepared), self.augmented_
        if self.n_query_neighbors is not None:
            found = nearest(q, x, min(self.n_query_neighbors, len(x)), "cosine").ids
            q = expanded(q, x, found, cosine_powers(q, x, found, self.alpha))
        return nearest(q, x, k, "cosine")
