"""Folders that may be indexed from the page: which these are, what they hold, whether they have changed."""

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from manifind.images.files import SUFFIXES, path_from_text, path_text
from manifind.server.errors import RefusedError
from manifind.text import visible

_MOST_FOLDERS, _MOST_FILES, _LONGEST_LOOK = 500, 200_000, 3.0  # seconds; of what is listed to choose from


def allowed_folder(text: str, below: Sequence[Path]) -> Path:
    """The real path of a folder that may be indexed; refused in words where it is none.

    Of what is not below one of those folders nothing is told, not even whether it is there.
    """
    named, hint = repr(visible(text))[:200], "choose one of those that /folders lists"
    outside = RefusedError(403, f"{named} is not below a folder that may be indexed from the page", hint)
    try:
        given = Path(path_from_text(text))
        if not given.is_absolute() or ".." in given.parts or "\0" in text:
            raise outside
        real = given.resolve()
        if not any(real.is_relative_to(one.resolve()) for one in below):
            raise outside
        is_there = real.is_dir()
    except (OSError, ValueError, RuntimeError):  # names that are too long, no text, or links in a circle
        raise outside from None
    if not is_there:
        raise RefusedError(404, f"there is no folder {named}", hint)
    return real


class Listing(NamedTuple):
    """Folders to choose from. is_whole: whether these are all that there are."""

    folders: list[dict[str, Any]]
    is_whole: bool


def list_folders(below: Sequence[Path]) -> Listing:
    """The folders with pictures that may be indexed, and how many pictures each holds with all below it."""
    found: dict[Path, int] = {}
    seen, end = 0, time.monotonic() + _LONGEST_LOOK
    for root in (one.resolve() for one in below):
        for place, names in _walk(root):
            seen += len(names) + 1
            if seen > _MOST_FILES or len(found) > _MOST_FOLDERS or time.monotonic() > end:
                return Listing(_as_listed(found, below), False)
            if n := sum(name.lower().endswith(SUFFIXES) for name in names):
                for folder in (place, *place.parents):
                    found[folder] = found.get(folder, 0) + n
                    if folder == root:
                        break
    return Listing(_as_listed(found, below), True)


def _as_listed(found: dict[Path, int], below: Sequence[Path]) -> list[dict[str, Any]]:
    roots = [one.resolve() for one in below]

    def name(folder: Path) -> str:
        root = next(one for one in roots if folder.is_relative_to(one))
        return path_text(folder.relative_to(root.parent).as_posix())

    return [{"path": path_text(str(one)), "name": name(one), "pictures": found[one]} for one in sorted(found)]


def _walk(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Every folder with the names of its files; without what is hidden, and without links to folders."""
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not Path(place, name).is_symlink())
        yield Path(place), sorted(name for name in names if not name.startswith("."))


def looks_of(folder: Path) -> str | None:
    """A digest of the names, sizes and times of all files below a folder; None where it is not there."""
    if not folder.is_dir():
        return None
    digest = hashlib.sha256()
    for place, names in _walk(folder):
        for name in names:
            with suppress(OSError):  # gone since
                status = os.stat(place / name)
                digest.update(f"{path_text(str(place / name))}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()
