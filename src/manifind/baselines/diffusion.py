"""Baselines that spread queries over the graph: manifold ranking and its kin, efficient diffusion, smoothing."""

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from manifind.arrays import Doubles, Floats, Ints, Mask, Sparse, row_blocks
from manifind.baselines.estimators import AllPairsEstimator, DiffusionEstimator, FeatureEstimator
from manifind.errors import InputError
from manifind.graph import knn_graph
from manifind.graph.diffusion import closed_form, limit, nearest_sets, truncated_profiles, walk, whole_profiles
from manifind.graph.preprocess import unit_rows
from manifind.index.exact import Neighbours, graph_neighbours
from manifind.settings import POSITIVE, SHARE, estimator, one_of, or_none, setting, whole

_DENSE_UP_TO = 3000  # nodes for which all walks are found at once, in 72 MB; beyond, those of the queries


@estimator
class ManifoldRanking(DiffusionEstimator):
    """Manifold ranking (Zhou et al. 2004): a random walk with restart from the query over the graph.

    Items ranked by where a walk from the query, which restarts with probability 1 - alpha, is found.

    steps: of the walk; None goes to its limit. n_query_neighbors: nodes next to an unseen query at which the
    walk begins; None for n_neighbors.
    """

    answers_unseen = True
    cost = "linear: a walk over the edges for each query; small graphs by an inverse"

    similarity: str = "euclidean"
    alpha: float = setting(0.99, SHARE)
    steps: int | None = setting(None, or_none(whole(1)))
    n_query_neighbors: int | None = setting(None, or_none(whole(1)))

    def _learn(self) -> None:
        self.transition_ = knn_graph.transition(self.affinity_)
        is_small = self.steps is None and self.transition_.shape[0] <= _DENSE_UP_TO
        self._all_walks = closed_form(self.transition_, self.alpha) if is_small else None

    def _scores(self, start: Sparse) -> Doubles:
        if self._all_walks is not None:
            return np.asarray(np.maximum(start @ self._all_walks, 0.0))  # rounding may leave less than nothing
        f0, S = start.toarray().T, self.transition_
        return (limit(S, f0, self.alpha) if self.steps is None else walk(S, f0, self.alpha, self.steps)).T


@estimator
class LCDP(DiffusionEstimator):
    """Locally constrained diffusion (Yang, Koknar-Tezel and Latecki 2009): both ends of a pair move at once.

    Items ranked by A_t, where A_0 = P and A_t = P_K A_{t-1} P_K^T; a pair is alike if its neighbours are.

    P: the affinity with each item's similarity of one to itself, rows divided by their sums. P_K: its n_kept
    largest per row, the item itself among them, divided again; None keeps all. steps: t.
    """

    cost = "linear: two passes over the edges for each query and step"

    n_kept: int | None = setting(10, or_none(whole(1)))
    steps: int = setting(5, whole(0))

    def _learn(self) -> None:
        self.transition_ = knn_graph.row_normalised(knn_graph.with_loops(self.affinity_))
        self.local_ = knn_graph.row_normalised(knn_graph.largest_per_row(self.transition_, self.n_kept))

    def _scores(self, start: Sparse) -> Doubles:
        return constrained_diffusion(self.transition_, self.local_, start.toarray(), self.steps)


def constrained_diffusion(P: Sparse, P_K: Sparse, start: Doubles, steps: int) -> Doubles:
    """(b, N) start P_K^t P (P_K^T)^t: the wanted rows of A_t, one after the other factor, never all of them."""
    rows = start.T
    for _ in range(steps):
        rows = P_K.T @ rows
    rows = P.T @ rows
    for _ in range(steps):
        rows = P_K @ rows
    return np.asarray(rows.T)


@estimator
class SelfDiffusion(DiffusionEstimator):
    """Self-diffusion (Wang and Tu 2012): the affinity walks on its own graph, and restarts in full at each step.

    Items ranked by W* = W_t D^-1, where W_0 = W and W_t = W_{t-1} P + I; P = D^-1 W.

    W: the affinity with each item's similarity of one to itself, as a kernel over all pairs has it; so a node
    without an edge keeps itself. steps: t.
    """

    cost = "linear: a pass over the edges for each query and step"

    steps: int = setting(20, whole(0))

    def _learn(self) -> None:
        self.loops_ = knn_graph.with_loops(self.affinity_)

    def _scores(self, start: Sparse) -> Doubles:
        return self_diffusion(self.loops_, start.toarray(), self.steps)


