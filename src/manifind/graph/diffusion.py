"""Diffusion on the graph: random walk with restart, its limit, and truncated profiles of every node.

Yang et al. (2019) solve one small system for each node, and in each of them calls take longer than the
arithmetic. Here many systems stand down the diagonal of one matrix and are solved together, with the steps that
each would take alone.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dpotri

from manifind.arrays import Doubles, Floats, Ints, Mask, Sparse, row_blocks
from manifind.errors import InputError
from manifind.graph.knn_graph import sparse_rows, tidy
from manifind.index.exact import settle
from manifind.ranking import best_first

_MOST_ITERATIONS = 1000


def walk(S: Sparse, start: Doubles, alpha: float, steps: int) -> Doubles:
    """The state after `steps` of f <- alpha S f + (1 - alpha) f0 (Eq. 3).

    S: (N, N). start: f0, (N,) or (N, m), one column per query; with zero steps, the answer.
    """
    _check_alpha(alpha)
    f = np.asarray(start, dtype=np.float64)
    f0 = f
    for _ in range(steps):
        f = alpha * (S @ f) + (1 - alpha) * f0
    return f


def limit(S: Sparse, start: Doubles, alpha: float, tolerance: float = 1e-8, steps: int = _MOST_ITERATIONS) -> Doubles:
    """Where the walk converges, f* = (1 - alpha) (I - alpha S)^-1 f0, without an inverse (Eq. 4).

    Conjugate gradients on all columns at once: I - alpha S is symmetric and positive definite.
    S: (N, N), symmetric. start: f0, (N,) or (N, m). tolerance: of the residual, relative to f0;
    steps: at most so many, after which the answer is as near as it came.
    """
    _check_alpha(alpha)
    b = (1 - alpha) * np.asarray(start, dtype=np.float64)
    f = np.zeros_like(b)
    r, p = b.copy(), b.copy()
    rr = _column_sums(r * r)
    enough = tolerance**2 * rr
    for _ in range(steps):
        open_ = rr > enough  # a column that has converged stays as it is: no answer depends on the others
        if not open_.any():
            break
        Lp = p - alpha * (S @ p)
        step = np.where(open_, _ratio(rr, _column_sums(p * Lp)), 0.0)
        f += step * p
        r -= step * Lp
        rr, before = _column_sums(r * r), rr
        p = r + _ratio(rr, before) * p
    return f


def closed_form(S: Sparse, alpha: float) -> Doubles:
    """(N, N) the limits of all walks at once, one row for each node to begin at: small graphs only."""
    _check_alpha(alpha)
    walks = np.eye(S.shape[0]) - alpha * S.toarray().astype(np.float64)
    factor, failed = dpotrf(walks, lower=1, overwrite_a=1)
    if failed:
        raise ArithmeticError("I - alpha S is not positive definite: S is no transition matrix")
    inverse = dpotri(factor, lower=1, overwrite_c=1)[0]
    half = np.tril(inverse, -1)
    return np.asarray((1 - alpha) * (half + half.T + np.diag(np.diag(inverse))))


def _column_sums(x: Doubles) -> Doubles:
    """Sums over the first axis, each in the same order however many columns there are."""
    return np.asarray(np.ascontiguousarray(x.T).sum(axis=-1))


def _ratio(numerator: Doubles, denominator: Doubles) -> Doubles:
    """0 where the denominator is: a column or a system that has converged, or is zero, stays where it is."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise InputError(f"alpha = {alpha}; a walk with restart needs 0 < alpha < 1")


Positions = NDArray[np.int32]
"""Positions of nodes where there are many: half as large as `Ints`."""

_UNKNOWNS_PER_STACK = 1 << 13  # enough that calls cost little, few enough that a stack stays in the cache
_TABLE = 1 << 24  # 64 MB for each thread
_DOUBLES_PER_BLOCK = 1 << 18  # of columns over the whole graph: 2 MB
_FLOATS_PER_BLOCK = 1 << 22  # of distances: 16 MB for each thread
_SPANS_PER_THREAD = 8  # so that no thread waits long for the last one
_ROUNDING = 2e-6  # error allowed to squared distances in float32, relative to the squared lengths


