"""Decodes image files to pixels and metadata, side by side in child processes that a bad file may end."""

import hashlib
import io
import math
import os
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from manifind.errors import FileFormatError, InputError
from manifind.images.files import FINGERPRINT, FINGERPRINT_BITS
from manifind.worker import Reply, Worker, WorkerError

FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF", "HEIF")
MOST_PIXELS = 200_000_000  # the largest photographs people take have half as many
MOST_BYTES = 1 << 30  # of a file; as many pixels without compression take less
MOST_MEMORY = 4 << 30  # bytes; the largest file that is allowed takes a quarter, its pixels a fifth
_FUNCTION = "manifind.images.decode:decode_in_child"
_SECONDS = 60.0  # for one picture: a hundred times what a large one takes
_AHEAD = 4  # pictures that are decoded before somebody asks for them, for each process
_BESIDE_PIXELS = 1 << 20  # bytes of an answer that are no pixels
_NEEDS_HEIF = 'needs pillow-heif: pip install "manifind[pictures]"'
_REASONS = {"crash": "makes the decoder crash", "memory": "needs more memory than a picture may"}
_MORE = math.isqrt(FINGERPRINT_BITS)
_LESS = FINGERPRINT_BITS // 2 // _MORE
_LEAST_CONTRAST = 8  # grey levels; below, noise would decide what it looks like
_EXIF, _GPS = 0x8769, 0x8825
_TAKEN, _CHANGED = 0x9003, 0x0132

Pixels = NDArray[np.uint8]
Crop: TypeAlias = tuple[float, float, float, float]
"""A part of an upright picture: left, top, width, height, in pixels, or as shares where none is larger than 1."""


class UnreadablePictureError(FileFormatError):
    """Why a file is no picture that can be described, for people."""


@dataclass(frozen=True)
class Picture:
    """pixels: (h, w, 3) RGB, upright. width, height: before it was made smaller. sha256: of the file's content.

    metadata: date, place and fingerprint, where there are any.
    """

    pixels: Pixels
    width: int
    height: int
    format: str
    sha256: str
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, Any]:
        return {"width": self.width, "height": self.height, "format": self.format, **self.metadata}


class Decoders(AbstractContextManager["Decoders"]):
    """Decodes files in order, some ahead of whoever asks. Use it in a `with` statement.

    n_processes: how many at a time. longest: pictures are made smaller until their longer side is at most this.
    seconds: most for one picture.
    """

    def __init__(self, n_processes: int, longest: int, seconds: float = _SECONDS) -> None:
        self._longest, self._seconds, self._n = longest, seconds, n_processes
        self._idle = deque(Worker(seconds=seconds, memory=MOST_MEMORY) for _ in range(n_processes))
        self._threads = ThreadPoolExecutor(n_processes)

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        for worker in self._idle:
            worker.close()

    def decode(self, files: Sequence[Path], crops: Sequence[Crop | None] | None = None) -> Iterator[Picture | str]:
        """For each file its picture, or in words why there is none. crops: the part of each that is wanted."""
        waiting: deque[Future[Picture | str]] = deque()
        for file, crop in zip(files, crops or [None] * len(files), strict=True):
            if len(waiting) == self._n * _AHEAD:
                yield waiting.popleft().result()
            waiting.append(self._threads.submit(self._decode, file, crop))
        while waiting:
            yield waiting.popleft().result()

    def _decode(self, file: Path, crop: Crop | None) -> Picture | str:
        worker = self._idle.popleft()  # there are as many as threads
        most = 3 * self._longest**2 + _BESIDE_PIXELS
        arguments = {"file": str(file), "longest": self._longest} | ({"crop": crop} if crop is not None else {})
        try:
            found, arrays = worker.call(_FUNCTION, arguments, max_bytes=most)
        except FileFormatError as error:
            return error.problem
        except WorkerError as error:
            late = f"takes longer than {self._seconds:g} s to decode"
            return late if error.kind == "time" else _REASONS.get(error.kind, f"is damaged: {error.problem[:100]}")
        finally:
            self._idle.append(worker)
        return Picture(arrays["pixels"], **found)


def decode_in_child(file: str, longest: int, crop: Sequence[float] | None = None) -> Reply:
    """The picture with its pixels as an array."""
    named = dict(vars(decode(Path(file), longest, None if crop is None else check_crop(crop))))
    arrays = {"pixels": named.pop("pixels")}
    return Reply(named, arrays)


def check_crop(crop: Sequence[Any]) -> Crop:
    """Four numbers that can be a part of a picture."""
    try:
        left, top, width, height = map(float, crop)
    except (TypeError, ValueError):
        left = top = width = height = math.nan
    if not (0 <= left < math.inf and 0 <= top < math.inf and 0 < width < math.inf and 0 < height < math.inf):
        given = crop if isinstance(crop, str) else ",".join(map(str, crop))
        problem = f"crop = {given[:100]}; expected left, top, width and height"
        raise InputError(problem, "give pixels, as in 40,0,200,150, or shares of the picture, as in 0.1,0,0.5,0.4")
    return left, top, width, height


def _cropped(upright: Image.Image, crop: Crop) -> Image.Image:
    scale = (upright.width, upright.height) if max(crop) <= 1 else (1, 1)
    left, right = (round(crop[0] * scale[0]), round((crop[0] + crop[2]) * scale[0]))
    top, bottom = (round(crop[1] * scale[1]), round((crop[1] + crop[3]) * scale[1]))
    right, bottom = min(right, upright.width), min(bottom, upright.height)
    if right <= left or bottom <= top:
        raise UnreadablePictureError(f"has {upright.width} x {upright.height} pixels, and the crop is outside of them")
    return upright.crop((left, top, right, bottom))


