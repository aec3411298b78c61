"""Labelled sets: pictures as rows of grey pixels in folders or tables, arrays, and sets of the catalogue by name."""

import os
import re
import reprlib
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats, Ints
from manifind.datasets.catalogue import find_set
from manifind.datasets.synthetic import WORD, make_letters
from manifind.errors import DataError, FileFormatError, InputError, needing
from manifind.files import check_regular_file, readable
from manifind.io.npy import Header, read_npz_arrays, read_npz_headers
from manifind.io.tables import read_label_table
from manifind.progress import Listener, Progress, ignore


class Labelled(NamedTuple):
    """Items, one row each, and the class of every one."""

    name: str  # what the rows are, such as "pixels" or "orl_112x92: images"
    descriptors: NDArray[Any]  # (n, d) in the type of the source; pictures row by row
    labels: Ints  # (n,) 0 to C - 1
    classes: tuple[str, ...]  # the name of each label
    names: tuple[str, ...]  # files relative to the source, or positions as text


def natural_key(text: str) -> tuple[list[Any], str]:
    """A key by which s2 comes before s10."""
    parts: list[Any] = re.split("([0-9]+)", text)  # words at even places, numbers at odd ones
    parts[1::2] = [(len(digits), digits) for digits in (number.lstrip("0") for number in parts[1::2])]
    return parts, text


def number_labels(values: Sequence[str] | Sequence[int], where: str) -> tuple[Ints, tuple[str, ...]]:
    """The number of each value and the name of each number: numbers in order of value, words naturally."""
    distinct: list[Any] = list(set(values))
    if "" in distinct:
        row = next(row for row, value in enumerate(values) if value == "")
        raise FileFormatError(f"{where} has an empty label for item {row} (counted from 0)", "give every item a label")
    distinct.sort(key=natural_key if isinstance(distinct[0], str) else None)
    number = {value: position for position, value in enumerate(distinct)}
    return np.array([number[value] for value in values], dtype=np.int64), tuple(map(str, distinct))


SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp")
_LARGEST_KEPT = 128  # pictures of one size, neither side longer than this, keep their pixels
_SMALL = 32  # the sides of all others
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # as Pillow calls them; PGM is one of PPM's


