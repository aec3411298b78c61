"""Picture files as accidents and people who mean harm make them."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from PIL import Image

KINDS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF")


def picture_bytes(kind, seed):
    """A small good picture of a kind."""
    rng = np.random.default_rng(seed)
    mode = rng.choice(["RGB", "L"])
    shape = (int(rng.integers(8, 40)), int(rng.integers(8, 40)), *((3,) if mode == "RGB" else ()))
    stream = io.BytesIO()
    options = {"exif": exif()} if kind in ("JPEG", "PNG", "WEBP") else {}
    Image.fromarray(rng.integers(0, 255, size=shape, dtype=np.uint8)).save(stream, kind, **options)
    return stream.getvalue()


def exif():
    made = Image.Exif()
    made[0x0112], made[0x0132] = 6, "2019:07:31 12:30:00"
    return made.tobytes()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_of(width, height, data=b"", extra=b""):
    """A PNG whose header says what it likes."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + extra
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def tiff_with_a_loop():
    """A directory of fields that names itself as the next."""
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", 0) + struct.pack("<I", 8)


def bombs():
    """Small files that ask for much."""
    zeros = zlib.compress(bytes(1 << 26), 9)
    return {
        "wide.png": png_of(2**31 - 1, 1),
        "square.png": png_of(100_000, 100_000, bytes(1 << 20)),
        "just allowed.png": png_of(14_000, 14_000, bytes(14_001 * 14_000)),
        "text.png": png_of(8, 8, bytes(72), chunk(b"zTXt", b"a\0\0" + zeros)),
        "profile.png": png_of(8, 8, bytes(72), chunk(b"iCCP", b"a\0\0" + zeros)),
        "wide.bmp": b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, 2**30, 2**30, 1, 24, 0, 0, 0, 0, 0, 0),
        "wide.gif": b"GIF89a"
        + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0)
        + b",\0\0\0\0"
        + b"\xff" * 4
        + b"\0\x08\0;",
        "loop.tif": tiff_with_a_loop(),
        "page.jpg": b"<html><script>alert(1)</script></html>",
        "postscript.jpg": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n",
        "empty.webp": b"",
    }


def mutated(good, seed):
    """The bytes of a picture after an accident: cut, flipped, filled, doubled, spliced."""
    rng = np.random.default_rng(seed)
    data = bytearray(good)
    kind = int(rng.integers(6))
    at = int(rng.integers(len(data)))
    if kind == 0:
        del data[at:]
    elif kind == 1:
        for place in rng.integers(len(data), size=int(rng.integers(1, 40))):
            data[place] = int(rng.integers(256))
    elif kind == 2:
        data[at : at + 64] = bytes([int(rng.choice([0, 255]))]) * len(data[at : at + 64])
    elif kind == 3:
        data[at:at] = data[:at]
    elif kind == 4:
        data[at:] = picture_bytes(str(rng.choice(KINDS)), seed)[at:]
    else:
        for place in rng.integers(min(len(data), 64), size=4):  # headers, where sizes stand
            data[place] = int(rng.choice([0, 1, 127, 128, 255]))
    return bytes(data)


def write_hostile(folder, n):
    """n files, of which none can be trusted; the names, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    made = dict(list(bombs().items())[:n])
    for number in range(n - len(made)):
        kind = KINDS[number % len(KINDS)]
        suffix = KINDS[(number // 7) % len(KINDS)].lower()  # often another than it is
        made[f"{number:04} ü.{suffix}"] = mutated(picture_bytes(kind, number), number)
    for name, data in made.items():
        (folder / name).write_bytes(data)
    return sorted(made)
