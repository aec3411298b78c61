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
from gradnet.graph.inverted_file import Quality
from gradnet.graph.neighbours import nearest
from gradnet.graph.spaces import Space
from gradnet.ranking import Ranking
from gradnet.search.qfe import QuerySettings, expand_queries

_USUAL_K = 10  # results for which the recall of a compressed index is measured
_BEHIND = 2.001  # a similarity in (0, 1] less this lies below every cosine, and rounding does not change it


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
        if self._is_whole:
            return self._items.nearest(features, k)
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
        if not known.any():
            return self._expanded(prepared)
        out = np.empty((len(prepared), self.features.shape[1]), dtype=np.float32)
        out[known] = self._node_features[node[known]]
        if not known.all():
            out[~known] = self._expanded(prepared[~known])
        return out

    def _expanded(self, prepared: Floats) -> Floats:
        return expand_queries(prepared, self._node_space, self._node_features_space, self.queries)

    def index_quality(self) -> dict[str, Quality | None]:
        """Recall and bytes of the indexes over descriptors and features; None where the search is exact."""
        return {"descriptors": self._node_space.quality, "features": self._items.quality}

    @cached_property
    def _is_whole(self) -> bool:
        return bool(self.inside.all())

    @cached_property
    def _node_space(self) -> Space:
        return Space(self._node_descriptors, "euclidean", self.queries.index, self.queries.n_neighbors)

    @cached_property
    def _items(self) -> Space:
        return Space(self.features, "cosine", self.queries.index, _USUAL_K)

    @cached_property
    def _node_features_space(self) -> Space:
        if len(self.nodes) == len(self.features):
            return self._items
        # Only a second pass searches among the nodes: nothing is built for it.
        return Space(self._node_features, "cosine", "exact", self.queries.n_neighbors)

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
