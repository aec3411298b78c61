"""Searching a collection of pictures with pictures: described as its own were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradnet.arrays import Floats
from gradnet.errors import InputError
from gradnet.pictures.decoders import Decoders
from gradnet.pictures.decoding import Picture
from gradnet.pictures.describers import NAMES, Describer, make_describer


def describer_of(manifest: Mapping[str, Any], where: str, given: str | None = None) -> Describer:
    """The describer that a collection was made with. where: named when there is none.

    given: the describer as the user names it. A collection never says by itself which file is to be opened for that,
    since it may come from anywhere.
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
            f"{where} was described by {identity.get('name', kind)}, which is not part of gradnet",
            "name it again: --describer FILE.onnx, or FILE.py:NAME",
        )
    several = kind == "efficientnet" and len(identity.get("scales", [1.0])) > 1
    describer = make_describer(given or str(kind), longest=identity.get("longest", 512), multi_scale=several)
    if describer.identity != identity:
        raise InputError(
            f"{where} was described by {identity}, and what is to describe the query is {describer.identity}",
            "take the describer and the version that it was made with, or index the pictures again",
        )
    return describer


def describe_queries(files: Sequence[Path], describer: Describer) -> Floats:
    """(m, d) descriptors of picture files, all of which must be pictures."""
    with Decoders(1, describer.longest) as decoders:
        found = list(decoders.decode(files))
    for file, picture in zip(files, found, strict=True):
        if isinstance(picture, str):
            raise InputError(f"{file} {picture}", "give a picture: JPEG, PNG, WebP, TIFF, BMP, GIF or HEIC")
    return describer([picture.pixels for picture in found if isinstance(picture, Picture)])
