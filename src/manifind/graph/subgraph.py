"""Parts of a graph: the nodes around a batch, and a sample to train on."""

import numpy as np

from manifind.arrays import Ints, Mask, Sparse


def breadth_first(S: Sparse, seeds: Ints, hops: int) -> tuple[Ints, Ints]:
    """All nodes within `hops` edges of the seeds, nearest first, and (hops + 1,) how many within 0, 1, ... hops.

    S: (N, N) CSR. seeds: distinct nodes; they keep their order. Within a hop, nodes rise.
    """
    seen: Mask = np.zeros(S.shape[0], dtype=np.bool_)
    seen[seeds] = True
    shells = [np.asarray(seeds, dtype=np.int64)]
    for _ in range(hops):
        fresh: Mask = np.zeros_like(seen)
        fresh[neighbours_of(S, shells[-1])] = True
        fresh &= ~seen
        seen |= fresh
        shells.append(np.flatnonzero(fresh))
    return np.concatenate(shells), np.cumsum([len(shell) for shell in shells])


def neighbours_of(S: Sparse, nodes: Ints) -> Ints:
    """The neighbours of `nodes`, one after the other, repeats included."""
    starts, lengths = S.indptr[nodes].astype(np.int64), np.diff(S.indptr)[nodes]
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    flat = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return np.asarray(S.indices[flat])


def rows_in_new_order(S: Sparse, nodes: Ints, n_rows: int) -> Sparse:
    """Rows of the first n_rows of `nodes`, with columns renumbered by their place in `nodes`.

    Every neighbour of those rows must be among `nodes`. Returns (n_rows, len(nodes)) CSR.
    """
    place = np.empty(S.shape[0], dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    block = S[nodes[:n_rows]]
    block.indices = place[block.indices].astype(block.indices.dtype)
    return type(S)((block.data, block.indices, block.indptr), shape=(n_rows, len(nodes)))


# Nodes for each of those that a part grows from: many corners of the graph, none of them tiny.
_PER_BEGINNING = 100


def sample_subgraph(A: Sparse, most: int, seed: int) -> Ints:
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
