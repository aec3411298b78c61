"""Rows made narrower: an orthogonal map that keeps inner products as well as its width allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from gradnet.arrays import Doubles, Floats, row_blocks
from gradnet.descriptors.preprocess import unit_rows

_ROWS_PER_BLOCK = 4096


@dataclass(frozen=True)
class Reduced:
    """features: (N, D'), unit rows. basis: (D, D') orthonormal columns, or None where nothing was left out.

    kept: the share of the features' energy (the sum of squares) that the basis holds.
    """

    features: Floats
    basis: Floats | None
    kept: float


def reduce_features(parts: list[Floats], n_components: int | None) -> Reduced:
    """Features of unit length, at most n_components wide, with cosines as near as can be to the parts' own.

    parts: (N, d_l) each, side by side they are H. The basis holds the leading right singular vectors
    of H with unit rows: no other basis of that width loses less of the inner products.
    """
    N, D = len(parts[0]), sum(part.shape[1] for part in parts)
    width = D if n_components is None else min(n_components, D, N)
    if width == D:
        features = np.concatenate(parts, axis=1)
        for rows in row_blocks(N, _ROWS_PER_BLOCK):
            features[rows] = unit_rows(features[rows])
        return Reduced(features, None, 1.0)
    basis, kept = leading_directions(parts, width)
    features = np.empty((N, width), dtype=np.float32)
    for rows in row_blocks(N, _ROWS_PER_BLOCK):
        features[rows] = unit_rows(_unit_block(parts, rows) @ basis)
    return Reduced(features, basis, kept)


def leading_directions(parts: list[Floats], width: int) -> tuple[Floats, float]:
    """(D, width) leading right singular vectors of H with unit rows, and the share of its energy they hold.

    parts: as above. width: at most N and D. Computed from whichever Gram matrix is the smaller.
    """
    N, D = len(parts[0]), sum(part.shape[1] for part in parts)
    if N < D:
        H = _unit_block(parts, slice(None)).astype(np.float64)
        energies, left, total = _leading_eigenpairs(H @ H.T, width)
        vectors: Doubles | Floats = H.T @ (left / np.sqrt(np.maximum(energies, np.finfo(np.float64).tiny)))
    else:
        gram = np.zeros((D, D))
        for rows in row_blocks(N, _ROWS_PER_BLOCK):
            block = _unit_block(parts, rows)
            gram += block.T @ block
        # Eigenvectors of the largest eigenvalues need no more digits than the features have: half the time.
        energies, vectors, total = _leading_eigenpairs(gram.astype(np.float32), width)
    return np.ascontiguousarray(vectors, dtype=np.float32), float(energies.sum() / total)


def _leading_eigenpairs(
    gram: Doubles | Floats, width: int
) -> tuple[Doubles | Floats, Doubles | Floats, float]:
    """The largest eigenvalues, falling, their eigenvectors as columns, and the sum of all eigenvalues."""
    n = len(gram)
    values, vectors = eigh(gram, subset_by_index=(n - width, n - 1))
    return values[::-1], vectors[:, ::-1], float(np.trace(gram))


def _unit_block(parts: list[Floats], rows: slice) -> Floats:
    return unit_rows(np.concatenate([part[rows] for part in parts], axis=1))