def decode(file: Path, longest: int, crop: Crop | None = None) -> Picture:
    """A picture, its longer side made at most `longest`; an UnreadablePictureError with the reason otherwise.

    crop: the part that is wanted, cut out before the picture is made smaller; the digest is of the whole file.

    The file is read once: what is decoded is what the digest is of, whatever happens to the file meanwhile.
    """
    data = _content(file)
    digest = hashlib.sha256(data).hexdigest()
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        warnings.simplefilter("ignore", UserWarning)  # of tags that are damaged, which are left out
        try:
            with Image.open(io.BytesIO(data), formats=_openable()) as image:
                return _read(image, longest, digest, crop)
        except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
            raise UnreadablePictureError(f"has more than {MOST_PIXELS:,} pixels") from error
        except UnreadablePictureError:
            raise
        except UnidentifiedImageError as error:
            lacks_heif = data[4:8] == b"ftyp" and "HEIF" not in _openable()
            raise UnreadablePictureError(_NEEDS_HEIF if lacks_heif else "is no picture of a known kind") from error
        except MemoryError:
            raise  # which the caller of a child process has words for
        except Exception as error:  # decoders raise whatever a damaged file leads them to
            raise UnreadablePictureError(f"is damaged: {str(error)[:100] or type(error).__name__}") from error


def _content(file: Path) -> bytes:
    try:
        with open(file, "rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            if size > MOST_BYTES:
                raise UnreadablePictureError(f"has {size:,} bytes, more than the {MOST_BYTES:,} of a picture")
            data = handle.read(size + 1)  # what it has grown by is another content
    except OSError as error:
        reason = "may not be read" if isinstance(error, PermissionError) else error.strerror or str(error)
        raise UnreadablePictureError(reason) from error
    if not data:
        raise UnreadablePictureError("is empty (0 bytes)")
    return data


def _openable() -> tuple[str, ...]:
    try:
        heif: Any = import_module("pillow_heif")
    except ImportError:
        return tuple(name for name in FORMATS if name != "HEIF")
    heif.register_heif_opener()
    return FORMATS


def _read(image: Image.Image, longest: int, digest: str, crop: Crop | None) -> Picture:
    kind, (width, height) = image.format or "", image.size
    metadata = exif_fields(image)
    if crop is None:
        image.draft("RGB", (longest, longest))  # a JPEG is decoded at a fraction of its size where that is enough
    image.load()
    upright = ImageOps.exif_transpose(image)
    if (upright.width < upright.height) != (width < height):
        width, height = height, width
    colours = _as_rgb(upright if crop is None else _cropped(upright, crop))
    if max(colours.size) > longest:
        colours.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    if looks := fingerprint(colours):
        metadata[FINGERPRINT] = looks
    return Picture(np.array(colours, dtype=np.uint8), width, height, kind, digest, metadata)


def fingerprint(picture: Image.Image) -> str | None:
    """Where it grows brighter to the right, and where downwards, as hexadecimal bits; None for a single colour.

    Nearly the same for a picture that is saved again, made smaller or brighter, and another for another picture.
    """
    grey = picture.convert("L")
    right, down = (
        np.asarray(grey.resize(size, Image.Resampling.BOX), dtype=np.int16)
        for size in ((_LESS + 1, _MORE), (_MORE, _LESS + 1))
    )
    if max(np.ptp(right), np.ptp(down)) < _LEAST_CONTRAST:
        return None
    bits = np.concatenate([(right[:, 1:] > right[:, :-1]).ravel(), (down[1:] > down[:-1]).ravel()])
    return np.packbits(bits).tobytes().hex()


def _as_rgb(image: Image.Image) -> Image.Image:
    if image.mode in ("I", "I;16", "I;16B", "I;16L", "I;16N", "F"):
        values = np.asarray(image, dtype=np.float64)
        top = 65535.0 if image.mode != "F" or values.max(initial=0) > 1 else 1.0
        image = Image.fromarray((np.clip(values / top, 0, 1) * 255).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        with_alpha = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", with_alpha.size, "white"), with_alpha)
    return image.convert("RGB")


def exif_fields(image: Image.Image) -> dict[str, Any]:
    """Date and place from the EXIF data; what is damaged there is left out."""
    found: dict[str, Any] = {}
    with suppress(Exception):  # whatever is wrong with it, the picture itself may be fine
        exif = image.getexif()
        if date := _date(exif.get_ifd(_EXIF).get(_TAKEN) or exif.get(_CHANGED)):
            found["taken"] = date
        gps = exif.get_ifd(_GPS)
        latitude, longitude = _degrees(gps, 1, "S", 90), _degrees(gps, 3, "W", 180)
        if latitude is not None and longitude is not None:
            found |= {"latitude": latitude, "longitude": longitude}
    return found


def _date(value: Any) -> str | None:
    """2019:07:31 12:30:00 as 2019-07-31 12:30:00, which sorts and compares as text."""
    text = str(value or "").strip("\0 ")
    digits = text.replace(":", "").replace(" ", "")
    if len(text) != 19 or not digits.isdigit() or text[:4] == "0000":
        return None
    return f"{text[:4]}-{text[5:7]}-{text[8:]}"


def _degrees(gps: dict[int, Any], tag: int, negative: str, most: int) -> float | None:
    """North and east positive; None where it is missing or nowhere on earth."""
    if tag not in gps or tag + 1 not in gps:
        return None
    degrees, minutes, seconds = (float(part) for part in gps[tag + 1])
    value = degrees + minutes / 60 + seconds / 3600
    if not 0 <= value <= most:  # NaN is not, either
        return None
    return round(-value if str(gps[tag]).strip("\0 ").upper() == negative else value, 6)
