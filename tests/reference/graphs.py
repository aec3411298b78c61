"""Small random inputs that several tests share: graphs as SciPy matrices, descriptors in clusters."""

import numpy as np
from scipy import sparse


def random_affinity(n, mean_degree, seed):
    """(n, n) CSR float32: symmetric, zero diagonal, weights in (0.1, 1); some nodes may have no edge."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < mean_degree / max(n - 1, 1), 1)
    weights = np.where(upper, rng.uniform(0.1, 1.0, size=(n, n)), 0.0)
    return as_csr(weights + weights.T)


def as_csr(dense):
    """The CSR form of a dense matrix, float32, columns sorted, no stored zero."""
    A = sparse.csr_array(np.asarray(dense, dtype=np.float32))
    A.sort_indices()
    return A


def path_of_three():
    """The affinity 0 - 1 - 2 with weights 1/2 and 1/4: degrees 1/2, 3/4, 1/4.

    Its transition matrix has the entries sqrt(2/3) between 0 and 1, and 1/sqrt(3) between 1 and 2.
    """
    return as_csr([[0, 0.5, 0], [0.5, 0, 0.25], [0, 0.25, 0]])


def clusters(n, d, n_clusters, seed):
    """(n, d) float32: points around `n_clusters` centres, in random order."""
    rng = np.random.default_rng(seed)
    centres = 4 * rng.normal(size=(n_clusters, d))
    return (centres[rng.integers(0, n_clusters, size=n)] + rng.normal(size=(n, d))).astype(np.float32)
