"""ONNX files as extractors: size, colours and layout from what the file says of itself, and pooling that is said.

What a file wants is taken from options behind its name (`model.onnx?pool=mean&size=384`), from a JSON file beside it
(`model.json`, `model.onnx.json`, or the `preprocessor_config.json` of an export), and from the metadata in the file, in
this order; ImageNet's colours are taken only where nothing is said.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from PIL import Image

from manifind.arrays import Floats
from manifind.errors import InputError, needing
from manifind.files import sha256_of
from manifind.images.decode import Pixels
from manifind.images.extractors import Extractor, refuse_changed

_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's colours
_POWER = 3.0  # of the generalised mean over a feature map
_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}
_PREFERRED = ("image_embeds", "pooler_output")  # outputs that are one vector for each picture
_MOST_JSON, _MOST_SIDE = 1 << 20, 4_096
OPTIONS = ("size", "mean", "std", "scale", "fit", "colours", "pool", "output")
"""What can be said of a model."""


@dataclass(frozen=True)
class Settings:
    """What a model wants to see, and what is taken from its answer.

    size: (height, width), or None for pictures as they are. mean, std: of colours from 0 to 1. scale: what bytes are
    multiplied by first. fit: "stretch", or "crop" for the middle of a picture whose shorter side fits. colours: "rgb"
    or "bgr". pool: "cls", "mean" or "gem"; None where the output is a vector. output: its name.
    """

    size: tuple[int, int] | None
    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: float
    fit: str
    colours: str
    pool: str | None
    output: str


def onnx_extractor(address: str, longest: int, expected: str | None) -> Extractor:
    """The extractor of a file, with options behind a question mark. expected: the digest that the file must have."""
    path, _, options = address.partition("?")
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{file} does not exist", "give the path of an .onnx file")
    digest = sha256_of(file)
    refuse_changed(digest, expected, str(file))
    with needing("onnx", f"{file} needs onnxruntime, which is not installed"):
        onnxruntime = import_module("onnxruntime")
    try:
        session: Any = onnxruntime.InferenceSession(str(file), providers=_providers(onnxruntime))
    except Exception as error:  # onnxruntime has a dozen kinds
        raise InputError(f"{file} cannot be read as ONNX: {str(error)[:200]}", "export the model again") from error
    model = _OnnxModel(file, session, _said(file, session, options))
    seen = max(longest, 2 * max(model.settings.size or (0,)))
    identity = {"describer": "onnx", "weights": digest, "longest": seen, **_differing(model.settings)}
    return Extractor(identity, seen, model.describe, (address,), notes=(model.note,))


def _providers(onnxruntime: Any) -> list[str]:
    known = onnxruntime.get_available_providers()
    return [name for name in ("CUDAExecutionProvider", "CPUExecutionProvider") if name in known]


def _differing(settings: Settings) -> dict[str, Any]:
    """What the identity says beside the weights: nothing where all is as former versions had it."""
    usual = replace(settings, mean=_MEAN, std=_DEVIATION, scale=1 / 255, fit="stretch", colours="rgb", pool=None)
    found = {name: value for name, value in vars(settings).items() if value != getattr(usual, name)}
    if found.get("pool") == "gem":
        del found["pool"]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


class _OnnxModel:
    """A session with what is known of its input and its output."""

    def __init__(self, file: Path, session: Any, said: Mapping[str, Any]) -> None:
        self._file, self._session = file, session
        entry = session.get_inputs()[0]
        self._input, shape = entry.name, list(entry.shape)
        if entry.type not in _TYPES or len(shape) != 4 or len(session.get_inputs()) != 1:
            raise self._refusal(f"takes {entry.type} of shape {shape}")
        self._type, self._is_last = _TYPES[entry.type], shape[3] == 3 and shape[1] != 3
        channels, sides = (shape[3], shape[1:3]) if self._is_last else (shape[1], shape[2:])
        if isinstance(channels, int) and channels != 3:
            raise self._refusal(f"takes {entry.type} of shape {shape}")
        if isinstance(shape[0], int) and shape[0] > 1:
            raise InputError(
                f"{file} takes {shape[0]} pictures at a time, no more and no fewer", "export it for any number"
            )
        self._takes_many = not isinstance(shape[0], int)
        fixed = tuple(sides) if all(isinstance(side, int) for side in sides) else None
        self.settings = _settings(file, said, fixed, self._type is np.uint8, session.get_outputs())
        answer = self._probe()
        self.settings = replace(self.settings, pool=_pooling(answer, self.settings.pool, file))
        self.note = _note(file, self.settings, answer)

    def _refusal(self, found: str) -> InputError:
        expected = "expected one input (1, 3, height, width), or (1, height, width, 3), of float32, float16 or uint8"
        return InputError(f"{self._file} {found}; {expected}", "export it for pictures")

    def describe(self, pictures: Sequence[Pixels]) -> Floats:
        """(m, d); pictures of one size go through the model together where it allows that."""
        inputs = [self._prepared(picture) for picture in pictures]
        by_shape: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for row, one in enumerate(inputs):
            by_shape[one.shape].append(row)
        out: dict[int, Floats] = {}
        for rows in by_shape.values():
            groups = [rows] if self._takes_many else [[row] for row in rows]
            for group in groups:
                out |= dict(zip(group, self._run(np.stack([inputs[row] for row in group])), strict=True))
        return np.stack([out[row] for row in range(len(pictures))])

    def _prepared(self, picture: Pixels) -> np.ndarray[Any, Any]:
        settings = self.settings
        if settings.size is not None:
            picture = np.asarray(_fitted(Image.fromarray(picture), settings.size, settings.fit))
        if settings.colours == "bgr":
            picture = picture[:, :, ::-1]
        if self._type is not np.uint8:
            scaled = picture.astype(np.float32) * np.float32(settings.scale)
            mean, std = (np.asarray(values, dtype=np.float32) for values in (settings.mean, settings.std))
            picture = ((scaled - mean) / std).astype(self._type)
        return np.ascontiguousarray(picture if self._is_last else picture.transpose(2, 0, 1))

    def _run(self, inputs: np.ndarray[Any, Any]) -> Floats:
        try:
            found = self._session.run([self.settings.output], {self._input: inputs})[0]
        except Exception as error:
            problem = f"{self._file} fails on pictures of shape {inputs.shape}: {str(error)[:200]}"
            raise InputError(problem, "say what it wants: ?size=, in a .json beside it, or export it again") from error
        rows = np.asarray(found, dtype=np.float32)
        if len(rows) != len(inputs):
            raise InputError(f"{self._file} answers {len(inputs)} pictures with shape {rows.shape}", "export it again")
        return _pooled(rows, self.settings.pool, self._file)

    def _probe(self) -> tuple[int, ...]:
        """The shape of the answer for one grey picture."""
        height, width = self.settings.size or (224, 224)
        grey = self._prepared(np.full((height, width, 3), 127, dtype=np.uint8))
        try:
            return np.asarray(self._session.run([self.settings.output], {self._input: grey[None]})[0]).shape
        except Exception as error:
            raise InputError(
                f"{self._file} fails on a picture of {width} x {height}: {str(error)[:200]}",
                "say which size it wants: model.onnx?size=384",
            ) from error


_HOW = {
    "cls": "the class token is taken; ?pool=mean takes the mean of the tokens",
    "mean": "the mean is taken",
    "gem": "a generalised mean of the map is taken",
    None: "the output is taken as it is",
}


def _note(file: Path, settings: Settings, shape: tuple[int, ...]) -> str:
    how = _HOW[settings.pool] + (
        "; ?pool=cls takes the first token" if settings.pool == "mean" and len(shape) == 3 else ""
    )
    return f"{file.name}: output {settings.output!r} of shape {tuple(shape)}: {how}"


def _pooling(shape: tuple[int, ...], wanted: str | None, file: Path) -> str | None:
    """How an output of this shape becomes a vector: as it is, by the class token, or by a mean."""
    allowed: tuple[str | None, ...]
    if len(shape) == 2:
        allowed = (None,)
    elif len(shape) == 3:
        # As many tokens as patches in a square: there is none for the whole picture.
        has_class = math.isqrt(shape[1]) ** 2 != shape[1]
        allowed = ("cls", "mean") if has_class else ("mean", "cls")
    elif len(shape) == 4:
        allowed = (None,) if shape[2:] == (1, 1) else ("gem", "mean")
    else:
        raise InputError(
            f"{file} answers with an output of shape {shape}; expected (m, d), tokens (m, t, d) or a map (m, d, h, w)",
            "choose another output: model.onnx?output=NAME",
        )
    if wanted is not None and wanted not in allowed:
        choices = " or ".join(f"pool={one}" for one in allowed if one) or "no pool"
        raise InputError(f"{file}: pool={wanted} does not fit an output of shape {shape}", f"give {choices}")
    return wanted or allowed[0]


def _pooled(rows: Floats, pool: str | None, file: Path) -> Floats:
    if pool == "cls":
        return rows[:, 0]
    if pool == "gem":
        return np.asarray((np.maximum(rows, 1e-6) ** _POWER).mean(axis=(2, 3)) ** (1 / _POWER), dtype=np.float32)
    if pool == "mean":
        return np.asarray(rows.mean(axis=1 if rows.ndim == 3 else (2, 3)), dtype=np.float32)
    if rows.ndim != 2 and rows.shape[2:] != (1, 1):
        raise InputError(
            f"{file} answers with shape {rows.shape}; expected a vector for each picture", "export it again"
        )
    return rows.reshape(len(rows), -1)


def _fitted(image: Image.Image, size: tuple[int, int], fit: str) -> Image.Image:
    height, width = size
    if fit == "crop":
        factor = max(width / image.width, height / image.height)
        scaled = (max(width, round(image.width * factor)), max(height, round(image.height * factor)))
        image = image.resize(scaled, Image.Resampling.BICUBIC)
        left, top = (scaled[0] - width) // 2, (scaled[1] - height) // 2
        return image.crop((left, top, left + width, top + height))
    return image.resize((width, height), Image.Resampling.BICUBIC)


def _said(file: Path, session: Any, options: str) -> dict[str, Any]:
    """What is said of the model: in the file, beside it, and by the user, the last word first."""
    said = {name: value for name, value in session.get_modelmeta().custom_metadata_map.items() if name in OPTIONS}
    beside = (
        file.with_suffix(".json"),
        file.with_name(f"{file.name}.json"),
        file.with_name("preprocessor_config.json"),
    )
    if sidecar := next((one for one in beside if one.is_file()), None):
        said |= _sidecar(sidecar)
    for name, value in parse_qsl(options, keep_blank_values=True):
        if name not in OPTIONS:
            raise InputError(f"{file}: there is no option {name!r}; expected some of {', '.join(OPTIONS)}")
        said[name] = value
    return said


def _sidecar(file: Path) -> dict[str, Any]:
    """A JSON file in our words, or in those of a preprocessor_config.json."""
    try:
        if file.stat().st_size > _MOST_JSON:
            raise ValueError("too long")
        found = json.loads(file.read_bytes())
        if not isinstance(found, dict):
            raise ValueError("no object")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read as JSON: {str(error)[:100]}", "mend it, or move it away") from error
    said = {name: found[name] for name in OPTIONS if name in found and name != "size"}
    for theirs, ours in (("image_mean", "mean"), ("image_std", "std"), ("rescale_factor", "scale")):
        if theirs in found:
            said.setdefault(ours, found[theirs])
    size = found.get("crop_size") if found.get("do_center_crop") else found.get("size")
    if found.get("do_center_crop"):
        said.setdefault("fit", "crop")
    if isinstance(size, dict):
        size = [size.get("height", size.get("shortest_edge")), size.get("width", size.get("shortest_edge"))]
    return said if size is None else {**said, "size": size}


def _settings(file: Path, said: Mapping[str, Any], fixed: Any, is_bytes: bool, outputs: Sequence[Any]) -> Settings:
    names = [one.name for one in outputs]
    vectors = [one.name for one in outputs if len(one.shape or ()) == 2]
    usual = next((name for name in _PREFERRED if name in names), (vectors or names)[0])
    output, fit, colours = said.get("output", usual), said.get("fit", "stretch"), said.get("colours", "rgb")
    for name, value, choices in (
        ("output", output, names), ("fit", fit, ["stretch", "crop"]), ("colours", colours, ["rgb", "bgr"]),
        ("pool", said.get("pool", "cls"), ["cls", "mean", "gem"]),
    ):  # fmt: skip
        if value not in choices:
            raise InputError(f"{file}: {name} = {str(value)[:60]!r}; expected one of {', '.join(map(repr, choices))}")
    if is_bytes and any(name in said for name in ("mean", "std", "scale")):
        raise InputError(f"{file} takes bytes, so mean, std and scale are its own matter", "leave them out")
    mean, std = (_numbers(file, name, said.get(name, usual)) for name, usual in (("mean", _MEAN), ("std", _DEVIATION)))
    (scale,) = _numbers(file, "scale", said.get("scale", 1 / 255), 1)
    if not all(std) or not scale:
        raise InputError(f"{file}: std = {std} and scale = {scale}; expected numbers other than 0")
    size = _size(file, said["size"]) if "size" in said else None
    if fixed is not None and size not in (None, fixed):
        raise InputError(f"{file} takes pictures of {fixed[0]} x {fixed[1]}, and size = {size[0]} x {size[1]} is said")
    return Settings(fixed or size, mean, std, scale, fit, colours, said.get("pool"), output)


def _numbers(file: Path, name: str, value: Any, n: int = 3) -> tuple[float, ...]:
    try:
        values = value.split(",") if isinstance(value, str) else np.ravel(value).tolist()
        found = tuple(float(one) for one in values) * (n if len(values) == 1 else 1)
        if len(found) != n or not np.isfinite(found).all():
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(f"{file}: {name} = {str(value)[:60]!r}; expected {n} finite numbers") from None
    return found


def _size(file: Path, value: Any) -> tuple[int, int]:
    try:
        values = value.split(",") if isinstance(value, str) else np.ravel(value).tolist()
        sides = [int(one) for one in values] * (2 if len(values) == 1 else 1)
        if len(sides) != 2 or not all(1 <= side <= _MOST_SIDE for side in sides):
            raise ValueError
    except (TypeError, ValueError):
        problem = f"{file}: size = {str(value)[:60]!r}; expected a side, or height and width, of at most {_MOST_SIDE:,}"
        raise InputError(problem) from None
    return sides[0], sides[1]
