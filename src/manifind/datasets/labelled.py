"""Labelled sets: your own as class folders, tables or arrays, and those of the catalogue by name."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats, Ints
from manifind.datasets.catalogue import find_set
from manifind.datasets.pixels import SUFFIXES, is_picture, read_pictures
from manifind.errors import DataError, FileFormatError, InputError
from manifind.files import check_regular_file, readable
from manifind.io.npy import Header, read_npz_arrays, read_npz_headers
from manifind.io.tables import read_label_table
from manifind.progress import Listener, ignore

_NUMBER = re.compile(r"([0-9]+)")


class Labelled(NamedTuple):
    """Items, one row each, and the class of every one.

    name: what the rows are, such as "pixels" or "orl_112x92: images".
    descriptors: (n, d) in the type of the source; pictures row by row. labels: (n,) 0 to C - 1.
    classes: the name of each label. names: files relative to the source, or positions as text.
    """

    name: str
    descriptors: NDArray[Any]
    labels: Ints
    classes: tuple[str, ...]
    names: tuple[str, ...]


def natural_key(text: str) -> tuple[list[Any], str]:
    """A key by which s2 comes before s10."""
    parts: list[Any] = _NUMBER.split(text)  # words at even places, numbers at odd ones
    digits = [number.lstrip("0") for number in parts[1::2]]
    parts[1::2] = [(len(number), number) for number in digits]
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


_LABELS = "labels"
_NAMES = ("names", "ids")
_NUMBERS = "fiub"


def read_label_arrays(source: Path) -> list[Labelled]:
    """One labelled set for each matrix (n, d) and each stack of pictures (n, h, w) or (n, h, w, channels)."""
    headers = read_npz_headers(source)
    n = _n_items(headers, source)
    rows = [name for name, header in headers.items() if name != _LABELS and _is_rows(header, n)]
    if not rows:
        shapes = ", ".join(f"{name} {reprlib.repr(header.shape)}" for name, header in headers.items())[:500]
        raise FileFormatError(
            f"{source} has {n} labels but no array of {n} rows; its arrays are {shapes}",
            "save it as numpy.savez(path, descriptors=X, labels=y)",
        )
    named = [name for name in _NAMES if name in headers and headers[name].shape == (n,)][:1]
    arrays = read_npz_arrays(source, [_LABELS, *named, *rows])
    labels, classes = number_labels(arrays[_LABELS].tolist(), f"the array 'labels' in {source}")
    names = tuple(map(str, arrays[named[0]].tolist() if named else range(n)))
    return [Labelled(f"{source.stem}: {name}", arrays[name].reshape(n, -1), labels, classes, names) for name in rows]


def _n_items(headers: dict[str, Header], source: Path) -> int:
    header = headers.get(_LABELS)
    if header is None:
        raise FileFormatError(
            f"{source} has no array called labels; it has {', '.join(headers)[:200] or 'none at all'}",
            "save it as numpy.savez(path, descriptors=X, labels=y)",
        )
    where = f"the array 'labels' in {source}"
    header.dtype(where, "iubUS", "whole numbers or strings")
    if len(header.shape) != 1 or header.shape[0] == 0:
        raise FileFormatError(
            f"{where} has shape {reprlib.repr(header.shape)}; expected (n,), one label for each item",
            "save labels.reshape(-1)",
        )
    return header.shape[0]


def _is_rows(header: Header, n: int) -> bool:
    shape = header.shape
    return header.type.kind in _NUMBERS and 2 <= len(shape) <= 4 and shape[0] == n and 0 not in shape


def read_picture_table(source: Path, listener: Listener = ignore) -> Labelled:
    """The pictures that the table names, in its order; paths are relative to the table's folder."""
    table = read_label_table(source, ("file",))
    if table.names is None:
        raise FileFormatError(f"{source} has no column called file", "make the first line file,label")
    labels, classes = number_labels(table.values, str(source))
    pixels = read_pictures([source.parent / name for name in table.names], listener)
    return Labelled("pixels", pixels, labels, classes, tuple(table.names))


