"""The handwritten digits that come with scikit-learn: 1,797 scans of 8 x 8, nothing to download."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from gradnet.arrays import Floats, Ints


class Digits(NamedTuple):
    """The scans, their pixels as descriptors, and the digits they show.

    images: (1797, 8, 8) uint8, 0 paper to 16 ink. descriptors: (1797, 64). labels: (1797,) 0 to 9.
    """

    images: NDArray[np.uint8]
    descriptors: Floats
    labels: Ints


def load_digits() -> Digits:
    """The images, their pixels as descriptors, and which digit each shows."""
    bundle = datasets.load_digits()
    return Digits(
        bundle.images.astype(np.uint8),
        np.ascontiguousarray(bundle.data, dtype=np.float32),
        bundle.target.astype(np.int64),
    )
