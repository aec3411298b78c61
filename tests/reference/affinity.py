"""Similarities and the local graph, edge by edge."""

import math

import numpy as np


def similarity_by_loops(kind, queries, database, ids, distances, scales=None):
    """s(q, x) for each query and each of its neighbours.

    "euclidean": 1 / (1 + d). "gaussian": exp(-d^2 / (2 (0.35 s)^2)), s the mean of both ends' mean
    neighbour distances, or the query's own. "sharp": with 0.2.
    "cosine": max(cos, 0), "cubed": its cube.
    """
    out = np.zeros(ids.shape)
    for i in range(len(ids)):
        own = sum(float(d) for d in distances[i]) / len(distances[i])
        for place, j in enumerate(ids[i]):
            d = float(distances[i, place])
            if kind == "euclidean":
                out[i, place] = 1 / (1 + d)
            elif kind in ("gaussian", "sharp"):
                s = own if scales is None else (own + float(scales[j])) / 2
                width = 0.35 if kind == "gaussian" else 0.2
                out[i, place] = math.exp(-(d**2) / (2 * (width * s) ** 2))
            else:
                q, x = [float(a) for a in queries[i]], [float(a) for a in database[j]]
                product = sum(a * b for a, b in zip(q, x, strict=True))
                lengths = math.sqrt(sum(a * a for a in q)) * math.sqrt(sum(b * b for b in x))
                out[i, place] = max(product / lengths, 0.0) ** (3 if kind == "cubed" else 1)
    return out


def mutual_by_loops(ids, similarities):
    """a_ij = s(x_i, x_j) if x_i in NN_k(x_j) and x_j in NN_k(x_i), else 0 (Eq. 8)."""
    n = len(ids)
    A = np.zeros((n, n))
    for i in range(n):
        for place, j in enumerate(ids[i]):
            if i in ids[j]:
                A[i, j] = similarities[i][place]
    return A


def union_by_loops(ids, similarities):
    """a_ij = a_ji = s(x_i, x_j) if x_i in NN_k(x_j) or x_j in NN_k(x_i), else 0."""
    n = len(ids)
    A = np.zeros((n, n))
    for i in range(n):
        for place, j in enumerate(ids[i]):
            A[i, j] = A[j, i] = similarities[i][place]
    return A