def read_class_folders(source: Path, listener: Listener = ignore) -> Labelled:
    """The pictures in grey, class by class and in natural order; other and hidden files are left out."""
    folders = [entry for entry in _entries(source) if entry.is_dir()]
    loose = next((entry for entry in _entries(source) if is_picture(entry)), None)
    if loose is not None or not folders:
        what = f"has the picture {loose.name} in no class" if loose else "has no folder in it"
        raise FileFormatError(
            f"{source} {what}; expected one folder for each class, with pictures ({', '.join(SUFFIXES)})",
            "move the pictures into folders, or list them in a .csv file with the columns file,label",
        )
    files = [file for folder in folders for file in _pictures(folder)]
    labels, classes = number_labels([file.parent.name for file in files], str(source))
    names = tuple(file.relative_to(source).as_posix() for file in files)
    return Labelled("pixels", read_pictures(files, listener), labels, classes, names)


def _entries(folder: Path) -> list[Path]:
    """What is in the folder, hidden things left out, in natural order."""
    visible = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    return sorted(visible, key=lambda entry: natural_key(entry.name))


def _pictures(folder: Path) -> list[Path]:
    files = [entry for entry in _entries(folder) if is_picture(entry)]
    if not files:
        raise FileFormatError(
            f"the folder {folder} has no picture in it; expected at least one ({', '.join(SUFFIXES)})",
            "take the folder away, or put the pictures of its class into it",
        )
    return files


_DEEPEST = 4  # folders below the set's own; the archives have one or two


class _Form(NamedTuple):
    """depth: how many parts of a picture's path are its name. pattern: of that name, the class in group 1."""

    depth: int
    pattern: re.Pattern[str]

    def name(self, file: Path) -> str:
        return "/".join(file.parts[-self.depth :])


_FORMS = {
    "orl": _Form(2, re.compile(r"(s[0-9]+)/[0-9]+\.pgm", re.IGNORECASE)),
    "coil20": _Form(1, re.compile(r"(obj[0-9]+)__[0-9]+\.png", re.IGNORECASE)),
    # The archive has rat-9.gif twice, the second time as rat-09.gif, and figures whose names have no number.
    "mpeg7": _Form(1, re.compile(r"(.+)-[1-9][0-9]*\.gif", re.IGNORECASE)),
}

PUBLISHED = tuple(_FORMS)
"""The sets whose published form is known here."""


def published_places(name: str, folder: Path) -> dict[Path, list[Path]]:
    """The set's pictures by the folder that they lie in, at the folder itself or below it."""
    form = _FORMS[name]
    places: dict[Path, list[Path]] = {}
    for file in _visible_files(folder):
        if form.pattern.fullmatch(form.name(file)):
            places.setdefault(file.parents[form.depth - 1], []).append(file)
    return places


def read_published(name: str, places: dict[Path, list[Path]], listener: Listener = ignore) -> Labelled:
    """The pictures in grey and in natural order, each with the class that its name tells."""
    if len(places) != 1:
        raise DataError(
            f"the pictures of {name} lie in {len(places)} folders: {', '.join(map(str, sorted(places)))[:300]}",
            "keep one of these and move the others away",
        )
    form, (found,) = _FORMS[name], places.values()
    files = sorted(found, key=lambda file: natural_key(str(file)))
    names = tuple(form.name(file) for file in files)
    matches = [form.pattern.fullmatch(file) for file in names]
    labels, classes = number_labels([match[1] for match in matches if match], name)
    return Labelled("pixels", read_pictures(files, listener), labels, classes, names)


def _visible_files(folder: Path) -> Iterator[Path]:
    """Files in the folder and in folders below it, hidden ones left out."""
    for parent, folders, files in os.walk(folder):
        deep = len(Path(parent).relative_to(folder).parts) >= _DEEPEST
        folders[:] = [] if deep else [name for name in folders if not name.startswith(".")]
        yield from (Path(parent, name) for name in files if not name.startswith("."))


