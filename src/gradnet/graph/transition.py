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
