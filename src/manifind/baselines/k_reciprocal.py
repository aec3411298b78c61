"""Re-ranking with k-reciprocal encoding (Zhong et al. 2017): who is near to whom, and answered in kind."""

from typing import ClassVar

import numpy as np
from scipy import sparse

from manifind.arrays import Doubles, Floats, Ints, Sparse, row_blocks
from manifind.baselines.estimators import DiffusionEstimator
from manifind.errors import InputError
from manifind.graph.knn_graph import sparse_rows
from manifind.index.exact import Neighbours
from manifind.settings import estimator, number, setting, whole

_DOUBLES_PER_BLOCK = 1 << 22  # 32 MB of float64 at a time
_CLOSE = 0.01  # |q - x|^2 below this share of |q|^2 + |x|^2: its rounding would show in a score
_ROWS_PER_BLOCK = 64  # of queries, each of which meets some thousands of pairs


@estimator
class KReciprocal(DiffusionEstimator):
    """Re-ranking with k-reciprocal encoding (Zhong et al. 2017): who is near to whom, and answered in kind.

    Items ranked by (1 - distance_weight) d_J + distance_weight d, the lowest first; scores are its negative.

    d_J: the Jaccard distance between the neighbourhoods of item and query, in which only those stand that
    choose each other. d: the Euclidean distance, on unit rows at most 2. n_neighbors: Zhong's k1, without the
    item itself. n_averaged: his k2, over how many neighbourhoods one is averaged, its own among them.
    distance_weight: his lambda.
    """

    cost = "quadratic in time to prepare, an exact search for every item; linear in memory"

    graph: ClassVar[str] = "mutual"  # type: ignore[misc]  # neighbours that choose each other are its own graph
    similarity: ClassVar[str] = "euclidean"  # type: ignore[misc]
    n_neighbors: int = 20
    n_averaged: int = setting(6, whole(1))
    distance_weight: float = setting(0.3, number(lambda v: 0 <= v <= 1, "a number from 0 to 1"))

    def _affinity(self, nodes: Floats, neighbours: Neighbours) -> Sparse:
        """V, (N, N) CSR float64, rows of sum 1: how much of node i's neighbourhood node j is."""
        if self.n_averaged > self.n_neighbors + 1:
            problem = f"n_averaged = {self.n_averaged}; a node and its n_neighbors = {self.n_neighbors} are fewer"
            raise InputError(problem)
        chosen = np.column_stack([np.arange(len(nodes)), neighbours.ids])
        half = 1 + (self.n_neighbors + 1) // 2
        V = weighted(nodes, expanded(reciprocal(chosen), reciprocal(chosen[:, :half])))
        averaged = chosen[:, : self.n_averaged]
        return (sparse_rows(averaged, np.ones(averaged.shape), len(nodes)) / self.n_averaged @ V).tocsr()

    def _learn(self) -> None:
        self.transposed_ = self.affinity_.T.tocsr()

    def _scores(self, start: Sparse) -> Doubles:
        X, w = self.nodes_.descriptors, self.distance_weight
        scores = -w * distances(X[start.indices], X)
        for rows in row_blocks(len(scores), _ROWS_PER_BLOCK):
            scores[rows] -= (1 - w) * self._jaccard(start.indices[rows])
        return scores

    def _behind(self, scores: Floats, prepared: Floats, k: int) -> Floats:
        """The scores as they are: every item has one, and none is positive."""
        return scores

    def _jaccard(self, nodes: Ints) -> Doubles:
        """(b, N) 1 - sum_t min(V_it, V_jt) / sum_t max(V_it, V_jt) of some nodes i and all nodes j."""
        own = self.affinity_[nodes]
        others = self.transposed_[own.indices]  # for each t of an i the V_jt of all j that have it
        smaller = np.minimum(others.data, np.repeat(own.data, np.diff(others.indptr)))
        shape = (len(nodes), len(self.nodes_.descriptors))
        shared = sparse.csr_array((smaller, others.indices, others.indptr[own.indptr]), shape=shape)
        sums = np.minimum(shared.toarray(), 1.0)  # adds up the t of each pair
        return np.asarray(1 - sums / (2 - sums))  # two rows of sum 1: the larger ones have the rest of 2


def reciprocal(chosen: Ints) -> Sparse:
    """R, (N, N) CSR of 0 and 1: R_ij = 1 where i and j choose each other. chosen: (N, k), each itself first."""
    G = sparse_rows(chosen, np.ones(chosen.shape), len(chosen))
    return (G * G.T).tocsr()


def expanded(R: Sparse, half: Sparse) -> Sparse:
    """R*, (N, N) CSR: R_i, and half_j of each j in R_i of which at least two thirds are in R_i already.

    R, half: (N, N) CSR, of 0 and 1, symmetric, with a diagonal of ones.
    """
    common = (R * (R @ half)).tocsr()  # |R_i and half_j| for each j in R_i
    sizes = half.sum(axis=1)
    common.data = (3 * common.data >= 2 * sizes[common.indices]).astype(R.dtype)
    return (R + common @ half).tocsr()


def weighted(X: Floats, R: Sparse) -> Sparse:
    """V, (N, N) CSR float64: V_ij = exp(-|x_i - x_j|) where R has an entry, each row divided by its sum."""
    sources = np.repeat(np.arange(len(X)), np.diff(R.indptr))
    weights = np.exp(-np.sqrt(_squares(X, X, sources, R.indices)))
    weights /= np.bincount(sources, weights)[sources]
    return sparse.csr_array((weights, R.indices, R.indptr), shape=R.shape)


def distances(q: Floats, X: Floats) -> Doubles:
    """(m, N) |q_i - x_j| of all pairs: from products, but from differences where products cancel out."""
    lengths = [np.einsum("ij,ij->i", rows, rows, dtype=np.float64) for rows in (q, X)]
    sums = lengths[0][:, None] + lengths[1]
    d = np.empty(sums.shape)
    for part in row_blocks(len(X), max(1, _DOUBLES_PER_BLOCK // X.shape[1])):
        np.matmul(q.astype(np.float64), X[part].T.astype(np.float64), out=d[:, part])
    d *= -2
    d += sums
    close = np.nonzero(d < _CLOSE * sums)
    d[close] = _squares(q, X, *close)
    return np.sqrt(d, out=d)


def _squares(q: Floats, X: Floats, i: Ints, j: Ints) -> Doubles:
    """(p,) |q_i - x_j|^2 of some pairs, from differences in float64."""
    squares = np.empty(len(i))
    for part in row_blocks(len(i), max(1, _DOUBLES_PER_BLOCK // X.shape[1])):
        difference = q[i[part]].astype(np.float64) - X[j[part]]
        squares[part] = np.einsum("pd,pd->p", difference, difference)
    return squares