class Digits(NamedTuple):
    """The scans, their pixels as descriptors, and the digits they show.

    images: (1797, 8, 8) uint8, 0 paper to 16 ink. descriptors: (1797, 64). labels: (1797,) 0 to 9.
    """

    images: NDArray[np.uint8]
    descriptors: Floats
    labels: Ints


def load_digits() -> Digits:
    """The images, their pixels as descriptors, and which digit each shows."""
    from sklearn import datasets  # slow to import: not for every use of the catalogue

    bundle = datasets.load_digits()
    return Digits(
        bundle.images.astype(np.uint8),
        np.ascontiguousarray(bundle.data, dtype=np.float32),
        bundle.target.astype(np.int64),
    )


def _digits() -> Labelled:
    digits = load_digits()
    labels, classes = number_labels(digits.labels.tolist(), "digits")
    return Labelled("pixels", digits.descriptors, labels, classes, tuple(map(str, range(len(labels)))))


def _letters() -> Labelled:
    from manifind.datasets.synthetic import WORD, make_letters

    letters = make_letters()
    names = tuple(map(str, range(len(letters.labels))))
    return Labelled("points", letters.points, letters.labels, tuple(WORD), names)


BUILT_IN: dict[str, Callable[[], Labelled]] = {"digits": _digits, "letters": _letters}


LABELLED_SETS = (*PUBLISHED, *BUILT_IN)
"""The names that `load_labelled_set` takes."""

_EXPECTED = "expected a folder with one folder for each class, a .csv or .tsv with file,label, or an .npz"


def read_labelled(source: str | os.PathLike[str], listener: Listener = ignore) -> list[Labelled]:
    """Every labelled set that the source holds: one for pictures, one for each array of an .npz file.

    source: a folder with one folder of pictures for each class; a .csv or .tsv file with the columns
    `file` and `label`; an .npz file with `labels`; or a folder with such .npz files, which are all read.
    """
    path = Path(source)
    with readable(path):
        if path.is_dir():
            archives = _archives(path)
            if not archives:
                return [read_class_folders(path, listener)]
            return [labelled for archive in archives for labelled in read_label_arrays(archive)]
        check_regular_file(path, _EXPECTED)
        if path.suffix.lower() == ".npz":
            return read_label_arrays(path)
        if path.suffix.lower() in (".csv", ".tsv"):
            return [read_picture_table(path, listener)]
    raise FileFormatError(f"{path} has the suffix {path.suffix!r}; {_EXPECTED}", "name one of these")


def load_labelled_set(name: str, root: Path, listener: Listener = ignore) -> list[Labelled]:
    """A labelled set of the catalogue in the form that lies in `root`/`name`: arrays, or published pictures."""
    dataset, folder = find_set(name), root / name
    if name in BUILT_IN:
        return [BUILT_IN[name]()]
    if name not in PUBLISHED:
        raise InputError(
            f"{name} has no labels: its ground truth is {dataset.truth}",
            f"the labelled sets are {', '.join(LABELLED_SETS)}",
        )
    if _archives(folder):
        return read_labelled(folder, listener)
    places = published_places(name, folder)
    if not places:
        raise DataError(
            f"{folder} has neither .npz files nor the published pictures of {name}; "
            f"expected {dataset.items} items: {dataset.truth}",
            f"`manifind data fetch {name}` gets them",
        )
    with readable(folder):
        return [read_published(name, places, listener)]


def labelled_forms(name: str, root: Path) -> list[Path]:
    """From where `load_labelled_set` would read the set: .npz files, or the folder that has the pictures."""
    if name not in PUBLISHED:
        return []
    return _archives(root / name) or sorted(published_places(name, root / name))


def _archives(folder: Path) -> list[Path]:
    archives = (file for file in folder.glob("*.npz") if not file.name.startswith("."))
    return sorted(archives, key=lambda file: natural_key(file.name))
