"""Generic diffusion (Donoser and Bischof 2013): four beginnings, six transitions and three updates, 72 in all."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from scipy import linalg, sparse

from manifind.arrays import Doubles, Floats, Ints, Sparse
from manifind.baselines.estimators import AllPairsEstimator
from manifind.graph.knn_graph import largest_per_row, row_normalised, with_loops
from manifind.graph.knn_graph import transition as symmetric_transition
from manifind.ranking import top_k
from manifind.settings import SHARE, estimator, one_of, or_none, setting, whole

MOST_STEPS = 15
_GAIN = 0.3  # items by which the agreement of two rankings in a row must grow for another step
_HUGE = 1e100  # the affinity as a transition multiplies all numbers; past this they are scaled down together
_SETTLED, _MOST_ROUNDS = 1e-9, 1000  # of the replicator dynamics: the gain in x'Bx below which they end
_ABSENT = 1e-6  # a share below this counts as zero, which the replicator dynamics only approach


@estimator
class GenericDiffusion(AllPairsEstimator):
    """Generic diffusion (Donoser and Bischof 2013): four beginnings, six transitions and three updates, 72 in all.

    Items ranked by M after some steps of an update, M <- T M T^T by default, over all pairs of items.

    A is the affinity with each item's similarity of one to itself, P has its rows divided by their sums, and
    P_K keeps the n_kept largest of each row, the item itself among them, divided again; None keeps all.
    initial: M at first: "affinity" A, "identity", "transition" P, or "knn" P_K.
    transition: T: "transition" P; "pagerank" (1 - alpha) (I - alpha P)^-1; "ncut" D^-1/2 A D^-1/2; "knn" P_K;
        "dominant", A on the dominant neighbours, rows divided; or "affinity" A.
    update: "walk", alpha T M + (1 - alpha) I; "tensor", T M T^T; or "game", (M T) * M^T, rows divided.
    steps: None for as many as make two rankings in a row agree more, at most 15. window: how many of the first
        items are compared for that; None for twice n_kept. max_items: a larger graph is refused.
    """

    initial: str = setting("knn", one_of("affinity", "identity", "transition", "knn"))
    transition: str = setting("knn", one_of("transition", "pagerank", "ncut", "knn", "dominant", "affinity"))
    update: str = setting("tensor", one_of("walk", "tensor", "game"))
    n_kept: int | None = setting(10, or_none(whole(1)))
    alpha: float = setting(0.85, SHARE)
    steps: int | None = setting(None, or_none(whole(1)))
    window: int | None = setting(None, or_none(whole(1)))

    @property
    def _n_matrices(self) -> int:
        return 5 if self.transition == "pagerank" else 4

    def _learn(self) -> None:
        A = with_loops(self.affinity_)
        T = transition_matrix(self.transition, A, self.n_kept, self.alpha)
        states = diffusion(initial_matrix(self.initial, A, self.n_kept), T, self.update, self.alpha)
        if self.steps is not None:
            self.n_steps_, M = self.steps, next(islice(states, self.steps, None))
        else:
            window = self.window or 2 * (self.n_kept or self.n_neighbors)
            self.n_steps_, M = settled(states, min(window, A.shape[0]), 2 if self.update == "walk" else 1)
        self.diffused_ = by_row_maximum(M)


def initial_matrix(kind: str, A: Sparse, K: int | None) -> Doubles:
    """(N, N) M at first: A, I, P = D^-1 A, or P_K."""
    if kind == "identity":
        return np.eye(A.shape[0])
    M = A if kind == "affinity" else row_normalised(A) if kind == "transition" else _local(A, K)
    return np.asarray(M.toarray())


def transition_matrix(kind: str, A: Sparse, K: int | None, alpha: float) -> Any:
    """(N, N) T: CSR, or dense for "pagerank", where every pair that a path joins has a number."""
    if kind == "affinity":
        return A
    if kind == "ncut":
        return symmetric_transition(A)
    if kind == "knn":
        return _local(A, K)
    P = row_normalised((A * dominant_neighbours(A, K)).tocsr() if kind == "dominant" else A)
    if kind != "pagerank":
        return P
    inverse = linalg.inv(np.eye(A.shape[0]) - alpha * P.toarray(), overwrite_a=True)
    return (1 - alpha) * np.maximum(inverse, 0.0)  # none is negative, but for rounding


def _local(A: Sparse, K: int | None) -> Sparse:
    """P_K: the K largest of each row of A, divided by their sum."""
    return row_normalised(largest_per_row(A, K))


def dominant_neighbours(A: Sparse, K: int | None) -> Sparse:
    """(N, N) CSR of ones: pairs of which one is in the dominant set of the other's K nearest, and the diagonal.

    A: (N, N) with loops. The set is where x is not zero after x <- x * (B x) / (x^T B x), from equal shares
    of the K nearest; B: A without its diagonal.
    """
    nearest = largest_per_row(A, K)
    off = (A - sparse.diags_array(A.diagonal())).tocsr()
    lists = np.split(nearest.indices, nearest.indptr[1:-1])
    kept = [ids[_support(off[ids][:, ids].toarray())] for ids in lists]
    indptr = np.concatenate([[0], np.cumsum([len(ids) for ids in kept])])
    G = sparse.csr_array((np.ones(indptr[-1]), np.concatenate(kept), indptr), shape=A.shape)
    return G.maximum(G.T).maximum(sparse.eye_array(A.shape[0])).tocsr()


def _support(B: Doubles) -> Ints:
    """Places of the rows of B, (K, K), that the replicator dynamics leave a share; all where B is zero."""
    x = np.full(len(B), 1 / len(B))
    value = x @ B @ x
    for _ in range(_MOST_ROUNDS):
        if value <= 0:
            break
        x = x * (B @ x) / value
        value, before = x @ B @ x, value
        if value - before < _SETTLED:
            break
    return np.flatnonzero(x > _ABSENT)


def diffusion(M: Doubles, T: Any, update: str, alpha: float) -> Iterator[Doubles]:
    """M, and M after each further step, (N, N) each, for ever; only up to a factor common to all numbers."""
    unit = 1.0  # what a one of the formula is by that factor
    while True:
        yield M
        M = updated(update, M, T, alpha, unit)
        largest = M.max()
        if largest > _HUGE:
            M, unit = M / largest, unit / largest


def updated(kind: str, M: Doubles, T: Any, alpha: float, unit: float = 1.0) -> Doubles:
    """M one step later: alpha T M + (1 - alpha) I; T M T^T; or D^-1 [(M T) * M^T], D the row sums, at least 1 / N."""
    if kind == "tensor":
        return np.asarray((T @ (T @ M).T).T)
    if kind == "game":
        met = (T.T @ M.T).T * M.T
        return np.asarray(met / np.maximum(met.sum(axis=1, keepdims=True), 1 / len(met)))
    moved = alpha * (T @ M)
    moved[np.diag_indices_from(moved)] += (1 - alpha) * unit
    return np.asarray(moved)


def settled(states: Iterator[Doubles], window: int, least: int) -> tuple[int, Doubles]:
    """The number of steps after which rankings agree no more than before, and M there.

    s_t is the mean number of items that the first `window` of a row have in common after steps t and t - 1.
    The first t > least with s_t - s_{t-1} < 0.3 is one too many; without any, there are 15 steps.
    """
    M = next(states)
    first, agreement = _first(M, window), 0.0
    for step in range(1, MOST_STEPS + 1):
        following = next(states)
        now = _first(following, window)
        agreement, before = _in_common(now, first), agreement
        if step > least and agreement - before < _GAIN:
            return step - 1, M
        M, first = following, now
    return MOST_STEPS, M


def _first(M: Doubles, window: int) -> Ints:
    return np.asarray(top_k(by_row_maximum(M), window).ids)


def _in_common(a: Ints, b: Ints) -> float:
    """Mean over rows of how many numbers two lists, (N, R) each without repetition, share."""
    both = np.sort(np.concatenate([a, b], axis=1), axis=1)
    return float((both[:, 1:] == both[:, :-1]).sum() / len(a))


def by_row_maximum(M: Doubles) -> Floats:
    """Rows of M divided by their largest number, so that float32 holds them; rows of zeros stay."""
    largest = M.max(axis=1, keepdims=True)
    scaled = np.divide(M, largest, out=np.zeros_like(M), where=largest > 0)
    return np.asarray(scaled, dtype=np.float32)