def is_picture(path: Path) -> bool:
    """Whether the file's name is that of a picture; hidden files are none."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def read_pictures(files: Sequence[Path], listener: Listener = ignore) -> NDArray[np.uint8]:
    """(n, pixels) the pictures in grey, row by row.

    Pixels are kept where all pictures have one size of at most 128 x 128; else each is made 32 x 32.
    """
    with needing("data", "reading pictures needs Pillow, which is not installed"):
        import PIL  # noqa: F401
    rows: list[NDArray[np.uint8]] = []
    is_kept = True
    for done, file in enumerate(files, 1):
        pixels = _grey(file)
        fits = max(pixels.shape) <= _LARGEST_KEPT and (not rows or pixels.shape == rows[0].shape)
        if is_kept and not fits:
            is_kept, rows = False, [_shrunk(earlier) for earlier in rows]
        rows.append(pixels if is_kept else _shrunk(pixels))
        listener(Progress("reading pictures", done, len(files)))
    return np.stack(rows).reshape(len(rows), -1)


def _shrunk(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((_SMALL, _SMALL), Image.Resampling.BOX))


def _grey(file: Path) -> NDArray[np.uint8]:
    """(height, width) the first frame, turned as its EXIF data says."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=_FORMATS) as opened:
                picture = ImageOps.exif_transpose(opened)
                if picture.mode.startswith("I"):  # 16 bits: Pillow would cut off at 255 and not scale
                    return np.clip(np.asarray(picture, dtype=np.int64) // 256, 0, 255).astype(np.uint8)
                if picture.mode == "F":
                    raise ValueError("its pixels are real numbers of no known range")
                if picture.has_transparency_data:  # put on white paper: what lies under is often just black
                    paper = Image.new("RGBA", picture.size, "white")
                    paper.alpha_composite(picture.convert("RGBA"))
                    picture = paper
                return np.asarray(picture.convert("L"))
    except FileNotFoundError as error:
        raise FileFormatError(f"the picture {file} does not exist", "check its name and folder") from error
    except UnidentifiedImageError as error:
        problem = f"{file} is not a picture of a known kind: {', '.join(_FORMATS)}"
        raise FileFormatError(problem, "convert it, or take it away") from error
    except Exception as error:  # on damaged files Pillow raises errors of a dozen kinds
        problem = f"the picture {file} cannot be read: {str(error)[:200] or type(error).__name__}"
        raise FileFormatError(problem, "copy it again, or take it away") from error


_SAVE_SO = "save it as numpy.savez(path, descriptors=X, labels=y)"


def _read_label_arrays(source: Path) -> list[Labelled]:
    """One labelled set for each matrix (n, d) and each stack of pictures (n, h, w) or (n, h, w, channels)."""
    headers = read_npz_headers(source)
    n, where = _n_items(headers, source), f"the array 'labels' in {source}"
    shapes = {name: header.shape for name, header in headers.items() if header.type.kind in "fiub" and name != "labels"}
    rows = [name for name, shape in shapes.items() if 2 <= len(shape) <= 4 and shape[0] == n and 0 not in shape]
    if not rows:
        found = ", ".join(f"{name} {reprlib.repr(header.shape)}" for name, header in headers.items())[:500]
        raise FileFormatError(f"{source} has {n} labels but no array of {n} rows; its arrays are {found}", _SAVE_SO)
    named = [name for name in ("names", "ids") if name in headers and headers[name].shape == (n,)][:1]
    arrays = read_npz_arrays(source, ["labels", *named, *rows])
    labels, classes = number_labels(arrays["labels"].tolist(), where)
    names = tuple(map(str, arrays[named[0]].tolist() if named else range(n)))
    return [Labelled(f"{source.stem}: {name}", arrays[name].reshape(n, -1), labels, classes, names) for name in rows]


def _n_items(headers: dict[str, Header], source: Path) -> int:
    header = headers.get("labels")
    if header is None:
        problem = f"{source} has no array called labels; it has {', '.join(headers)[:200] or 'none at all'}"
        raise FileFormatError(problem, _SAVE_SO)
    where = f"the array 'labels' in {source}"
    header.dtype(where, "iubUS", "whole numbers or strings")
    if len(header.shape) != 1 or header.shape[0] == 0:
        problem = f"{where} has shape {reprlib.repr(header.shape)}; expected (n,), one label for each item"
        raise FileFormatError(problem, "save labels.reshape(-1)")
    return header.shape[0]


def _read_picture_table(source: Path, listener: Listener) -> Labelled:
    """The pictures that the table names, in its order; paths are relative to the table's folder."""
    table = read_label_table(source, ("file",))
    if table.names is None:
        raise FileFormatError(f"{source} has no column called file", "make the first line file,label")
    labels, classes = number_labels(table.values, str(source))
    pixels = read_pictures([source.parent / name for name in table.names], listener)
    return Labelled("pixels", pixels, labels, classes, tuple(table.names))


def _read_class_folders(source: Path, listener: Listener) -> Labelled:
    """The pictures in grey, class by class and in natural order; other and hidden files are left out."""
    entries = _visible(source.iterdir())
    folders = [entry for entry in entries if entry.is_dir()]
    loose = next(filter(is_picture, entries), None)
    if loose is not None or not folders:
        what = f"has the picture {loose.name} in no class" if loose else "has no folder in it"
        raise FileFormatError(
            f"{source} {what}; expected one folder for each class, with pictures ({', '.join(SUFFIXES)})",
            "move the pictures into folders, or list them in a .csv file with the columns file,label",
        )
    files: list[Path] = []
    for folder in folders:
        pictures = list(filter(is_picture, _visible(folder.iterdir())))
        if not pictures:
            problem = f"the folder {folder} has no picture in it; expected at least one ({', '.join(SUFFIXES)})"
            raise FileFormatError(problem, "take the folder away, or put the pictures of its class into it")
        files += pictures
    labels, classes = number_labels([file.parent.name for file in files], str(source))
    names = tuple(file.relative_to(source).as_posix() for file in files)
    return Labelled("pixels", read_pictures(files, listener), labels, classes, names)


def _visible(entries: Iterable[Path]) -> list[Path]:
    """What is not hidden among the entries of a folder, in natural order."""
    return sorted((one for one in entries if not one.name.startswith(".")), key=lambda one: natural_key(one.name))


_DEEPEST = 4  # folders below the set's own; the archives have one or two

# How a picture of a published set is called, with as many folders as the pattern has; group 1 is its class.
_PUBLISHED = {
    "orl": r"(s[0-9]+)/[0-9]+\.pgm",
    "coil20": r"(obj[0-9]+)__[0-9]+\.png",
    # The archive has rat-9.gif twice, the second time as rat-09.gif, and figures whose names have no number.
    "mpeg7": r"(.+)-[1-9][0-9]*\.gif",
}


def _published_places(name: str, folder: Path) -> dict[Path, dict[str, tuple[Path, str]]]:
    """The set's visible pictures and their classes by name, for each folder they lie in, `folder` or one below it."""
    pattern = re.compile(_PUBLISHED[name], re.IGNORECASE)
    depth = pattern.pattern.count("/") + 1
    places: dict[Path, dict[str, tuple[Path, str]]] = {}
    for parent, folders, files in os.walk(folder):
        is_deep = len(Path(parent).relative_to(folder).parts) >= _DEEPEST
        folders[:] = [] if is_deep else [name for name in folders if not name.startswith(".")]
        for file in (Path(parent, name) for name in files if not name.startswith(".")):
            if match := pattern.fullmatch("/".join(file.parts[-depth:])):
                places.setdefault(file.parents[depth - 1], {})[match[0]] = file, match[1]
    return places


def _read_published(name: str, folder: Path, listener: Listener) -> Labelled:
    """The pictures in grey and in natural order, each with the class that its name tells."""
    places = _published_places(name, folder)
    if not places:
        dataset = find_set(name)
        raise DataError(
            f"{folder} has neither .npz files nor the published pictures of {name}; "
            f"expected {dataset.items} items: {dataset.truth}",
            f"`manifind data fetch {name}` gets them",
        )
    if len(places) != 1:
        problem = f"the pictures of {name} lie in {len(places)} folders: {', '.join(map(str, sorted(places)))[:300]}"
        raise DataError(problem, "keep one of these and move the others away")
    (found,) = places.values()
    names = tuple(sorted(found, key=natural_key))
    labels, classes = number_labels([found[one][1] for one in names], name)
    return Labelled("pixels", read_pictures([found[one][0] for one in names], listener), labels, classes, names)


class Digits(NamedTuple):
    """The scans, their pixels as descriptors, and the digits they show."""

    images: NDArray[np.uint8]  # (1797, 8, 8) 0 paper to 16 ink
    descriptors: Floats  # (1797, 64)
    labels: Ints  # (1797,) 0 to 9


def load_digits() -> Digits:
    """The images, their pixels as descriptors, and which digit each shows."""
    from sklearn import datasets  # slow to import: not for every use of the catalogue

    bundle = datasets.load_digits()
    descriptors = np.ascontiguousarray(bundle.data, dtype=np.float32)
    return Digits(bundle.images.astype(np.uint8), descriptors, bundle.target.astype(np.int64))


def _built_in(name: str) -> Labelled:
    if name == "digits":
        _, descriptors, labels = load_digits()
        what, classes = "pixels", "0123456789"
    else:
        descriptors, labels, _ = make_letters()
        what, classes = "points", WORD
    return Labelled(what, descriptors, labels, tuple(classes), tuple(map(str, range(len(labels)))))


LABELLED_SETS = (*_PUBLISHED, "digits", "letters")  # what `load_labelled_set` takes
_EXPECTED = "expected a folder with one folder for each class, a .csv or .tsv with file,label, or an .npz"


def read_labelled(source: str | os.PathLike[str], listener: Listener = ignore) -> list[Labelled]:
    """Every labelled set that the source holds: one for pictures, one for each array of an .npz file.

    source: a folder with one folder of pictures for each class; a .csv or .tsv file with the columns
    `file` and `label`; an .npz file with `labels`; or a folder with such .npz files, which are all read.
    """
    path = Path(source)
    with readable(path):
        if path.is_dir():
            arrays = [labelled for archive in _visible(path.glob("*.npz")) for labelled in _read_label_arrays(archive)]
            return arrays or [_read_class_folders(path, listener)]
        check_regular_file(path, _EXPECTED)
        if path.suffix.lower() == ".npz":
            return _read_label_arrays(path)
        if path.suffix.lower() in (".csv", ".tsv"):
            return [_read_picture_table(path, listener)]
    raise FileFormatError(f"{path} has the suffix {path.suffix!r}; {_EXPECTED}", "name one of these")


def load_labelled_set(name: str, root: Path, listener: Listener = ignore) -> list[Labelled]:
    """A labelled set of the catalogue in the form that lies in `root`/`name`: arrays, or published pictures."""
    dataset, folder = find_set(name), root / name
    if name not in LABELLED_SETS:
        problem = f"{name} has no labels: its ground truth is {dataset.truth}"
        raise InputError(problem, f"the labelled sets are {', '.join(LABELLED_SETS)}")
    if name not in _PUBLISHED:
        return [_built_in(name)]
    if _visible(folder.glob("*.npz")):
        return read_labelled(folder, listener)
    with readable(folder):
        return [_read_published(name, folder, listener)]


def labelled_forms(name: str, root: Path) -> list[Path]:
    """From where `load_labelled_set` would read the set: .npz files, or the folder that has the pictures."""
    if name not in _PUBLISHED:
        return []
    folder = root / name
    return _visible(folder.glob("*.npz")) or sorted(_published_places(name, folder))
