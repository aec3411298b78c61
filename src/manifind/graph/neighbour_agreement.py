"""Neighbour agreement: whether two halves of the descriptors have the same neighbours, or neighbours are noise."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.fft import dct

from manifind.arrays import Floats, Ints, row_blocks
from manifind.graph.preprocess import unit_rows
from manifind.index.exact import are_others, best_of_parts
from manifind.index.vector_index import CPU_ENGINE, Engine
from manifind.ranking import Ranking

_SAMPLE = 1000  # items whose neighbours are compared, among all
_ROWS_PER_BLOCK = 16_384
_NEIGHBOURS = 10
_MOSTLY_KEPT = 0.9  # of the ten nearest: a ranking that hardly moves gains hardly anything
_NOTHING, _PLENTY = 0.1, 0.2  # agreement that is no better than noise, and that every useful set exceeds


class LittleToLearnWarning(UserWarning):
    """The descriptors' neighbours are mostly noise: plain nearest neighbours will do about as well."""


class NeighbourAgreement(NamedTuple):
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


def trust_in_words(info: Mapping[str, Any]) -> str:
    """What a fit has reported of its neighbours, as one sentence without a capital and a full stop."""
    agreement, share = info.get("neighbour_agreement"), info.get("trust")
    if not isinstance(agreement, int | float) or not isinstance(share, int | float):
        return "whether neighbours mean anything here was not measured"
    if warning := NeighbourAgreement(float(agreement), float(share)).warning():
        return warning
    agree = f"two halves of the descriptors agree on {agreement:.0%} of an item's nearest neighbours"
    kept = info.get("neighbours_kept")
    if isinstance(kept, int | float) and kept >= _MOSTLY_KEPT:
        return (
            f"{agree}, and {kept:.0%} of the ten nearest are the same before and after: these descriptors order the "
            "items as well as their manifold does, so learning is not expected to help much, and changes little"
        )
    return f"{agree}, so there is something to learn, and the learned features are used in full"


FULL_AGREEMENT = NeighbourAgreement(None, 1.0)


def measure_neighbour_agreement(X: Floats, seed: int, engine: Engine = CPU_ENGINE) -> NeighbourAgreement:
    """How far the neighbours in X, (N, d), can be trusted, from the descriptors alone.

    Noise in one half of the dimensions knows nothing of noise in the other: where what is near in one is not near
    in the other, no neighbour is to be believed but perhaps the first, and a graph of them spreads errors.
    """
    rng = np.random.default_rng(seed)
    N, d = X.shape
    k = min(_NEIGHBOURS, (N - 1) // 4)
    if d < 2 or k < 1:
        return FULL_AGREEMENT
    sample = np.sort(rng.choice(N, min(_SAMPLE, N), replace=False))
    # Halves of a random orthogonal basis, so that neither has all that was large.
    signs = rng.choice(np.array([-1, 1], dtype=np.float32), d)

    def half(columns: Ints, rows: Floats) -> Floats:
        turned = dct(rows * signs, norm="ortho", axis=1)
        return unit_rows(np.ascontiguousarray(turned[:, columns]))

    halves = [partial(half, columns) for columns in np.array_split(rng.permutation(d), 2)]
    first, second = (_others(X, sample, k, one, engine) for one in halves)
    overlap = float((first[:, :, None] == second[:, None, :]).any(axis=2).mean())
    chance = k / (N - 1)
    agreement = (overlap - chance) / (1 - chance)
    return NeighbourAgreement(agreement, float(np.clip((agreement - _NOTHING) / (_PLENTY - _NOTHING), 0, 1)))


def _others(X: Floats, sample: Ints, k: int, half: Callable[[Floats], Floats], engine: Engine) -> Ints:
    """(m, k) the nearest others of some rows in one half, a block of the database at a time."""
    queries = half(X[sample])

    def among(rows: slice) -> Ranking:
        found = engine.index(half(X[rows]), "euclidean").nearest(queries, min(k + 1, rows.stop - rows.start))
        return Ranking(found.ids + rows.start, found.scores)

    ids = best_of_parts(map(among, row_blocks(len(X), _ROWS_PER_BLOCK)), len(sample), k + 1).ids
    return np.asarray(ids[are_others(ids, sample)].reshape(-1, k))