def truncated_profiles(S: Sparse, near: Positions, alpha: float, iterations: int, tolerance: float) -> Sparse:
    """O, (N, N) CSR float32: row i holds at T_i the f of (I - alpha S)[T_i, T_i] f = e_i, and zeros elsewhere.

    S: (N, N), symmetric, of the whole graph: it is cut after it was normalised. near: (N, T), T_i in row i,
    rising, with i in it. By conjugate gradients from f = 0: at most `iterations`, until the residual is
    shorter than `tolerance`.
    """
    N, T = near.shape
    minus = sparse.csr_array((-alpha * S.data.astype(np.float64), S.indices, S.indptr), shape=S.shape)
    f = np.empty(near.shape, dtype=np.float32)

    def solve(span: slice) -> None:
        most = max(1, min(_UNKNOWNS_PER_STACK // T, _TABLE // N))
        table = np.full(most * N, -1, dtype=np.int32)
        for start in range(span.start, span.stop, most):
            rows = slice(start, min(start + most, span.stop))
            own = near[rows] == np.arange(rows.start, rows.stop)[:, None]
            f[rows] = _solve(_stack(minus, near[rows], table), own, iterations, tolerance)

    _in_threads(solve, row_blocks(N, -(-N // (_SPANS_PER_THREAD * _n_threads()))))
    return tidy(sparse_rows(near.copy(), f, N))


def whole_profiles(S: Sparse, alpha: float, iterations: int, tolerance: float) -> Sparse:
    """As `truncated_profiles` with every node in every T_i; with enough iterations, (I - alpha S)^-1."""
    N = S.shape[0]
    f = np.empty((N, N), dtype=np.float32)

    def solve(rows: slice) -> None:
        e = np.eye(N, rows.stop - rows.start, -rows.start)
        f[rows] = limit(S, e, alpha, tolerance, iterations).T / (1 - alpha)

    _in_threads(solve, row_blocks(N, max(1, _DOUBLES_PER_BLOCK // N)))
    return tidy(sparse_rows(np.broadcast_to(np.arange(N, dtype=np.int32), (N, N)), f, N))


def nearest_sets(X: Floats, T: int) -> Positions:
    """(N, T) the T rows nearest to each row of X, itself among them, rising; the first T of `nearest` as a set.

    Who is first does not matter here, only who is in. So float32 decides, and float64 only between the rows
    around the last one that float32 cannot tell apart.
    """
    near = np.empty((len(X), T), dtype=np.int32)
    squares = np.einsum("ij,ij->i", X, X)

    def find(rows: slice) -> None:
        near[rows] = _nearest_set(X[rows], squares[rows], X, squares, T)

    _in_threads(find, row_blocks(len(X), max(1, _FLOATS_PER_BLOCK // len(X))))
    return near


def _nearest_set(q: Floats, q_squares: Floats, X: Floats, squares: Floats, T: int) -> Ints:
    """(m, T) the T rows of X nearest to each row of q, (m, d), rising."""
    d = q @ X.T
    d *= -2
    d += squares  # less |q|^2, which is the same along a row
    last = np.partition(d, T - 1, axis=1)[:, T - 1 : T]
    doubt = _ROUNDING * (q_squares[:, None] + squares.max())
    within = d <= last + doubt
    ids = np.empty((len(q), T), dtype=np.int64)
    clear = np.count_nonzero(within, axis=1) == T
    ids[clear] = (np.flatnonzero(within[clear]) % len(X)).reshape(-1, T)
    for row in np.flatnonzero(~clear):  # all that are not doubtful, then the best of the doubtful ones
        found = np.flatnonzero(within[row])
        doubtful = d[row, found] >= last[row] - doubt[row]
        sure, unsure = found[~doubtful], found[doubtful][None]
        best = best_first(settle(q[row : row + 1], X, unsure, "euclidean"), unsure, T - len(sure)).ids[0]
        ids[row] = np.sort(np.concatenate([sure, best]))
    return ids


def _stack(M: Sparse, near: Positions, table: Positions) -> Sparse:
    """(b T, b T) CSR: M[T_i, T_i] for each row T_i of near, (b, T), down the diagonal.

    table: b N or more, of -1, and so again in the end: where column j of M stands in the i-th block, at i N + j.
    """
    b, T = near.shape
    first = np.arange(0, b * M.shape[0], M.shape[0], dtype=np.int32)
    places = near + first[:, None]
    table[places] = np.arange(b * T, dtype=np.int32).reshape(b, T)
    blocks = M[near.ravel()]
    columns = table.take(blocks.indices + np.repeat(first, np.diff(blocks.indptr[::T])), mode="clip")
    table[places] = -1
    inside = np.flatnonzero(columns >= 0)
    starts = np.searchsorted(inside, blocks.indptr).astype(np.int32)  # or SciPy would widen the columns too
    return sparse.csr_array((blocks.data[inside], columns[inside], starts), shape=(b * T, b * T))


def _solve(M: Sparse, own: Mask, iterations: int, tolerance: float) -> Doubles:
    """(b, T) the f of (I + M) f = e for every system of the stack M, where e, (b, T), is one at `own`."""
    r = own.astype(M.dtype)
    f, p, rr = np.zeros_like(r), r.copy(), _row_products(r, r)
    for _ in range(iterations):
        open_ = rr > tolerance**2  # a system that has converged stays as it is beside the others
        if not open_.any():
            break
        Lp = (M @ p.ravel()).reshape(p.shape)
        Lp += p
        step = open_ * _ratio(rr, _row_products(p, Lp))
        f += step[:, None] * p
        r -= step[:, None] * Lp
        rr, before = _row_products(r, r), rr
        p *= _ratio(rr, before)[:, None]
        p += r
    return f


def _row_products(x: Doubles, y: Doubles) -> Doubles:
    return np.asarray(np.einsum("bt,bt->b", x, y))


def _in_threads(work: Callable[[slice], None], spans: list[slice]) -> None:
    """`work` on each span; NumPy and SciPy let go of the interpreter while they compute."""
    with ThreadPoolExecutor(_n_threads()) as pool:
        list(pool.map(work, spans))


def _n_threads() -> int:
    """As many as this process has cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
