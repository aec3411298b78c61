"""Normalised affinities, entry by entry."""

import math

import numpy as np


def transition_by_loops(A):
    """S_ij = a_ij / sqrt(d_i d_j), d_i = sum_k a_ik; zero where a degree is zero (Eq. 2)."""
    n = len(A)
    degrees = [sum(float(A[i][k]) for k in range(n)) for i in range(n)]
    S = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if degrees[i] > 0 and degrees[j] > 0:
                S[i, j] = float(A[i][j]) / math.sqrt(degrees[i] * degrees[j])
    return S


def renormalised_by_loops(A):
    """(a_ij + [i = j]) / sqrt(d_i d_j), d_i = 1 + sum_k a_ik (Eq. 7)."""
    n = len(A)
    degrees = [1 + sum(float(A[i][k]) for k in range(n)) for i in range(n)]
    S = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            S[i, j] = (float(A[i][j]) + (i == j)) / math.sqrt(degrees[i] * degrees[j])
    return S
