"""Small pictures of items: decoded in processes of their own, the last ones kept in memory."""

from __future__ import annotations

import io
from collections import OrderedDict
from threading import Lock
from typing import Any

from PIL import Image

from gradnet.pictures.decoders import Decoders
from gradnet.pictures.decoding import Picture
from gradnet.pictures.files import PictureFile

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
