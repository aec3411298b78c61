"""Anchor codes one item at a time, by a general solver."""

import numpy as np
from scipy.optimize import minimize

from reference.neighbours import nearest_by_loops


def project_by_bisection(y):
    """argmin |z - y|^2 over z >= 0, sum z = 1: z = max(y - t, 0) with the t at which the sum is 1."""
    low, high = min(y) - 1.0, max(y)
    for _ in range(200):
        t = (low + high) / 2
        if sum(max(value - t, 0.0) for value in y) > 1:
            low = t
        else:
            high = t
    return [max(value - (low + high) / 2, 0.0) for value in y]


def simplex_objective(x, U, z):
    """|x - U^T z|^2, term by term."""
    error = [float(x[c]) - sum(float(z[r]) * float(U[r][c]) for r in range(len(U))) for c in range(len(x))]
    return sum(e * e for e in error)


def code_by_solver(x, U):
    """argmin |x - U^T z|^2, z >= 0, 1^T z = 1 (Eq. 9), by sequential quadratic programming."""
    x, U = np.asarray(x, dtype=np.float64), np.asarray(U, dtype=np.float64)
    scale = ((U - x) ** 2).sum()
    solution = minimize(
        lambda z: ((x - z @ U) ** 2).sum() / scale,
        np.full(len(U), 1 / len(U)),
        jac=lambda z: -2 * U @ (x - z @ U) / scale,
        bounds=[(0, 1)] * len(U),
        constraints={"type": "eq", "fun": lambda z: z.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return solution.x


def codes_by_solver(X, anchors, c):
    """(N, B): for each item, the solver's code on its c nearest anchors and zero elsewhere (Eq. 9)."""
    Z = np.zeros((len(X), len(anchors)))
    ids, _ = nearest_by_loops(X, anchors, c, "euclidean")
    for i, x in enumerate(X):
        Z[i, ids[i]] = code_by_solver(x, anchors[ids[i]])
    return Z
