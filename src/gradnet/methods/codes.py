"""Nearest neighbours on the anchor codes Z alone, as the paper reports them beside its own scores."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gradnet.arrays import Floats
from gradnet.descriptors.duplicates import distinct_rows
from gradnet.descriptors.preprocess import unit_rows
from gradnet.graph.anchors import kmeans_anchors
from gradnet.graph.neighbours import nearest
from gradnet.graph.sparse_coding import anchor_codes
from gradnet.methods.plain import PlainMethod, draw_seed
from gradnet.ranking import Ranking


class Codes(PlainMethod):
    """Items ranked by the cosine of their sparse codes on k-means anchors.

    Answers unseen queries: they are coded on the same anchors.
    """

    def __init__(
        self,
        *,
        preprocess: str = "unit",
        n_anchors: int = 100,
        n_codes: int = 5,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.preprocess = preprocess
        self.n_anchors = n_anchors
        self.n_codes = n_codes
        self.random_state = random_state

    def fit(self, X: Any, queries: Any = None) -> Self:
        """Find the anchors of the database X, (n, d), and code it on them."""
        super().fit(X, queries)
        distinct = self.descriptors_[distinct_rows(self.descriptors_).first]
        self.anchors_ = kmeans_anchors(distinct, self.n_anchors, draw_seed(self.random_state))
        self.codes_ = self._code(self.descriptors_)
        return self

    def _code(self, prepared: Floats) -> Floats:
        return unit_rows(anchor_codes(prepared, self.anchors_, self.n_codes).toarray())

    def _rank(self, prepared: Floats, k: int) -> Ranking:
        return nearest(self._code(prepared), self.codes_, k, "cosine")
