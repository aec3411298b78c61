"""Anchors found by k-means, and the sparse codes of nodes over them."""

import numpy as np

from manifind.arrays import Doubles, Floats, Ints, Sparse, row_blocks
from manifind.graph.knn_graph import sparse_rows, tidy
from manifind.index.exact import nearest
from manifind.index.vector_index import CPU_ENGINE, Engine

_ROUNDS = 25


def kmeans_anchors(X: Floats, n_anchors: int, seed: int, engine: Engine = CPU_ENGINE) -> Floats:
    """Centres of k-means over the rows of X: U, (B, d) with B = min(n_anchors, N)."""
    return engine.kmeans(X, min(n_anchors, len(X)), _ROUNDS, seed)


_DOUBLES_PER_BLOCK = 1 << 22  # 32 MB of differences at a time
_MOST_ITERATIONS = 2000
_GAP = 1e-10  # certified distance to the smallest possible error, relative to |x|^2 + |u|^2


def anchor_codes(X: Floats, anchors: Floats, n_codes: int) -> Sparse:
    """Weights z_i on the c nearest anchors, min |x_i - U z_i|^2 with z_i >= 0 and 1^T z_i = 1 (Eq. 9).

    X: (N, d). anchors: U, (B, d). n_codes: c. Returns Z, (N, B) CSR, at most c non-zeros a row.
    """
    c = min(n_codes, len(anchors))
    ids = nearest(X, anchors, c, "euclidean").ids
    Z = np.empty(ids.shape, dtype=np.float64)
    for rows in row_blocks(len(X), max(1, _DOUBLES_PER_BLOCK // (c * X.shape[1]))):
        difference = anchors[ids[rows]].astype(np.float64) - X[rows, None].astype(np.float64)  # (b, c, d)
        # |x - U z|^2 = z^T G z with G the Gram matrix of the differences, because z sums to 1.
        Z[rows] = simplex_least_squares(difference @ difference.transpose(0, 2, 1))
    return tidy(sparse_rows(ids, Z.astype(np.float32), len(anchors)))


def simplex_least_squares(G: Doubles) -> Doubles:
    """argmin z^T G z over the simplex, for many small G at once, by accelerated projected gradient.

    G: (b, c, c) Gram matrices. Returns z, (b, c). A problem is done when the Frank-Wolfe gap certifies
    that no point of the simplex is better by more than a hair; it then leaves, so that its answer does
    not depend on the others. Momentum restarts where it points uphill.
    """
    b, c, _ = G.shape
    scale = np.trace(G, axis1=1, axis2=2)[:, None, None]
    G = G / np.where(scale > 0, scale, 1.0)
    step = 1 / np.maximum(np.linalg.eigvalsh(G)[:, -1:], np.finfo(np.float64).tiny)  # (b, 1)
    solution = np.full((b, c), 1 / c)
    open_: Ints = np.arange(b)
    z: Doubles = solution.copy()
    v: Doubles = z
    momentum: Doubles = np.ones((b, 1))
    for _ in range(_MOST_ITERATIONS):
        going = certified_gap(G, z) > _GAP
        solution[open_] = z
        if not going.any():
            break
        if not going.all():
            open_, G, step = open_[going], G[going], step[going]
            z, v, momentum = z[going], v[going], momentum[going]
        previous, z = z, project_to_simplex(v - step * _gradient(G, v))
        uphill = ((v - z) * (z - previous)).sum(axis=1, keepdims=True) > 0
        momentum = np.where(uphill, 1.0, momentum)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        v = z + np.where(uphill, 0.0, (momentum - 1) / following) * (z - previous)
        momentum = following
    return solution


def project_to_simplex(y: Doubles) -> Doubles:
    """The nearest point of the simplex {z >= 0, sum z = 1} to each row of y, (b, c)."""
    falling = -np.sort(-y, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, y.shape[1] + 1)
    last = np.count_nonzero(falling > excess, axis=1) - 1
    return np.maximum(y - np.take_along_axis(excess, last[:, None], 1), 0.0)


def certified_gap(G: Doubles, z: Doubles) -> Doubles:
    """(b,) an upper bound on how much z^T G z / 2 could still fall on the simplex."""
    g = _gradient(G, z)
    return np.asarray((g * z).sum(axis=1) - g.min(axis=1))


def _gradient(G: Doubles, z: Doubles) -> Doubles:
    return (G @ z[:, :, None])[:, :, 0]
