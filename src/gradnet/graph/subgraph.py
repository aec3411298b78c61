"""The part of the graph that a batch needs, found breadth-first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradnet.arrays import Ints, Mask, Sparse


class Reach(NamedTuple):
    """nodes: all within the hops, nearest first. counts: (hops + 1,) how many within 0, 1, ... hops."""

    nodes: Ints
    counts: Ints


def breadth_first(S: Sparse, seeds: Ints, hops: int) -> Reach:
    """All nodes within `hops` edges of the seeds, ordered by their distance in hops.

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
    return Reach(np.concatenate(shells), np.cumsum([len(shell) for shell in shells]))


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
