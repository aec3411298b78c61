"""Pictures as rows of grey pixels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from manifind.errors import FileFormatError, MissingExtraError
from manifind.progress import Listener, Progress, ignore

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp")
"""The suffixes, in small letters, of files that are taken for pictures."""

LARGEST_KEPT = 128
"""Pictures of one size, neither side longer than this, keep their pixels."""

SMALL = 32
"""The sides of all others."""

_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # as Pillow calls them; PGM is one of PPM's


def is_picture(path: Path) -> bool:
    """Whether the file's name is that of a picture; hidden files are none."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def read_pictures(files: Sequence[Path], listener: Listener = ignore) -> NDArray[np.uint8]:
    """(n, pixels) the pictures in grey, row by row.

    Pixels are kept where all pictures have one size of at most 128 x 128; else each is made 32 x 32.
    """
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "reading pictures needs Pillow, which is not installed", 'pip install "manifind[data]"'
        ) from error
    rows: list[NDArray[np.uint8]] = []
    is_kept = True
    for done, file in enumerate(files, 1):
        pixels = _grey(file)
        fits = max(pixels.shape) <= LARGEST_KEPT and (not rows or pixels.shape == rows[0].shape)
        if is_kept and not fits:
            is_kept, rows = False, [_shrunk(earlier) for earlier in rows]
        rows.append(pixels if is_kept else _shrunk(pixels))
        listener(Progress("reading pictures", done, len(files)))
    return np.stack(rows).reshape(len(rows), -1)


def _shrunk(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((SMALL, SMALL), Image.Resampling.BOX))


def _grey(file: Path) -> NDArray[np.uint8]:
    """(height, width) the first frame, turned as its EXIF data says."""
    from PIL import Image, ImageOps

    with _refusing(file), Image.open(file, formats=_FORMATS) as opened:
        picture = ImageOps.exif_transpose(opened)
        if picture.mode.startswith("I"):  # 16 bits: Pillow would cut off at 255 and not scale
            deep = np.asarray(picture, dtype=np.int64)
            return np.clip(deep // 256, 0, 255).astype(np.uint8)
        if picture.mode == "F":
            raise ValueError("its pixels are real numbers of no known range")
        return np.asarray(_opaque(picture).convert("L"))


def _opaque(picture: Image.Image) -> Image.Image:
    """The picture on white paper where it is transparent: what lies under that is often just black."""
    from PIL import Image

    if not picture.has_transparency_data:
        return picture
    paper = Image.new("RGBA", picture.size, "white")
    paper.alpha_composite(picture.convert("RGBA"))
    return paper


@contextmanager
def _refusing(file: Path) -> Iterator[None]:
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    except FileNotFoundError as error:
        raise FileFormatError(f"the picture {file} does not exist", "check its name and folder") from error
    except UnidentifiedImageError as error:
        raise FileFormatError(
            f"{file} is not a picture of a known kind: {', '.join(_FORMATS)}", "convert it, or take it away"
        ) from error
    except Exception as error:  # on damaged files Pillow raises errors of a dozen kinds
        raise FileFormatError(
            f"the picture {file} cannot be read: {str(error)[:200] or type(error).__name__}",
            "copy it again, or take it away",
        ) from error
