"""Small grey images as PNG data that stand inside a page."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_GREY_8_BIT = (8, 0, 0, 0, 0)  # bit depth, colour type, compression, filter, interlace
_INK = 16  # the darkest value of a scan


def data_address(scan: NDArray[np.uint8]) -> str:
    """The scan, 0 paper to 16 ink, as an address that holds the whole image, dark on white."""
    grey = (255 - scan.astype(np.int64) * 255 // _INK).astype(np.uint8)
    return "data:image/png;base64," + base64.b64encode(png(grey)).decode("ascii")


def png(grey: NDArray[np.uint8]) -> bytes:
    """The bytes of a PNG file. grey: (height, width), 0 black to 255 white."""
    height, width = grey.shape
    lines = b"".join(b"\0" + line.tobytes() for line in grey)  # 0: each line as it is, without prediction
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">II5B", width, height, *_GREY_8_BIT)),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
