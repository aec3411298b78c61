"""An ONNX file as a describer: one picture in, one vector or one feature map out."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from gradnet.arrays import Floats
from gradnet.descriptors.colours import DEVIATION, MEAN
from gradnet.errors import InputError, MissingExtraError
from gradnet.pictures.decoding import Pixels

_MEAN, _DEVIATION = (np.array(values, dtype=np.float32) for values in (MEAN, DEVIATION))


class OnnxModel:
    """(m, d) descriptors: what the model's first output says of each picture, asked for one at a time.

    The model takes (1, 3, h, w) float32, colours normalised as ImageNet's are; where it fixes h and w, pictures are
    brought to that size. A feature map, (1, d, h, w), is pooled by a generalised mean of this power.
    """

    def __init__(self, file: Path, power: float) -> None:
        self._power = power
        if not file.is_file():
            raise InputError(f"{file} does not exist", "give the path of an .onnx file")
        try:
            onnxruntime: Any = import_module("onnxruntime")
        except ImportError as error:
            raise MissingExtraError(
                f"{file} needs onnxruntime, which is not installed", 'pip install "gradnet[onnx]"'
            ) from error
        try:
            self._session: Any = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a dozen kinds
            raise InputError(
                f"{file} cannot be read as ONNX: {str(error)[:200]}", "export the model again"
            ) from error
        self._input = self._session.get_inputs()[0]
        shape = self._input.shape
        if len(shape) != 4 or (shape[1] not in (3, None) and not isinstance(shape[1], str)):
            raise InputError(
                f"{file} takes an input of shape {shape}; expected (1, 3, height, width)",
                "export it for pictures",
            )
        self._size = tuple(side for side in shape[2:] if isinstance(side, int))

    def __call__(self, pictures: Sequence[Pixels]) -> Floats:
        return np.stack([self._describe(picture) for picture in pictures])

    def _describe(self, picture: Pixels) -> Floats:
        if len(self._size) == 2:
            height, width = self._size
            picture = np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BICUBIC))
        x = (picture.astype(np.float32) / 255 - _MEAN) / _DEVIATION
        (out, *_) = self._session.run(None, {self._input.name: x.transpose(2, 0, 1)[None]})
        out = np.asarray(out, dtype=np.float32)[0]
        if out.ndim == 3:
            out = np.maximum(out, 1e-6) ** self._power
            out = out.mean(axis=(1, 2)) ** (1 / self._power)
        return np.asarray(out.ravel(), dtype=np.float32)
