"""A part of the graph, small enough to train on, in which nodes have their neighbours around them."""

from __future__ import annotations

import numpy as np

from gradnet.arrays import Ints, Mask, Sparse
from gradnet.graph.subgraph import neighbours_of

# Nodes for each of those that a part grows from: many corners of the graph, none of them tiny.
_PER_BEGINNING = 100


def draw_part(A: Sparse, most: int, seed: int) -> Ints:
    """Rising numbers of `most` nodes, of all where there are no more: some drawn at random, and all around them.

    A: (N, N) CSR. The part grows hop by hop from all its beginnings at once; of the last hop some are drawn. Where
    nothing more can be reached, it begins again elsewhere.
    """
    N = A.shape[0]
    if most >= N:
        return np.arange(N)
    rng = np.random.default_rng(seed)
    inside: Mask = np.zeros(N, dtype=np.bool_)
    missing, edge = most, np.empty(0, dtype=np.int64)
    while missing > 0:
        if not len(edge):
            edge = _some(rng, np.flatnonzero(~inside), -(-missing // _PER_BEGINNING))
        else:
            around: Mask = np.zeros(N, dtype=np.bool_)
            around[neighbours_of(A, edge)] = True
            edge = _some(rng, np.flatnonzero(around & ~inside), missing)
        inside[edge] = True
        missing -= len(edge)
    return np.flatnonzero(inside)


def _some(rng: np.random.Generator, nodes: Ints, most: int) -> Ints:
    return nodes if len(nodes) <= most else np.asarray(rng.choice(nodes, most, replace=False))


def induced(A: Sparse, part: Ints) -> Sparse:
    """Rows and columns of some nodes, given in rising order: the edges between them."""
    return A[part][:, part]
