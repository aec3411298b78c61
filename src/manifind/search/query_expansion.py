"""Query feature expansion: the features of a query that was never in the graph."""

from dataclasses import dataclass

import numpy as np

from manifind.arrays import Floats, Ints, row_blocks
from manifind.graph.knn_graph import neighbour_similarity
from manifind.graph.preprocess import unit_rows
from manifind.index.exact import RowMatrix
from manifind.index.vector_index import VectorIndex

_FLOATS_PER_BLOCK = 1 << 22


@dataclass(frozen=True)
class QuerySettings:
    """How unseen queries are answered."""

    n_neighbors: int
    similarity: str
    passes: int
    index: str = "auto"


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


def expand_queries(queries: Floats, descriptors: VectorIndex, features: VectorIndex, settings: QuerySettings) -> Floats:
    """Features of unseen queries, (m, D), from the features of their neighbours in the database.

    queries: (m, d). descriptors: of the database, distinct, by Euclidean distance. features: the same items
    by cosine. The first pass finds neighbours among the descriptors; each further one finds them anew
    among the learned features ("QFE x 2").
    """
    space, points = descriptors, queries
    k = min(settings.n_neighbors, len(descriptors))
    for _ in range(settings.passes):
        found = space.roughly_nearest(points, k)
        ids, distances = found.ids, space.distances(points, found)
        s = neighbour_similarity(settings.similarity, points, space.database, ids, distances)
        space, points = features, weighted_features(features.database, ids, s)
    return points
