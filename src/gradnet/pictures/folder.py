"""What a folder holds: pictures, files that claim to be, and others, which are left alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gradnet.errors import InputError
from gradnet.pictures.files import path_text
from gradnet.pictures.kinds import SUFFIXES

_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"II*\0", b"MM\0*", b"GIF8")
"""How files begin that are pictures whatever they are called; BMP's two letters would be found in too many others."""


@dataclass(frozen=True)
class Found:
    """A file that may be a picture. path: below the folder, with slashes. bytes, modified: of the file."""

    path: str
    file: Path
    bytes: int
    modified: int


@dataclass
class Inventory:
    """pictures: in the order of their paths. problems: path and reason. others: paths of what is something else.

    unreadable: paths of files and folders that could not be looked at, so that nobody knows what is there.
    """

    pictures: list[Found] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)

    def refuse(self, path: str, reason: str) -> None:
        """Note that a file or a folder cannot be looked at."""
        self.problems.append((path, reason))
        self.unreadable.add(path)


def take_inventory(folder: Path) -> Inventory:
    """All pictures below a folder. Hidden files are left out, and links to folders are not followed."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder", "give a folder of pictures")
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise InputError(
            f"{folder} cannot be read: {error.strerror or error}", "check that it is yours to read"
        ) from error
    inventory = Inventory()
    for path, entry in _walk(folder, folder, inventory):
        _enter(path, entry, inventory)
    inventory.pictures.sort(key=lambda found: found.path)
    inventory.problems.sort()
    return inventory


def _walk(folder: Path, root: Path, inventory: Inventory) -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        inventory.refuse(_below(folder, root), f"cannot be entered: {error.strerror or error}")
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), root, inventory)
        else:
            yield _below(Path(entry.path), root), entry


def _enter(path: str, entry: os.DirEntry[str], inventory: Inventory) -> None:
    try:
        status = entry.stat()  # of what a link leads to
        if stat.S_ISDIR(status.st_mode):
            inventory.refuse(path, "is a link to a folder, which is not followed")
            return
        if not stat.S_ISREG(status.st_mode):
            inventory.others.add(path)
            return
        if not entry.name.lower().endswith(SUFFIXES) and not _begins_like_a_picture(entry.path):
            inventory.others.add(path)
            return
    except OSError as error:
        inventory.refuse(path, f"cannot be read: {error.strerror or error}")
        return
    inventory.pictures.append(Found(path, Path(entry.path), status.st_size, status.st_mtime_ns))


def _begins_like_a_picture(file: str) -> bool:
    with open(file, "rb") as handle:
        head = handle.read(12)
    return (
        head.startswith(_MAGIC) or (head[:4] == b"RIFF" and head[8:] == b"WEBP") or head[4:12] == b"ftypheic"
    )


def _below(file: Path, root: Path) -> str:
    return path_text(file.relative_to(root).as_posix())
