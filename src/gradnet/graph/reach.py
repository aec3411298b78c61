"""Which nodes a query can reach at all: those of the connected components in which it begins."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from gradnet.arrays import Mask, Sparse


def one_hot_components(affinity: Sparse) -> Sparse:
    """(N, C) CSR with a one for the component of each node."""
    count, of_node = connected_components(affinity, directed=False)
    N = len(of_node)
    return sparse.csr_array((np.ones(N), of_node, np.arange(N + 1)), shape=(N, count))


def within_reach(start: Sparse, components: Sparse) -> Mask:
    """(b, N) whether a node lies in a component in which the query has a start.

    Eigenvectors leave rounding where there should be zeros: this tells them from small scores.
    start: (b, N) CSR, not negative. components: (N, C), of `one_hot_components`.
    """
    begins = (start @ components).toarray() > 0  # (b, C)
    return np.asarray(begins[:, components.indices])
