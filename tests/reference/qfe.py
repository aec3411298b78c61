"""Query feature expansion, query by query and number by number."""

import math

from reference.affinity import similarity_by_loops
from reference.neighbours import nearest_by_loops


def weighted_by_loops(features, ids, similarities):
    """h_q = sum over i of s_qi h_i, scaled to length 1; all alike where no s_qi is positive (Eq. 23)."""
    if not any(s > 0 for s in similarities):
        similarities = [1.0] * len(similarities)
    h = [0.0] * len(features[0])
    for i, s in zip(ids, similarities, strict=True):
        for j in range(len(h)):
            h[j] += float(s) * float(features[i][j])
    return [value / length(h) for value in h]


def expanded_by_loops(query, database, features, k, kind, passes):
    """h_q after `passes` passes: neighbours among the descriptors first, then among the features."""
    space, point = database, query
    for _ in range(passes):
        ids, scores = nearest_by_loops([point], space, k, "euclidean")
        weights = similarity_by_loops(kind, [point], space, ids, -scores, None)[0]
        space, point = features, weighted_by_loops(features, ids[0], weights)
    return point


def length(row):
    return math.sqrt(sum(float(value) ** 2 for value in row))
