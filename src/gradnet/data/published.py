"""The published forms of ORL, COIL-20 and MPEG-7: folders of pictures whose names tell the class."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gradnet.data.labels import Labelled, natural_key, number_labels
from gradnet.data.pictures import read_pictures
from gradnet.errors import DataError
from gradnet.progress import Listener, ignore

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
