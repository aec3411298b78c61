"""Normalised forms of the affinity matrix."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from gradnet.arrays import Sparse


def transition(A: Sparse) -> Sparse:
    """The symmetric transition matrix S = D^-1/2 A D^-1/2, D the row sums of A (Eq. 2).

    A: (N, N) CSR, symmetric, non-negative. A node without an edge has a row of zeros in S.
    """
    degrees = A.sum(axis=1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        scale = np.where(degrees > 0, 1 / np.sqrt(degrees), 0.0)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    # One product per entry, in an order that does not depend on its side, keeps S exactly symmetric.
    values = A.data * (scale[rows] * scale[A.indices])
    return sparse.csr_array((values.astype(np.float32), A.indices, A.indptr), shape=A.shape)


def renormalised(A: Sparse) -> Sparse:
    """Kipf's D^-1/2 (A + I) D^-1/2 with D the row sums of A + I, in place of I + S (Eq. 7)."""
    loops = (A + sparse.eye_array(A.shape[0], dtype=np.float32, format="csr")).tocsr()
    loops.sort_indices()
    return transition(loops)


def with_loops(A: Sparse) -> Sparse:
    """A + I, (N, N) CSR float64: an item has the largest similarity, one, to itself."""
    loops = (A.astype(np.float64) + sparse.eye_array(A.shape[0], format="csr")).tocsr()
    loops.sort_indices()
    return loops


def row_normalised(A: Sparse) -> Sparse:
    """P = D^-1 A, D the row sums of A; a row of zeros stays one."""
    sums = A.sum(axis=1, dtype=np.float64)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
    values = A.data * np.repeat(scale, np.diff(A.indptr))
    return sparse.csr_array((values, A.indices, A.indptr), shape=A.shape)


def largest_per_row(A: Sparse, K: int | None) -> Sparse:
    """A without all but the K largest entries of each row, of equal ones the first; all stay if K is None."""
    if K is None:
        return A
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    order = np.lexsort((A.indices, -A.data, rows))  # by row, in it by falling value, in those by column
    place = np.arange(A.nnz) - A.indptr[rows]
    kept = np.sort(order[place < K])
    return sparse.csr_array((A.data[kept], (rows[kept], A.indices[kept])), shape=A.shape)
