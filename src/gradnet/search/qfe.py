"""Query feature expansion: the features of a query that was never in the graph."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from gradnet.arrays import Floats, Ints
from gradnet.descriptors.preprocess import unit_rows
from gradnet.graph.neighbours import nearest
from gradnet.graph.similarity import neighbour_similarity


def weighted_features(features: Floats, ids: Ints, similarities: Floats) -> Floats:
    """h_q = sum over the neighbours of q of s_qi h_i, scaled to length 1 (Eq. 23).

    features: h, (n, D), unit rows. ids, similarities: (m, k) neighbours of the queries. Returns (m, D).
    A query without a positive similarity takes its neighbours alike.
    """
    m, k = ids.shape
    lonely = ~(similarities > 0).any(axis=1, keepdims=True)
    weights = np.where(lonely, np.float32(1), similarities)
    s = sparse.csr_array((weights.ravel(), ids.ravel(), np.arange(0, m * k + 1, k)), shape=(m, len(features)))
    return unit_rows(s @ features)


def expand_queries(
    queries: Floats, database: Floats, features: Floats, n_neighbors: int, similarity: str, passes: int
) -> Floats:
    """Features of unseen queries, (m, D), from the features of their neighbours in the database.

    queries: (m, d). database: (n, d), distinct. features: (n, D). The first pass finds neighbours among
    the descriptors; each further one finds them anew among the learned features ("QFE x 2").
    """
    space, points = database, queries
    k = min(n_neighbors, len(database))
    for _ in range(passes):
        found = nearest(points, space, k, "euclidean")
        s = neighbour_similarity(similarity, points, space, found.ids, -found.scores)
        space, points = features, weighted_features(features, found.ids, s)
    return points