def self_diffusion(W: Sparse, start: Doubles, steps: int) -> Doubles:
    """(b, N) start W_t D^-1: each row of W_t = W_{t-1} P + I depends on the same row before, so no other is made."""
    P_T = knn_graph.row_normalised(W).T
    e = start.T
    w = W.T @ e
    for _ in range(steps):
        w = P_T @ w + e
    return np.asarray(w.T / W.sum(axis=1))


@estimator
class GraphTransduction(DiffusionEstimator):
    """Graph transduction (Bai et al. 2010): the query's label spreads over the graph while the query holds its own.

    Items ranked by f: the chance that a walk from the item has met the query within `steps` steps.

    f <- P f, and f = 1 at the query again after each step. The limit is 1 wherever the query is reached at
    all, so the number of steps matters.
    """

    cost = "linear: a pass over the edges for each query and step"

    steps: int = setting(100, whole(1))

    def _learn(self) -> None:
        self.transition_ = knn_graph.row_normalised(knn_graph.with_loops(self.affinity_))

    def _scores(self, start: Sparse) -> Doubles:
        return clamped_walk(self.transition_, start.toarray(), self.steps)


def clamped_walk(P: Sparse, start: Doubles, steps: int) -> Doubles:
    """(b, N) f after `steps` of f <- P f with f(q) = 1 kept, f_0 = e_q. P: (N, N) row sums of 1. start: (b, N)."""
    f = start.T
    held = np.nonzero(f > 0)
    ones = f[held]
    for _ in range(steps):
        f = P @ f
        f[held] = ones
    return f.T


_ROUNDING = 1e-12  # of the largest score: what stands below it is the rounding of an eigen-decomposition


@estimator
class RegularisedDiffusion(AllPairsEstimator):
    """Regularised diffusion (Bai et al. 2017): pairs of items that are neighbours at both ends become alike.

    Items ranked by the limit of A <- alpha S A S^T + (1 - alpha) Y, as exact as eigenvectors make it.

    S: the affinity with each item's similarity of one to itself, divided by the roots of both row sums. Without
    those ones both ends of a pair must move in every step, and on a chain two neighbours are never alike.
    target: Y, "identity" or "affinity", the latter with the ones too. max_items: a larger graph is refused.
    """

    alpha: float = setting(0.99, SHARE)
    target: str = setting("identity", one_of("identity", "affinity"))

    @property
    def _n_matrices(self) -> int:
        return 4 if self.target == "identity" else 5

    def _learn(self) -> None:
        S = knn_graph.renormalised(self.affinity_).toarray().astype(np.float64)
        Y = None if self.target == "identity" else knn_graph.with_loops(self.affinity_).toarray()
        self.diffused_ = regularised_limit(S, Y, self.alpha)


def regularised_limit(S: Doubles, Y: Doubles | None, alpha: float) -> Doubles:
    """(N, N) A* = U [(1 - alpha) / (1 - alpha lam_i lam_j) (U^T Y U)_ij] U^T, S = U diag(lam) U^T symmetric.

    Y: (N, N); None for the identity, where this is (1 - alpha) (I - alpha S^2)^-1.
    """
    lam, U = eigh(S)
    lam = np.clip(lam, -1.0, 1.0)  # beyond which only rounding takes them
    if Y is None:
        limit = (U * ((1 - alpha) / (1 - alpha * lam**2))) @ U.T
    else:
        limit = U @ ((1 - alpha) / (1 - alpha * np.outer(lam, lam)) * (U.T @ Y @ U)) @ U.T
    limit[limit <= _ROUNDING * limit.max()] = 0.0
    return np.asarray(limit)


_NUMBERS_KEPT = 1 << 24  # 128 MB of float64: the states of all steps for the queries taken at a time


