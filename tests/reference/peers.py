"""Diffusions over pairs of items, number by number; every matrix is dense and held in full."""

from itertools import pairwise

import numpy as np


def product(*matrices):
    """The product of two or more matrices, sum by sum."""
    first, second, *others = matrices
    out = np.zeros((len(first), len(second[0])))
    for i in range(len(first)):
        for j in range(len(second[0])):
            out[i, j] = sum(float(first[i][k]) * float(second[k][j]) for k in range(len(second)))
    return product(out, *others) if others else out


def looped_by_loops(A):
    """a_ij, and 1 on the diagonal."""
    return np.array([[1.0 if i == j else float(A[i][j]) for j in range(len(A))] for i in range(len(A))])


def row_normalised_by_loops(A):
    """p_ij = a_ij / sum_k a_ik; a row of zeros stays."""
    out = []
    for row in A:
        total = sum(float(a) for a in row)
        out.append([float(a) / total if total > 0 else 0.0 for a in row])
    return np.array(out)


def largest_by_loops(A, K):
    """Each row with its K largest entries, of equal ones the first, and zero elsewhere."""
    out = np.zeros((len(A), len(A[0])))
    for i, row in enumerate(A):
        for j in sorted(range(len(row)), key=lambda j: (-row[j], j))[:K]:
            out[i, j] = row[j]
    return out


def self_diffusion_by_loops(W, steps):
    """W_0 = W, W_t = W_{t-1} D^-1 W + I; W_t D^-1 at the end."""
    n = len(W)
    P, W_t = row_normalised_by_loops(W), W
    for _ in range(steps):
        W_t = product(W_t, P) + np.eye(n)
    return np.array([[W_t[i][j] / sum(W[j]) for j in range(n)] for i in range(n)])


def constrained_by_loops(P, P_K, steps):
    """A_0 = P, A_t = P_K A_{t-1} P_K^T."""
    A = P
    for _ in range(steps):
        A = product(P_K, A, P_K.T)
    return A


def tensor_by_loops(Q, W, steps):
    """W_0 = W, W_t = Q W_{t-1} Q^T + I (Eq. 5)."""
    for _ in range(steps):
        W = product(Q, W, Q.T) + np.eye(len(Q))
    return W


def regularised_by_loops(S, Y, alpha, steps):
    """A_0 = Y, A_t = alpha S A_{t-1} S^T + (1 - alpha) Y."""
    A = Y
    for _ in range(steps):
        A = alpha * product(S, A, S.T) + (1 - alpha) * Y
    return A


def clamped_by_loops(P, query, steps):
    """f_i <- sum_j p_ij f_j, except f_query = 1; at first 0 elsewhere."""
    n = len(P)
    f = [float(i == query) for i in range(n)]
    for _ in range(steps):
        f = [1.0 if i == query else sum(P[i][j] * f[j] for j in range(n)) for i in range(n)]
    return f


def walked_by_loops(M, T, alpha):
    """alpha T M + (1 - alpha) I."""
    return alpha * product(T, M) + (1 - alpha) * np.eye(len(M))


def played_by_loops(M, T):
    """m_ij <- (M T)_ij m_ji / d_i, d_i the sum of the row, or 1 / n if that is more."""
    n, MT = len(M), product(M, T)
    out = np.zeros((n, n))
    for i in range(n):
        row = [MT[i, j] * M[j][i] for j in range(n)]
        out[i] = [value / max(sum(row), 1 / n) for value in row]
    return out


def dominant_by_loops(A, K, rounds=3000):
    """(n, n) whether i is j, or one is in the dominant set of the other's K largest.

    The set: shares above 1e-6 after `rounds` of x_a <- x_a sum_b B_ab x_b / x^T B x, B being A with a zero diagonal.
    """
    n = len(A)
    mask = np.eye(n, dtype=bool)
    for i in range(n):
        nearest = sorted((j for j in range(n) if A[i][j] > 0), key=lambda j: (-A[i][j], j))[:K]
        x = {j: 1 / len(nearest) for j in nearest}
        for _ in range(rounds):
            Bx = {a: sum(A[a][b] * x[b] for b in nearest if b != a) for a in nearest}
            value = sum(x[a] * Bx[a] for a in nearest)
            if value == 0:
                break
            x = {a: x[a] * Bx[a] / value for a in nearest}
        for j in nearest:
            if x[j] > 1e-6:
                mask[i, j] = mask[j, i] = True
    return mask


def settled_by_loops(states, window, least):
    """How many steps to take: the first t > least with s_t - s_{t-1} < 0.3, less one, or 15.

    states: M_0, M_1, ..., M_15. s_t: mean number of items that the first `window` of M_t and M_{t-1} share.
    """

    def first(row):
        return set(sorted(range(len(row)), key=lambda j: (-row[j], j))[:window])

    s = [0.0]
    for before, now in pairwise(states):
        shared = [len(first(a) & first(b)) for a, b in zip(before, now, strict=True)]
        s.append(sum(shared) / len(shared))
    for t in range(least + 1, 16):
        if s[t] - s[t - 1] < 0.3:
            return t - 1
    return 15
