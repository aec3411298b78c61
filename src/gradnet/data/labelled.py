"""The door for labelled sets: your own in any of three forms, and the catalogue's by name."""

from __future__ import annotations

import os
from pathlib import Path

from gradnet.data.built_in import BUILT_IN
from gradnet.data.catalogue import find_set
from gradnet.data.class_folders import read_class_folders
from gradnet.data.label_arrays import read_label_arrays
from gradnet.data.label_table import read_picture_table
from gradnet.data.labels import Labelled, natural_key
from gradnet.data.published import PUBLISHED, published_places, read_published
from gradnet.errors import DataError, FileFormatError, InputError
from gradnet.formats.regular_file import check_regular_file, readable
from gradnet.progress import Listener, ignore

__all__ = ["LABELLED_SETS", "Labelled", "labelled_forms", "load_labelled_set", "read_labelled"]

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
            f"`gradnet data fetch {name}` gets them",
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
