"""Thumbnails of items, and pictures that were uploaded to search with."""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from mmap import mmap
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from PIL import Image

from manifind.arrays import Floats
from manifind.images.decode import Picture
from manifind.images.decoders import Decoders
from manifind.images.extractors import Extractor
from manifind.images.files import PictureFile
from manifind.server.errors import RefusedError

SIDE = 320
_KEPT_BYTES = 64 << 20


def as_jpeg(picture: Picture, side: int = SIDE) -> bytes:
    """A picture, at most `side` wide and high."""
    image = Image.fromarray(picture.pixels)
    image.thumbnail((side, side))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=78, optimize=True)
    return stream.getvalue()


class Thumbnails:
    """By file; None where a file is gone, or has not the content that was indexed. side: the longest of theirs."""

    def __init__(self, n_processes: int = 2, side: int = SIDE) -> None:
        self._side, self._decoders = side, Decoders(n_processes, side, seconds=20.0)
        self._kept: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._bytes, self._lock = 0, Lock()

    def get(self, wanted: PictureFile) -> bytes | None:
        """As JPEG."""
        try:
            status = wanted.file.stat()
        except OSError:
            return None
        key = (wanted, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        (found,) = self._decoders.decode([wanted.file])
        if isinstance(found, str) or found.sha256 != wanted.sha256:
            return None
        return self._keep(key, as_jpeg(found, self._side))

    def close(self) -> None:
        """End the decoders."""
        self._decoders.__exit__()

    def _keep(self, key: tuple[Any, ...], made: bytes) -> bytes:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._bytes += len(made)
            while self._bytes > _KEPT_BYTES:
                self._bytes -= len(self._kept.popitem(last=False)[1])
        return made


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

    def __init__(self, describer: Callable[[], Extractor]) -> None:
        self._make_describer = describer
        self._describer: Extractor | None = None
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
        with tempfile.NamedTemporaryFile(prefix="manifind-", suffix=".upload") as file:
            file.write(data)
            file.flush()
            (found,) = self._decoders.decode([Path(file.name)])
        if isinstance(found, str):
            raise RefusedError(415, f"the upload {found}", "send a JPEG, PNG, WebP, TIFF, BMP, GIF or HEIC")
        row: Any = self._describer([found.pixels])[0]
        without_pixels = replace(found, pixels=np.empty((0, 0, 3), np.uint8))  # hundreds are remembered
        return Uploaded(key, row, as_jpeg(found), without_pixels)
