"""Do neighbours mean anything here? Two halves of the descriptors are asked, and their answers compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.fft import dct

from gradnet.arrays import Floats, Ints
from gradnet.descriptors.preprocess import unit_rows
from gradnet.graph.neighbours import are_others, nearest

_ASKED, _AMONG = 1000, 50_000  # items that are asked, and among how many their neighbours are looked for
_NEIGHBOURS = 10
_NOTHING, _PLENTY = 0.1, 0.2  # agreement that is no better than noise, and that every useful set exceeds


class LittleToLearnWarning(UserWarning):
    """The descriptors' neighbours are mostly noise: plain nearest neighbours will do about as well."""


class Trust(NamedTuple):
    """agreement: the share of neighbours on which both halves agree, beyond chance; None where it was not measured.

    share: 0 to 1, what that is worth.
    """

    agreement: float | None
    share: float

    def warning(self) -> str | None:
        """One sentence where there is little to win, None elsewhere."""
        if self.share == 1 or self.agreement is None:
            return None
        return (
            f"two halves of these descriptors agree on only {max(self.agreement, 0):.0%} of an item's nearest "
            f"neighbours, so there is little to learn from them: the features stay {1 - self.share:.0%} what the "
            "descriptors were, and plain nearest neighbours will do about as well"
        )


FULL_TRUST = Trust(None, 1.0)


def measure_trust(X: Floats, seed: int) -> Trust:
    """How far the neighbours in X, (N, d), can be trusted, from the descriptors alone.

    Noise in one half of the dimensions knows nothing of noise in the other: where what is near in one is not near
    in the other, no neighbour is to be believed but perhaps the first, and a graph of them spreads errors.
    """
    rng = np.random.default_rng(seed)
    N, d = X.shape
    k = min(_NEIGHBOURS, (N - 1) // 4)
    if d < 2 or k < 1:
        return FULL_TRUST
    if N > _AMONG:
        X, N = X[np.sort(rng.choice(N, _AMONG, replace=False))], _AMONG
    asked = np.sort(rng.choice(N, min(_ASKED, N), replace=False))
    first, second = (_others(half, asked, k) for half in _halves(X, rng))
    overlap = float((first[:, :, None] == second[:, None, :]).any(axis=2).mean())
    chance = k / (N - 1)
    agreement = (overlap - chance) / (1 - chance)
    return Trust(agreement, float(np.clip((agreement - _NOTHING) / (_PLENTY - _NOTHING), 0, 1)))


def _halves(X: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The rows in two halves of a random orthogonal basis, so that neither has all that was large: unit rows."""
    d = X.shape[1]
    turned = dct(X * rng.choice(np.array([-1, 1], dtype=np.float32), d), norm="ortho", axis=1)
    order = rng.permutation(d)
    first, second = (unit_rows(np.ascontiguousarray(turned[:, part])) for part in np.array_split(order, 2))
    return first, second


def _others(X: Floats, asked: Ints, k: int) -> Ints:
    """(m, k) the nearest others of some rows."""
    ids = nearest(X[asked], X, k + 1, "euclidean").ids
    return np.asarray(ids[are_others(ids, asked)].reshape(-1, k))
