"""The local graph: which neighbours become edges, and with which weight."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy import sparse

from gradnet.arrays import Floats, Ints, Sparse
from gradnet.errors import GraphError, InputError
from gradnet.graph.neighbours import Neighbours
from gradnet.graph.similarity import neighbour_similarity
from gradnet.wording import count

Kind = Literal["mutual", "union"]
KINDS: tuple[str, ...] = get_args(Kind)


def mutual_affinity(ids: Ints, similarities: Floats) -> Sparse:
    """Keep an edge only where each end is among the other's k nearest (Eq. 8).

    ids: (N, k) neighbours of each node. similarities: (N, k), an edge needs a positive one.
    Returns A, (N, N) CSR: symmetric, zero diagonal.
    """
    G = _directed(ids, similarities)
    return _tidy(G.minimum(G.T))


def union_affinity(ids: Ints, similarities: Floats) -> Sparse:
    """Keep an edge where either end is among the other's k nearest: the alternative to mutual edges.

    Shapes as for `mutual_affinity`. No node with a positive similarity is left without an edge.
    """
    G = _directed(ids, similarities)
    return _tidy(G.maximum(G.T))


def local_graph(X: Floats, neighbours: Neighbours, kind: str, similarity: str) -> Sparse:
    """A, the affinity of the local graph over the rows of X, with at least one edge."""
    if kind not in KINDS:
        raise InputError(f"graph = {kind!r}; expected one of {', '.join(map(repr, KINDS))}")
    ids, distances = neighbours
    scales = distances.mean(axis=1)
    weights = neighbour_similarity(similarity, X, X, ids, distances, scales)
    A = (mutual_affinity if kind == "mutual" else union_affinity)(ids, weights)
    if A.nnz == 0:
        raise GraphError(
            f"the {kind} graph of {count(ids.shape[1], 'neighbour')} over {count(len(X), 'item')} "
            "has not a single edge",
            "set graph='union', raise n_neighbors, or use another similarity",
        )
    return A


def without_weak(A: Sparse, share: float) -> Sparse:
    """The edges that matter to one of their ends: of at least `share` of its strongest one. No node loses all."""
    strongest = A.max(axis=1).toarray().ravel()
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    kept = A.data >= share * np.minimum(strongest[rows], strongest[A.indices])
    starts = np.concatenate([[0], np.cumsum(kept)])[A.indptr]
    return sparse.csr_array((A.data[kept], A.indices[kept], starts), shape=A.shape)


def _directed(ids: Ints, similarities: Floats) -> Sparse:
    n, k = ids.shape
    start = np.arange(0, n * k + 1, k)
    return sparse.csr_array((similarities.astype(np.float32).ravel(), ids.ravel(), start), shape=(n, n))


def _tidy(A: Sparse) -> Sparse:
    A = A.tocsr()
    A.eliminate_zeros()
    A.sort_indices()
    return A
