"""Efficient diffusion as Yang et al. (2019) describe it, step by step: one small system at a time.

What `manifind.baselines.diffusion.Efficient` is measured against. Nothing is settled, stacked or kept small here.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import faiss
import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from manifind.bench.results import usable_cores


class Prepared(NamedTuple):
    """L: (N, N) CSR. near: (N, T), each row itself first. profiles: (N, N) CSR, rows of length 1.

    seconds: for all of it. systems_seconds: for the systems alone.
    """

    L: sparse.csr_array
    near: np.ndarray
    profiles: sparse.csr_array
    seconds: float
    systems_seconds: float


def prepare(
    X: np.ndarray, n_neighbors: int, truncation: int, alpha: float, iterations: int, tolerance: float
) -> Prepared:
    """The profiles of the rows of X, (N, d), of length 1; n_neighbors does not count the row itself."""
    began = time.perf_counter()
    cosines, near = faiss.knn(X, X, truncation, metric=faiss.METRIC_INNER_PRODUCT)
    L = laplacian(cosines[:, : n_neighbors + 1], near[:, : n_neighbors + 1], alpha)
    systems_began = time.perf_counter()
    with ThreadPoolExecutor(usable_cores()) as pool:
        f = list(pool.map(lambda T: profile(L, T, iterations, tolerance), near))
    ended = time.perf_counter()
    starts = np.arange(0, near.size + 1, truncation)
    profiles = unit_rows(sparse.csr_array((np.concatenate(f), near.ravel(), starts), shape=L.shape))
    return Prepared(L, near, profiles, time.perf_counter() - began, ended - systems_began)


def laplacian(cosines: np.ndarray, near: np.ndarray, alpha: float) -> sparse.csr_array:
    """I - alpha D^-1/2 A D^-1/2 of the mutual graph of cubed cosines; the first of each row is the row itself."""
    N, k = near.shape
    weights = np.maximum(cosines[:, 1:], 0).astype(np.float64) ** 3
    starts = np.arange(0, N * (k - 1) + 1, k - 1)
    G = sparse.csr_array((weights.ravel(), near[:, 1:].ravel(), starts), shape=(N, N))
    A = G.minimum(G.T)
    scale = sparse.diags_array(1 / np.sqrt(A.sum(axis=1) + 1e-12))
    return sparse.csr_array(sparse.eye_array(N) - alpha * (scale @ A @ scale))


def profile(L: sparse.csr_array, T: np.ndarray, iterations: int, tolerance: float) -> np.ndarray:
    """(T,) f of L[T, T] f = e, where e is one at the first of T."""
    e = np.zeros(len(T))
    e[0] = 1
    return linalg.cg(L[T][:, T], e, rtol=tolerance, maxiter=iterations)[0]


def unit_rows(profiles: sparse.csr_array) -> sparse.csr_array:
    """The rows divided by their lengths."""
    return sparse.csr_array(sparse.diags_array(1 / linalg.norm(profiles, axis=1)) @ profiles)


def top(profiles: sparse.csr_array, rows: np.ndarray, k: int) -> np.ndarray:
    """(m, k) the nodes whose profiles have the largest cosine with those of some rows; -1 where it is not above 0."""
    cosines = (profiles[rows] @ profiles.T).toarray()
    ids = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return np.where(np.take_along_axis(cosines, ids, 1) > 0, ids, -1)
