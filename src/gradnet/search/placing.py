"""Items that come later: features and neighbours among what was fitted, which stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gradnet.arrays import Floats, Ints
from gradnet.descriptors.check import check_descriptors
from gradnet.search.learned import Learned


@dataclass(frozen=True)
class Placed:
    """Items beside the fitted ones.

    descriptors: (a, d), preprocessed. lengths: (a, 1) what they were divided by. features: (a, D), unit rows.
    neighbours, distances: (a, k) the nearest fitted items and how far they are: the edges of the item.
    """

    descriptors: Floats
    lengths: Floats
    features: Floats
    neighbours: Ints
    distances: Floats

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(
            self.descriptors[rows],
            self.lengths[rows],
            self.features[rows],
            self.neighbours[rows],
            self.distances[rows],
        )


def join(blocks: Sequence[Placed]) -> Placed:
    """All items of some blocks, at least one, in order."""
    return Placed(
        np.concatenate([block.descriptors for block in blocks]),
        np.concatenate([block.lengths for block in blocks]),
        np.concatenate([block.features for block in blocks]),
        np.concatenate([block.neighbours for block in blocks]),
        np.concatenate([block.distances for block in blocks]),
    )


def nobody(d: int, D: int, k: int) -> Placed:
    """No items at all."""
    descriptors, lengths, features, distances = (
        np.empty((0, width), dtype=np.float32) for width in (d, 1, D, k)
    )
    return Placed(descriptors, lengths, features, np.empty((0, k), dtype=np.int64), distances)


def place(learned: Learned, X: Any, k: int) -> Placed:
    """Any descriptors, (a, d), as items beside the fitted ones, each with k neighbours among those.

    Its features are what `Learned.transform` gives a query: they depend on what was fitted, and on no other item
    that came later, so that whoever goes again changes nothing for those who stay.
    """
    checked = check_descriptors(X, "X", learned.descriptors.shape[1])
    prepared, lengths = learned.preprocessor.with_lengths(checked)
    near = learned.node_neighbours(prepared, k)
    return Placed(prepared, lengths, learned.features_of(prepared), near.ids, near.distances)
