"""Diffusion profiles, k-reciprocal encoding and contextual dissimilarity, pair by pair."""

import math

import numpy as np


def distance_by_loops(x, y):
    """|x - y|, summed exactly."""
    return math.sqrt(math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x, y, strict=True)))


def profile_by_loops(S, T, i, alpha, iterations, tolerance):
    """(N,) f of (I - alpha S)[T, T] f = e_i at T, 0 elsewhere: conjugate gradients as in a textbook, from 0."""
    f = dict.fromkeys(T, 0.0)
    r = {t: float(t == i) for t in T}
    p = dict(r)
    rr = 1.0
    for _ in range(iterations):
        if math.sqrt(rr) <= tolerance:
            break
        Lp = {t: p[t] - alpha * sum(float(S[t][u]) * p[u] for u in T) for t in T}
        step = rr / sum(p[t] * Lp[t] for t in T)
        for t in T:
            f[t] += step * p[t]
            r[t] -= step * Lp[t]
        rr, before = sum(value**2 for value in r.values()), rr
        p = {t: r[t] + rr / before * p[t] for t in T}
    return np.array([f.get(t, 0.0) for t in range(len(S))])


def cosine_by_loops(x, y):
    """x . y / |x| |y|."""
    product = math.fsum(float(a) * float(b) for a, b in zip(x, y, strict=True))
    return product / math.sqrt(math.fsum(float(a) ** 2 for a in x) * math.fsum(float(b) ** 2 for b in y))


def reciprocal_by_loops(order, k):
    """R(i, k) for every i: those that are with i among each other's k nearest. order: each itself first."""
    near = [set(row[: k + 1]) for row in order]
    return [{j for j in near[i] if i in near[j]} for i in range(len(order))]


def k_reciprocal_by_loops(X, k1, k2, weight):
    """(N, N) (1 - weight) d_J + weight d (Zhong et al. 2017); all rows of X differ."""
    N = len(X)
    d = [[distance_by_loops(x, y) for y in X] for x in X]
    order = [sorted(range(N), key=lambda j, i=i: (j != i, d[i][j], j)) for i in range(N)]
    R, half = reciprocal_by_loops(order, k1), reciprocal_by_loops(order, (k1 + 1) // 2)
    V = np.zeros((N, N))
    for i in range(N):
        neighbourhood = set(R[i])
        for j in R[i]:
            if 3 * len(half[j] & R[i]) >= 2 * len(half[j]):
                neighbourhood |= half[j]
        total = sum(math.exp(-d[i][j]) for j in neighbourhood)
        for j in neighbourhood:
            V[i, j] = math.exp(-d[i][j]) / total
    V = np.array([[sum(V[t, j] for t in order[i][:k2]) / k2 for j in range(N)] for i in range(N)])
    mixed = np.empty((N, N))
    for i in range(N):
        for j in range(N):
            smaller = sum(min(V[i, t], V[j, t]) for t in range(N))
            larger = sum(max(V[i, t], V[j, t]) for t in range(N))
            mixed[i, j] = (1 - weight) * (1 - smaller / larger) + weight * d[i][j]
    return mixed


def cdm_factors_by_loops(X, k, alpha, iterations):
    """(N,) delta after so many updates by (r / r_i)^(alpha / 2), every pair looked at (Jegou et al. 2007)."""
    N = len(X)
    delta = [1.0] * N
    for _ in range(iterations):
        r = []
        for i in range(N):
            others = (distance_by_loops(X[i], X[j]) * delta[i] * delta[j] for j in range(N) if j != i)
            r.append(sum(sorted(others)[:k]) / k)
        mean = math.exp(sum(math.log(value) for value in r) / N)
        delta = [delta[i] * (mean / r[i]) ** (alpha / 2) for i in range(N)]
    return np.array(delta)