@estimator
class TensorProduct(DiffusionEstimator):
    """Tensor product graph diffusion (Yang, Prasad and Latecki 2013): affinities of pairs, spread over pairs of edges.

    Items ranked by W_t, where W_t = Q W_{t-1} Q^T + I; the sum over all t is what pairs of walks share.

    W_0: affinities to the n_normalised nearest, an item's own of one among them, rows divided by their sums.
    Q: those entries of W_0 that the graph of n_neighbors has, and the diagonal, not divided again. What is
    left out makes its rows sum to less than one; so the sum converges, and n_normalised must be the larger.
    None is twice n_neighbors. The kernel over all pairs of the authors is the largest n_normalised there can be.
    steps: t.
    """

    cost = "linear: two passes over the edges for each query and step, all steps in memory at once"

    n_neighbors: int = 10
    graph: str = "union"
    n_normalised: int | None = setting(None, or_none(whole(2)))
    steps: int = setting(200, whole(0))

    def _affinity(self, nodes: Floats, neighbours: Neighbours) -> Sparse:
        """The affinity of the wide graph; `edges_` says where the graph of n_neighbors has an edge or a node."""
        self.edges_ = knn_graph.with_loops(super()._affinity(nodes, neighbours) > 0)
        width = 2 * self.n_neighbors if self.n_normalised is None else self.n_normalised
        if width <= self.n_neighbors:
            hint = "the diffusion converges because rows lose the neighbours beyond n_neighbors"
            raise InputError(f"n_normalised = {width}; expected more than n_neighbors = {self.n_neighbors}", hint)
        wide = graph_neighbours(nodes, min(width, len(nodes) - 1))
        return knn_graph.local_graph(nodes, wide, "union", self.similarity)

    def _learn(self) -> None:
        self.wide_ = knn_graph.row_normalised(knn_graph.with_loops(self.affinity_))
        self.local_ = (self.wide_ * self.edges_).tocsr()

    def _scores(self, start: Sparse) -> Doubles:
        b, N = start.shape
        scores = np.empty((b, N))
        for rows in row_blocks(b, max(1, _NUMBERS_KEPT // (N * (self.steps + 1)))):
            e = start[rows.start : rows.stop].toarray()
            scores[rows] = tensor_diffusion(self.local_, self.wide_, e, self.steps)
        return scores


def tensor_diffusion(Q: Sparse, W: Sparse, start: Doubles, steps: int) -> Doubles:
    """(b, N) start W_t, where W_0 = W and W_t = Q W_{t-1} Q^T + I (Eq. 5), without the other rows of W_t.

    W_t = Q^t W (Q^T)^t + sum over s < t of Q^s (Q^T)^s, by Horner's rule in Q^T. start: (b, N).
    """
    v = [start.T]
    for _ in range(steps):
        v.append(Q.T @ v[-1])
    rows = W.T @ v.pop()
    while v:
        rows = Q @ rows + v.pop()
    return np.asarray(rows.T)


_DENSE_EIGEN_UP_TO = 1000  # nodes for which all eigenvectors are found at once


@estimator
class FSR(DiffusionEstimator):
    """Fast spectral ranking (Iscen et al. 2018): diffusion as a filter on the leading eigenvectors of the graph.

    Items ranked by U h(Lambda) U^T y + (1 - alpha) (y - U U^T y), h(x) = (1 - alpha) / (1 - alpha x).

    U, Lambda: the `rank` leading eigenpairs of S. The second term, which the authors leave out, is what
    diffusion gives to the rest of y where the other eigenvalues are near zero; with all eigenvectors it vanishes and
    the answer is manifold ranking's.
    """

    answers_unseen = True
    cost = "n times rank in memory and for each query; the eigenvectors once"

    similarity: str = "euclidean"
    alpha: float = setting(0.99, SHARE)
    rank: int = setting(1000, whole(1))
    n_query_neighbors: int | None = setting(None, or_none(whole(1)))

    def _learn(self) -> None:
        values, self.vectors_ = leading_eigenpairs(knn_graph.transition(self.affinity_), self.rank)
        self._component = knn_graph.component_indicator(self.affinity_)
        # Of the filter, what the second term has already.
        self.filter_ = (1 - self.alpha) * (1 / (1 - self.alpha * values) - 1)

    def _scores(self, start: Sparse) -> Doubles:
        filtered = (start @ self.vectors_) * self.filter_  # (b, r)
        # A product for each query, not one for all, so that no answer depends on the other queries.
        spread = np.matmul(filtered[:, None], self.vectors_.T)[:, 0]
        scores = spread + (1 - self.alpha) * start.toarray()
        return np.where(knn_graph.reachable(start, self._component), scores, 0.0)


def leading_eigenpairs(S: Sparse, rank: int) -> tuple[Doubles, Doubles]:
    """The `rank` largest eigenvalues of a symmetric matrix, and their eigenvectors, (N, rank)."""
    N = S.shape[0]
    if N <= _DENSE_EIGEN_UP_TO or 2 * rank >= N:  # where most are wanted, Lanczos would find them one by one
        values, vectors = eigh(S.toarray().astype(np.float64))
        return values[-rank:], np.ascontiguousarray(vectors[:, -rank:])
    begin = np.random.default_rng(0).standard_normal(N)  # the same one always: the same answer always
    values, vectors = eigsh(S.astype(np.float64), k=rank, which="LA", v0=begin)
    return values, np.ascontiguousarray(vectors)


_ROWS_PER_BLOCK = 64  # of queries: a product with so many columns is fastest


@estimator
class Efficient(DiffusionEstimator):
    """Efficient diffusion (Yang et al. 2019): the diffusion from every item, computed before there is a query.

    Items ranked by the cosine between their diffusion profile and the query's.

    The profile of a node holds what a walk from it, with restart, leaves at the `truncation` nodes nearest to it,
    itself among them; None for all nodes. An unseen query has no profile; its scores are those of its
    n_query_neighbors nearest nodes, added up with their similarities. iterations, tolerance: where conjugate
    gradients stop. n_neighbors: Yang's 50 count the item itself, these do not.
    """

    answers_unseen = True
    cost = (
        "quadratic in time to prepare, an exact search and a small system for every item; in memory linear, "
        "`truncation` numbers for each"
    )

    n_neighbors: int = 49
    similarity: str = "cubed"
    alpha: float = setting(0.99, SHARE)
    truncation: int | None = setting(1000, or_none(whole(1)))
    iterations: int = setting(20, whole(1))
    tolerance: float = setting(1e-6, POSITIVE)
    n_query_neighbors: int | None = setting(10, or_none(whole(1)))

    def _learn(self) -> None:
        """profiles_: (N, N) CSR float32, rows of length 1. lengths_: (N,) those they had."""
        S, X = knn_graph.transition(self.affinity_), self.nodes_.descriptors
        stop = (self.alpha, self.iterations, self.tolerance)
        if self.truncation is None or self.truncation >= len(X):
            self.profiles_ = whole_profiles(S, *stop)
        else:
            self.profiles_ = truncated_profiles(S, nearest_sets(X, self.truncation), *stop)
        self.lengths_ = np.sqrt((self.profiles_ * self.profiles_).sum(axis=1, dtype=np.float64))
        self.profiles_.data /= np.repeat(self.lengths_, np.diff(self.profiles_.indptr))

    def _scores(self, start: Sparse) -> Doubles:
        known = _in_graph(start)
        scores = np.empty(start.shape)
        scores[known] = self._cosines(start[known].indices)
        scores[~known] = self._sums(start[~known])
        return scores

    def _cosines(self, nodes: Ints) -> Floats:
        """(b, N) the cosines of the profiles of some nodes with all."""
        cosines = np.empty((len(nodes), self.profiles_.shape[0]), dtype=np.float32)
        for rows in row_blocks(len(nodes), _ROWS_PER_BLOCK):
            cosines[rows] = (self.profiles_ @ self.profiles_[nodes[rows]].toarray().T).T
        return cosines

    def _sums(self, weights: Sparse) -> Floats:
        """(b, N) the profiles, with their lengths, added up with weights, (b, N) CSR."""
        weights = weights.astype(np.float32)  # or the profiles would be copied into float64 to meet them
        weights.data *= self.lengths_[weights.indices]
        return np.asarray((weights @ self.profiles_).toarray())


def _in_graph(start: Sparse) -> Mask:
    """(b,) which queries begin at one node, with a one: at their own, or where they cannot be told from it."""
    alone = np.diff(start.indptr) == 1
    alone[alone] = start.data[start.indptr[:-1][alone]] == 1.0
    return np.asarray(alone)


_COLUMNS_PER_BLOCK = 64  # dimensions at a time: the walk needs a few copies of them in double precision


@estimator
class Smooth(FeatureEstimator):
    """Descriptors smoothed along the graph: each becomes a mean over what a walk from it finds.

    Nearest neighbours by the cosine of (I - alpha S)^-1 X, rows scaled to length 1.
    """

    cost = "linear: a walk over the edges for each dimension"

    similarity: str = "euclidean"
    alpha: float = setting(0.9, SHARE)

    def _features(self) -> Floats:
        X = self.nodes_.descriptors
        S, smooth = knn_graph.transition(self.affinity_), np.empty_like(X)
        for columns in row_blocks(X.shape[1], _COLUMNS_PER_BLOCK):
            smooth[:, columns] = limit(S, X[:, columns].astype(np.float64), self.alpha)
        return unit_rows(smooth)
