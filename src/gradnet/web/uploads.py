"""Pictures that were uploaded to search with: decoded elsewhere, described, and remembered for a while."""

from __future__ import annotations

import hashlib
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from mmap import mmap
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gradnet.arrays import Floats
from gradnet.pictures.decoders import Decoders
from gradnet.pictures.decoding import Picture
from gradnet.pictures.describers import Describer
from gradnet.web.problems import RefusedError
from gradnet.web.thumbnails import as_jpeg

Upload: TypeAlias = bytes | mmap
"""The content of a picture's file."""

_REMEMBERED = 256
_SECONDS = 20.0  # for decoding one


class Uploaded(NamedTuple):
    """key: names it from now on. row: its descriptor. thumbnail: JPEG. picture: what it says of itself; no pixels."""

    key: str
    row: Floats
    thumbnail: bytes
    picture: Picture


class Uploads:
    """The last of them by key; older ones are forgotten."""

    def __init__(self, describer: Callable[[], Describer]) -> None:
        self._make_describer = describer
        self._describer: Describer | None = None
        self._decoders: Decoders | None = None
        self._kept: OrderedDict[str, Uploaded] = OrderedDict()
        self._lock, self._busy = Lock(), Lock()

    def take(self, data: Upload) -> Uploaded:
        """Decode and describe a picture; the same bytes are not described twice."""
        key = hashlib.sha256(data).hexdigest()[:32]
        known = self.get(key)
        if known is not None:
            return known
        with self._busy:  # one at a time: describing takes all cores
            made = self._described(key, data)
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
        return made

    def get(self, key: str) -> Uploaded | None:
        """One that is still remembered."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def close(self) -> None:
        """End the decoders."""
        if self._decoders is not None:
            self._decoders.__exit__()

    def _described(self, key: str, data: Upload) -> Uploaded:
        if self._describer is None or self._decoders is None:
            self._describer = self._make_describer()
            self._decoders = Decoders(1, self._describer.longest, _SECONDS)
        with tempfile.NamedTemporaryFile(prefix="gradnet-", suffix=".upload") as file:
            file.write(data)
            file.flush()
            (found,) = self._decoders.decode([Path(file.name)])
        if isinstance(found, str):
            raise RefusedError(415, f"the upload {found}", "send a JPEG, PNG, WebP, TIFF, BMP, GIF or HEIC")
        row: Any = self._describer([found.pixels])[0]
        without_pixels = replace(found, pixels=np.empty((0, 0, 3), np.uint8))  # hundreds are remembered
        return Uploaded(key, row, as_jpeg(found), without_pixels)
