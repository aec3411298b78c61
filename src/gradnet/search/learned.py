"""What fitting leaves behind for answering: everything a search needs, and nothing of the network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gradnet.arrays import Floats, Ints, Mask
from gradnet.descriptors.check import check_descriptors
from gradnet.descriptors.duplicates import RowLookup
from gradnet.descriptors.preprocess import Preprocessor
from gradnet.errors import InputError
from gradnet.graph.neighbours import nearest
from gradnet.ranking import Ranking
from gradnet.search.qfe import expand_queries

_BEHIND = 2.001  # a similarity in (0, 1] less this lies below every cosine, and rounding does not change it


@dataclass(frozen=True)
class QuerySettings:
    """How unseen queries are answered."""

    n_neighbors: int
    similarity: str
    passes: int


@dataclass(frozen=True)
class Learned:
    """The learned features of n items, and the descriptors through which queries find them.

    descriptors: (n, d), preprocessed. features: (n, D), unit rows. nodes: positions, rising, of the
    items that stand in the graph; of several equal items only the first does. inside: (n,) which items
    truncation kept; the others are ranked behind, by original similarity.
    """

    preprocessor: Preprocessor
    queries: QuerySettings
    descriptors: Floats
    features: Floats
    nodes: Ints
    inside: Mask

    def transform(self, Q: Any) -> Floats:
        """Features, (m, D), of any queries; a row equal to a fitted item gets that item's features."""
        return self._features_of(self._check(Q))

    def search(self, Q: Any, k: int) -> Ranking:
        """The k best items for every query."""
        prepared = self._check(Q)
        return self.rank(self._features_of(prepared), prepared, k)

    def rank(self, features: Floats, descriptors: Floats, k: int) -> Ranking:
        """The k best items by cosine of features; beyond the truncation, by similarity of descriptors.

        features: (m, D). descriptors: (m, d), preprocessed, of the same queries.
        """
        k = check_k(k, len(self.features))
        if self.inside.all():
            return nearest(features, self.features, k, "cosine")
        kept, rest = np.flatnonzero(self.inside), np.flatnonzero(~self.inside)
        head = nearest(features, self.features[kept], min(k, len(kept)), "cosine")
        head = Ranking(kept[head.ids], head.scores)
        if k <= len(kept):
            return head
        tail = nearest(descriptors, self.descriptors[rest], k - len(kept), "euclidean")
        return Ranking(
            np.concatenate([head.ids, rest[tail.ids]], axis=1),
            np.concatenate([head.scores, 1 / (1 - tail.scores) - np.float32(_BEHIND)], axis=1),
        )

    def _check(self, Q: Any) -> Floats:
        return self.preprocessor(check_descriptors(Q, "X", self.descriptors.shape[1]))

    def _features_of(self, prepared: Floats) -> Floats:
        node = self._lookup(prepared)
        known = node >= 0
        out = np.empty((len(prepared), self.features.shape[1]), dtype=np.float32)
        out[known] = self._node_features[node[known]]
        if not known.all():
            s = self.queries
            out[~known] = expand_queries(
                prepared[~known],
                self._node_descriptors,
                self._node_features,
                s.n_neighbors,
                s.similarity,
                s.passes,
            )
        return out

    @cached_property
    def _lookup(self) -> RowLookup:
        return RowLookup(self._node_descriptors)

    @cached_property
    def _node_descriptors(self) -> Floats:
        return self.descriptors if len(self.nodes) == len(self.descriptors) else self.descriptors[self.nodes]

    @cached_property
    def _node_features(self) -> Floats:
        return self.features if len(self.nodes) == len(self.features) else self.features[self.nodes]


def check_k(k: int, n_items: int) -> int:
    """k as a plain int, refused where it is no number of results."""
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or not 1 <= k <= n_items:
        raise InputError(f"k = {k!r}; expected a whole number from 1 to the number of items, {n_items}")
    return int(k)  # faiss takes no numpy integers
