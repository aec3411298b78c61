"""Thumbnails of items, and pictures that were uploaded: to search with, or to be added under their own name."""

import hashlib
import io
import itertools
import os
import tempfile
import unicodedata
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from mmap import mmap
from pathlib import Path
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from PIL import Image

from manifind.arrays import Floats
from manifind.images.decode import Crop, Decoders, Picture
from manifind.images.extractors import Extractor
from manifind.images.files import SUFFIXES, PictureFile
from manifind.server.errors import RefusedError

FORMAT_SUFFIXES = {"PNG": ".png", "WEBP": ".webp", "TIFF": ".tif", "BMP": ".bmp", "GIF": ".gif", "HEIF": ".heic"}
"""By the format of a picture; .jpg for any other."""
SIDE = 320
_LONGEST_NAME = 120  # bytes of a file name, so that a number still fits behind it
_THUMBNAIL_BYTES = 64 << 20  # of all that are cached
_MOST_UPLOADS = 256
_SECONDS = 20.0  # for decoding one image

Upload: TypeAlias = bytes | mmap
"""The content of an uploaded image file."""

_V = TypeVar("_V")


class Cache(Generic[_V]):
    """The values that were used last, as many as fit. size: how much of `most` one takes."""

    def __init__(self, most: int, size: Callable[[_V], int] = lambda _: 1) -> None:
        self._values: OrderedDict[Any, _V] = OrderedDict()
        self._most, self._size, self._total, self._lock = most, size, 0, Lock()

    def get(self, key: Any) -> _V | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Any, value: _V) -> _V:
        with self._lock:
            if key not in self._values:
                self._values[key] = value
                self._total += self._size(value)
            while self._total > self._most:
                self._total -= self._size(self._values.popitem(last=False)[1])
        return value


def as_jpeg(picture: Picture, side: int = SIDE) -> bytes:
    """A picture, at most `side` wide and high."""
    image = Image.fromarray(picture.pixels)
    image.thumbnail((side, side))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=78, optimize=True)
    return stream.getvalue()


class Thumbnails:
    """JPEG by file; None where a file is gone, or has not the content that was indexed. side: the longest of theirs."""

    def __init__(self, n_processes: int = 2, side: int = SIDE) -> None:
        self._side, self._decoders = side, Decoders(n_processes, side, seconds=_SECONDS)
        self._cache: Cache[bytes] = Cache(_THUMBNAIL_BYTES, len)

    def get(self, wanted: PictureFile) -> bytes | None:
        try:
            status = wanted.file.stat()
        except OSError:
            return None
        key = (wanted, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if (cached := self._cache.get(key)) is not None:
            return cached
        (found,) = self._decoders.decode([wanted.file])
        if isinstance(found, str) or found.sha256 != wanted.sha256:
            return None
        return self._cache.put(key, as_jpeg(found, self._side))

    def close(self) -> None:
        self._decoders.__exit__()


class Uploaded(NamedTuple):
    """key: a digest that names it. row: its descriptor. thumbnail: JPEG. picture: its metadata; no pixels."""

    key: str
    row: Floats
    thumbnail: bytes
    picture: Picture


class Uploads:
    """The last of them, which `get` finds by key; older ones are forgotten."""

    def __init__(self, make_extractor: Callable[[], Extractor]) -> None:
        self._make_extractor = make_extractor
        self._extractor: Extractor | None = None
        self._decoders: Decoders | None = None
        self._cache: Cache[Uploaded] = Cache(_MOST_UPLOADS)
        self.get, self._busy = self._cache.get, Lock()

    def take(self, data: Upload, crop: Crop | None = None) -> Uploaded:
        """Decode and describe an image, or a part of it; the same bytes are not described twice."""
        digest = hashlib.sha256(data)
        if crop is not None:
            digest.update(repr(crop).encode())
        key = digest.hexdigest()[:32]
        if (known := self.get(key)) is not None:
            return known
        with tempfile.NamedTemporaryFile(prefix="manifind-", suffix=".upload") as file:
            file.write(data)
            file.flush()
            return self._described(key, Path(file.name), crop)

    def crop(self, picture: PictureFile, crop: Crop) -> Uploaded:
        """Describe a part of an item's picture."""
        key = hashlib.sha256(repr((picture.sha256, crop)).encode()).hexdigest()[:32]
        known = self.get(key)
        return self._described(key, picture.file, crop, picture.sha256) if known is None else known

    def close(self) -> None:
        if self._decoders is not None:
            self._decoders.__exit__()

    def _described(self, key: str, file: Path, crop: Crop | None, sha256: str | None = None) -> Uploaded:
        with self._busy:  # one at a time: an extractor takes all cores
            return self._cache.put(key, self._describe(key, file, crop, sha256))

    def _describe(self, key: str, file: Path, crop: Crop | None, sha256: str | None) -> Uploaded:
        """sha256: of the content that the file must have; None for any."""
        if self._extractor is None or self._decoders is None:
            self._extractor = self._make_extractor()
            self._decoders = Decoders(1, self._extractor.longest, _SECONDS)
        (found,) = self._decoders.decode([file], [crop])
        if isinstance(found, str):
            raise RefusedError(415, f"the picture {found}", "send a JPEG, PNG, WebP, TIFF, BMP, GIF or HEIC")
        if sha256 not in (None, found.sha256):
            raise RefusedError(404, "there is no picture of this item", "its file may be gone")
        row: Any = self._extractor([found.pixels])[0]
        without_pixels = replace(found, pixels=np.empty((0, 0, 3), np.uint8))  # hundreds are remembered
        return Uploaded(key, row, as_jpeg(found), without_pixels)


def file_name(given: str, suffix: str) -> str:
    """A name for a new file after one that came from outside: one step of a path, visible, and with a suffix.

    Empty where nothing is left of it. suffix: for a name that does not end like a picture.
    """
    last = given.replace("\\", "/").rpartition("/")[2]
    plain = "".join(" " if unicodedata.category(sign)[0] == "C" else sign for sign in last)
    stem, _, end = " ".join(plain.split()).lstrip(". ").rpartition(".")
    if not stem or f".{end.lower()}" not in SUFFIXES:
        stem, end = (f"{stem}.{end}" if stem else end), suffix[1:]
    stem = stem.encode()[: _LONGEST_NAME - len(end) - 1].decode(errors="ignore").rstrip(". ")
    return f"{stem}.{end}" if stem else ""


def write_beside(folder: Path, name: str, data: Upload) -> str:
    """Write a new file into a folder, with a number where the name is taken; its name. No file is ever replaced."""
    stem, _, end = name.rpartition(".")
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".", suffix=".partial") as partial:
        partial.write(data)
        partial.flush()
        os.fsync(partial.fileno())
        os.chmod(partial.name, 0o644)
        for number in itertools.count(2):
            with suppress(FileExistsError):
                os.link(partial.name, folder / name)  # unlike a rename, it fails where there is one
                return name
            name = f"{stem} ({number}).{end}"
    raise AssertionError
