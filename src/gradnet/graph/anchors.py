"""Anchors: a few points that stand for the whole distribution of descriptors."""

from __future__ import annotations

import numpy as np

from gradnet.arrays import Floats
from gradnet.graph.engines import current_engine

_ROUNDS = 25
_MOST_POINTS_PER_ANCHOR = 256  # more do not move the centres; keeps the cost linear in the anchors


def kmeans_anchors(X: Floats, n_anchors: int, seed: int) -> Floats:
    """Centres of k-means over the rows of X: U, (B, d) with B = min(n_anchors, N)."""
    if (engine := current_engine()) is not None:
        some = np.random.default_rng(seed).permutation(len(X))[: n_anchors * _MOST_POINTS_PER_ANCHOR]
        return engine.centres(X[np.sort(some)], min(n_anchors, len(X)), _ROUNDS, seed)
    import faiss

    kmeans = faiss.Kmeans(
        X.shape[1],
        min(n_anchors, len(X)),
        niter=_ROUNDS,
        seed=seed,
        min_points_per_centroid=1,  # otherwise faiss writes to the terminal about small sets
        max_points_per_centroid=_MOST_POINTS_PER_ANCHOR,
    )
    kmeans.train(X)
    return np.ascontiguousarray(kmeans.centroids, dtype=np.float32)
