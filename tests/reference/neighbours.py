"""Nearest neighbours by looking at every pair."""

import math

import numpy as np


def score(query, item, metric):
    """-|q - x| for "euclidean", q . x for "cosine": summed exactly, rounded once to float32."""
    if metric == "cosine":
        return np.float32(math.fsum(float(a) * float(b) for a, b in zip(query, item, strict=True)))
    return np.float32(-math.sqrt(math.fsum((float(a) - float(b)) ** 2 for a, b in zip(query, item, strict=True))))


def nearest_by_loops(queries, database, k, metric):
    """(ids, scores) of the k best for each query: by falling score, then by rising position."""
    ids, scores = [], []
    for query in queries:
        all_scores = [score(query, item, metric) for item in database]
        order = sorted(range(len(database)), key=lambda position: (-all_scores[position], position))[:k]
        ids.append(order)
        scores.append([all_scores[position] for position in order])
    return np.array(ids), np.array(scores, dtype=np.float32)


def graph_neighbours_by_loops(X, k):
    """(ids, distances) of the k nearest others of each row: the row itself never takes part."""
    ids, distances = [], []
    for i, x in enumerate(X):
        others = sorted((-score(x, X[j], "euclidean"), j) for j in range(len(X)) if j != i)[:k]
        ids.append([j for _, j in others])
        distances.append([distance for distance, _ in others])
    return np.array(ids), np.array(distances, dtype=np.float32)
