"""Labelled pictures as a folder of folders: one for each class, named after it."""

from __future__ import annotations

from pathlib import Path

from gradnet.data.labels import Labelled, natural_key, number_labels
from gradnet.data.pictures import SUFFIXES, is_picture, read_pictures
from gradnet.errors import FileFormatError
from gradnet.progress import Listener, ignore


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
