"""The random walk with restart on the graph, and where it ends."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from gradnet.arrays import Doubles, Sparse
from gradnet.errors import InputError

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


def limit(
    S: Sparse, start: Doubles, alpha: float, tolerance: float = 1e-8, steps: int = _MOST_ITERATIONS
) -> Doubles:
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
    """0 where the denominator is: a column that has converged, or is zero, stays where it is."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise InputError(f"alpha = {alpha}; a walk with restart needs 0 < alpha < 1")
