"""Pictures to descriptors by a convolutional network and a generalised mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from gradnet.arrays import Floats
from gradnet.nn.efficientnet_lite import EfficientNetLite, generalised_mean

_MIDDLE, _SPREAD = 127.0, 128.0  # what EfficientNet-Lite was trained with, unlike the larger EfficientNets
_SMALLEST = 32  # pixels of a side: the last feature map has one value


class EfficientNetFeatures:
    """(m, 1280) descriptors of unit length, one for each picture.

    weights: a file, of which nothing but tensors is read. power: of the mean. scales: the picture is described at
    each of these parts of its size, and the descriptors are added. least: pixels to which the longer side of a
    smaller picture is enlarged first.
    """

    def __init__(self, weights: Path, power: float, scales: Sequence[float], least: int) -> None:
        self._network = EfficientNetLite(torch.load(weights, weights_only=True, map_location="cpu"))
        self._power, self._scales, self._least = power, tuple(scales), least

    def __call__(self, pictures: Sequence[NDArray[np.uint8]]) -> Floats:
        """pictures: (h, w, 3) RGB each; those of one size go through the network together."""
        by_size: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for row, picture in enumerate(pictures):
            by_size[picture.shape].append(row)
        out = np.empty((len(pictures), 1280), dtype=np.float32)
        for rows in by_size.values():
            out[rows] = self._described(np.stack([pictures[row] for row in rows])).numpy()
        return out

    @torch.inference_mode()
    def _described(self, pictures: NDArray[np.uint8]) -> Tensor:
        x = torch.from_numpy(pictures).permute(0, 3, 1, 2).float()  # (m, 3, h, w)
        x = x.sub_(_MIDDLE).div_(_SPREAD).contiguous(memory_format=torch.channels_last)
        enlarged = max(1.0, self._least / max(x.shape[-2:]))
        parts = [
            F.normalize(generalised_mean(self._network(_scaled(x, scale * enlarged)), self._power))
            for scale in self._scales
        ]
        return F.normalize(torch.stack(parts).sum(dim=0))


def _scaled(x: Tensor, scale: float) -> Tensor:
    sides = [max(round(side * scale), _SMALLEST) for side in x.shape[-2:]]
    if sides == list(x.shape[-2:]):
        return x
    return F.interpolate(x, size=sides, mode="bilinear", antialias=True)
