"""What fitting leaves behind for answering: all that a search needs, and features of queries that were not fitted."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Floats, Ints, Mask, check_descriptors, row_blocks
from manifind.errors import InputError
from manifind.graph.duplicates import RowLookup
from manifind.graph.joining import JoiningShape, NodeScales, Scales, joining_weights
from manifind.graph.knn_graph import neighbour_similarity
from manifind.graph.preprocess import Preprocessor, unit_rows
from manifind.index.exact import Neighbours, RowMatrix, nearest_among
from manifind.index.ivf import InvertedFile
from manifind.index.vector_index import ExactIndex, VectorIndex, make_index, to_array
from manifind.ranking import Ranking
from manifind.search.cutoff import Cutoff

USUAL_K = 10  # results for which the recall of a compressed index is measured
_FLOATS_PER_BLOCK = 1 << 22
_BEHIND = 2.001  # a similarity in (0, 1] less this lies below every cosine, and rounding does not change it


@dataclass(frozen=True)
class QuerySettings:
    """How unseen queries are answered.

    similarity: weighs neighbours where a query does not join by edges of its own, and in a second pass. joining: the
    shape of these edges; None for none.
    """

    n_neighbors: int
    similarity: str
    passes: int
    index: str = "auto"
    joining: JoiningShape | None = None


def weighted_features(features: RowMatrix, ids: Ints, similarities: Floats) -> Floats:
    """h_q = sum over the neighbours of q of s_qi h_i, scaled to length 1 (Eq. 23).

    features: h, (n, D), unit rows. ids, similarities: (m, k) neighbours of the queries. Returns (m, D).
    A query without a positive similarity takes its neighbours alike.
    """
    (m, k), D = ids.shape, features.shape[1]
    lonely = similarities.max(axis=1) <= 0
    weights = np.where(lonely[:, None], np.float32(1), similarities) if lonely.any() else similarities
    total = np.empty((m, 1, D), dtype=np.float32)
    for rows in row_blocks(m, max(1, _FLOATS_PER_BLOCK // (k * D))):
        # A product for each query, not one for all, so that no answer depends on the other queries.
        np.matmul(weights[rows, None], features.take(ids[rows], axis=0), out=total[rows])
    return unit_rows(total[:, 0])


class Expanded(NamedTuple):
    """Features of unseen queries, (m, D), and how far each is from its nearest descriptor, (m,)."""

    features: Floats
    nearest: Floats


def expand_queries(
    queries: Floats,
    descriptors: VectorIndex,
    features: VectorIndex,
    settings: QuerySettings,
    scales: Scales | None = None,
) -> Expanded:
    """Features of unseen queries from the features of their neighbours in the database.

    queries: (m, d). descriptors: of the database, distinct, by Euclidean distance. features: the same items
    by cosine. scales: of the same items, where queries join as walks would. The first pass finds neighbours among the
    descriptors; each further one finds them anew among the learned features ("QFE x 2").
    """
    space, points, nearest = descriptors, queries, np.empty(0, dtype=np.float32)
    k = min(settings.n_neighbors, len(descriptors))
    for number in range(settings.passes):
        found = space.roughly_nearest(points, k)
        ids, distances = found.ids, space.distances(points, found)
        if number == 0:
            nearest = distances.min(axis=1)
        if number == 0 and scales is not None and settings.joining is not None:
            s = joining_weights(distances, scales.at(ids), settings.joining)
        else:
            s = neighbour_similarity(settings.similarity, points, space.database, ids, distances)
        space, points = features, weighted_features(features.database, ids, s)
    return Expanded(points, nearest)


def _none_is_ready(name: str) -> InvertedFile | None:
    return None


@dataclass(frozen=True)
class FeatureModel:
    """The learned features of n items, and the descriptors through which queries find them.

    descriptors: (n, d), preprocessed. features: (n, D), unit rows. nodes: positions, rising, of the
    items that stand in the graph; of several equal items only the first does. inside: (n,) which items
    truncation kept; the others are ranked behind, by original similarity.
    ready: an index of "descriptors" (of the nodes) or of "features" that was made before, or None.
    Where only compressed indexes are at hand, descriptors and features are what their codes say, and descriptors
    are those of the nodes alone.
    cutoff: how sure results are; None where that was not measured.
    scales: of the nodes, by which unseen queries join; None where they join by similarity alone.
    """

    preprocessor: Preprocessor
    queries: QuerySettings
    descriptors: RowMatrix
    features: RowMatrix
    nodes: Ints
    inside: Mask
    ready: Callable[[str], InvertedFile | None] = _none_is_ready
    cutoff: Cutoff | None = None
    scales: NodeScales | None = None

    def transform(self, Q: Any) -> Floats:
        """Features, (m, D), of any queries; a row equal to a fitted item gets that item's features."""
        return self.features_of(self.prepared(Q)).features

    def search(self, Q: Any, k: int) -> Ranking:
        """The k best items for every query, and how sure they are."""
        prepared = self.prepared(Q)
        features, nearest = self.features_of(prepared)
        found = self.rank(features, prepared, k)
        return found if self.cutoff is None else self.cutoff.applied(found, self.cutoff.familiarity(nearest))

    def rank(self, features: Floats, descriptors: Floats, k: int, allowed: Mask | None = None) -> Ranking:
        """The k best items by cosine of features; beyond the truncation, by similarity of descriptors.

        features: (m, D). descriptors: (m, d), preprocessed, of the same queries. allowed: (n,) items that may be
        found; None for all. Where fewer than k may be found, all of those.
        """
        k = check_k(k, len(self.features) if allowed is None else int(allowed.sum()))
        if self._is_whole:
            return self._items.nearest(features, k, allowed)
        within, beyond = (
            np.flatnonzero(part if allowed is None else part & allowed) for part in (self.inside, ~self.inside)
        )
        head = nearest_among(features, to_array(self.features), within, min(k, len(within)), "cosine")
        if k <= len(within):
            return head
        tail = nearest_among(descriptors, to_array(self.descriptors), beyond, k - len(within), "euclidean")
        return Ranking(
            np.concatenate([head.ids, tail.ids], axis=1),
            np.concatenate([head.scores, 1 / (1 - tail.scores) - np.float32(_BEHIND)], axis=1),
        )

    def prepared(self, Q: Any) -> Floats:
        """Any descriptors, checked and preprocessed as the items were."""
        return self.preprocessor(check_descriptors(Q, "X", self.descriptors.shape[1]))

    def features_of(self, prepared: Floats, *, apart: bool = False) -> Expanded:
        """Features of preprocessed descriptors; a row equal to a fitted item is at distance zero.

        apart: whether queries lie apart from all items, as words do. Their distances are no lengths of edges, so that
        they join by similarity alone.
        """
        if self._lookup is None or not self._lookup.may_hold_any(prepared):
            return self._expanded(prepared, apart)
        node = self._lookup(prepared)
        known = node >= 0
        out = np.empty((len(prepared), self.features.shape[1]), dtype=np.float32)
        nearest = np.zeros(len(prepared), dtype=np.float32)
        out[known] = self._node_features[node[known]]
        if not known.all():
            out[~known], nearest[~known] = self._expanded(prepared[~known], apart)
        return Expanded(out, nearest)

    def _expanded(self, prepared: Floats, apart: bool) -> Expanded:
        scales = None if apart else self.scales
        return expand_queries(prepared, self._node_space, self._node_features_space, self.queries, scales)

    def node_neighbours(self, prepared: Floats, k: int) -> Neighbours:
        """The k nodes nearest to preprocessed descriptors, by their positions among the items."""
        found = self._node_space.nearest(prepared, min(k, len(self.nodes)))
        return Neighbours(self.nodes[found.ids], -found.scores)

    def indexes(self) -> dict[str, InvertedFile | None]:
        """The indexes over the nodes' descriptors and over the features; None where the search is exact."""
        return {"descriptors": self._node_space.compressed, "features": self._items.compressed}

    @cached_property
    def _is_whole(self) -> bool:
        return bool(self.inside.all())

    @cached_property
    def _node_space(self) -> ExactIndex:
        ready, k = self.ready("descriptors"), self.queries.n_neighbors
        return make_index(self._node_descriptors, "euclidean", self.queries.index, k, ready)

    @cached_property
    def _items(self) -> ExactIndex:
        return make_index(self.features, "cosine", self.queries.index, USUAL_K, self.ready("features"))

    @cached_property
    def _node_features_space(self) -> ExactIndex:
        if len(self.nodes) == len(self.features):
            return self._items
        # Only a second pass searches among the nodes: nothing is built for it.
        return make_index(self._node_features, "cosine", "exact", self.queries.n_neighbors)

    @cached_property
    def _lookup(self) -> RowLookup | None:
        nodes = self._node_descriptors
        return RowLookup(nodes) if isinstance(nodes, np.ndarray) else None

    @cached_property
    def _node_descriptors(self) -> RowMatrix:
        return self.descriptors if len(self.nodes) == len(self.descriptors) else self.descriptors[self.nodes]

    @cached_property
    def _node_features(self) -> RowMatrix:
        return self.features if len(self.nodes) == len(self.features) else self.features[self.nodes]


def check_k(k: int, n_items: int) -> int:
    """How many results are wanted, as a plain int: at most as many as there are items; refused where k is no count."""
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise InputError(f"k = {k!r}; expected a whole number of at least 1")
    return min(int(k), n_items)  # faiss takes no numpy integers
