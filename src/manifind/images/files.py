"""Image files: their names as text, what a folder holds, which file is which item, which may be shown.

A collection may come from anywhere, so it does not decide which folder is read, written or shown: that is the folder
which the user names, or from which this user has indexed the collection (`user_state`).
"""

import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from manifind.errors import InputError
from manifind.user_state import FOLDERS, recall, remember

SUFFIXES = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif", ".heic", ".heif")
"""How files end that claim to be pictures, in small letters."""

FINGERPRINT = "fingerprint"
"""The field with a perceptual hash of the picture, in hexadecimal digits."""

FINGERPRINT_BITS = 256

EXIF_FIELDS = ("taken", "latitude", "longitude")
"""Fields that are read from a file, and that users may correct."""

NOT_FOR_PEOPLE = ("sha256", "modified", FINGERPRINT, "exif")
"""Fields that only serve to know a file again."""


def picture_fields(found: dict[str, Any], before: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Metadata of a picture: those of its file, except where the user has set a field.

    found: in the file. before: what the item had. own: the user's fields. A value None takes a field away that only
    the former file had.
    """
    users = {name for name in EXIF_FIELDS if name in before and name not in before.get("exif", EXIF_FIELDS)}
    read = {name: found.get(name) for name in EXIF_FIELDS if name not in users and name not in own}
    exif = [name for name, value in read.items() if value is not None]
    return {FINGERPRINT: None, **found, **read, "exif": exif, **own} | {
        name: before[name] for name in users - own.keys()
    }


_ESCAPE = re.compile(r"\\x[0-9a-f]{2}")


class PictureFile(NamedTuple):
    """file: its real path. sha256: of the content that was indexed; whoever shows it compares it with what was read."""

    file: Path
    sha256: str


def path_text(path: str) -> str:
    """A path below a folder as text that no other path has.

    Bytes that are not UTF-8 become `\\xff` and the like; a name in which that stands literally has its backslash
    written as `\\x5c`.
    """
    literal = _ESCAPE.sub(lambda found: rf"\x5c{found[0][1:]}", path)
    return os.fsencode(literal).decode(errors="backslashreplace")


def path_from_text(text: str) -> str:
    """The path that a text stands for."""
    # Byte by byte, since several escapes may make one character.
    encoded, escape = text.encode(errors="surrogateescape"), _ESCAPE.pattern.encode()
    return os.fsdecode(re.sub(escape, lambda found: bytes.fromhex(found[0][2:].decode()), encoded))


def picture_file(folders: Sequence[Path], fields: Mapping[str, Any]) -> PictureFile | None:
    """The file of an item, if it is a regular file whose real path is below one of the folders; else None.

    fields: the metadata of the item.
    """
    text, digest = fields.get("path"), fields.get("sha256")
    if not isinstance(text, str) or not isinstance(digest, str) or "\0" in text:
        return None
    below = PurePosixPath(path_from_text(text))
    if below.is_absolute() or ".." in below.parts or not below.parts:
        return None
    with suppress(OSError, ValueError):
        real = [folder.resolve() for folder in folders]
        for folder in real:
            file = (folder / below).resolve()
            if any(file.is_relative_to(allowed) for allowed in real) and stat.S_ISREG(file.stat().st_mode):
                return PictureFile(file, digest)
    return None


def shown_folders(manifest: Mapping[str, Any], given: Sequence[Path] = ()) -> tuple[Path, ...]:
    """The folders from which pictures of a collection may be shown.

    given: by the user. Where there are none: the one from which this user has indexed the collection, if any.
    """
    for folder in given:
        if not folder.is_dir():
            raise InputError(f"--images {folder} is not a folder", "give the folder that was indexed")
    if given:
        return tuple(given)
    recorded = recall(FOLDERS).get(_name_of(manifest))
    return () if recorded is None else (Path(path_from_text(recorded)),)


def remember_folder(manifest: Mapping[str, Any], folder: Path) -> None:
    """Record that this user has indexed a collection from a folder; if that fails, nothing is shown later."""
    remember(FOLDERS, _name_of(manifest), path_text(str(folder.absolute())))


def _name_of(manifest: Mapping[str, Any]) -> str:
    """What names a collection; one of version 1 only has the name of its fit."""
    return str(manifest.get("collection") or manifest.get("fit"))


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
    inventory = Inventory()

    def below(file: Path) -> str:
        return path_text(file.relative_to(folder).as_posix())

    def refuse(error: OSError) -> None:
        place, reason = Path(error.filename), error.strerror or error
        if place == folder:
            raise InputError(f"{folder} cannot be read: {reason}", "check that it is yours to read") from error
        inventory.refuse(below(place), f"cannot be entered: {reason}")

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        links = [name for name in folders if Path(place, name).is_symlink()]
        for file in (Path(place, name) for name in (*links, *names) if not name.startswith(".")):
            _enter(below(file), file, inventory)
    inventory.pictures.sort(key=lambda found: found.path)
    inventory.problems.sort()
    return inventory


def _enter(path: str, file: Path, inventory: Inventory) -> None:
    try:
        status = file.stat()  # of what a link leads to
        is_file = stat.S_ISREG(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            inventory.refuse(path, "is a link to a folder, which is not followed")
        elif is_file and (file.name.lower().endswith(SUFFIXES) or _begins_like_a_picture(file)):
            inventory.pictures.append(Found(path, file, status.st_size, status.st_mtime_ns))
        else:
            inventory.others.add(path)
    except OSError as error:
        inventory.refuse(path, f"cannot be read: {error.strerror or error}")


def _begins_like_a_picture(file: Path) -> bool:
    with file.open("rb") as handle:
        head = handle.read(12)
    return head.startswith(_MAGIC) or (head[:4] == b"RIFF" and head[8:] == b"WEBP") or head[4:12] == b"ftypheic"


@dataclass(frozen=True)
class Known:
    """What a collection records of a file: where it was, the digest of its content, its size, when it changed."""

    path: str
    sha256: str
    bytes: int
    modified: int


@dataclass
class Matched:
    """new: files that nobody knows. changed: items whose file has another content. moved: whose file is elsewhere.

    gone: items without a file. same: items whose file is where it was, as it was. unread: items whose file may be
    there, but could not be read. digests: of every file, by path.
    """

    new: list[Found] = field(default_factory=list)
    changed: list[tuple[Any, Found]] = field(default_factory=list)
    moved: list[tuple[Any, Found]] = field(default_factory=list)
    gone: list[Any] = field(default_factory=list)
    same: list[Any] = field(default_factory=list)
    unread: list[Any] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)


def match(
    files: Sequence[Found],
    known: Mapping[Any, Known],
    digest: Callable[[Found], str | None],
    unreadable: Collection[str] = (),
) -> Matched:
    """Compare files with items.

    digest: of a file's content, computed only where size or time differ; None where it cannot be read.
    unreadable: paths of further files and of folders that could not be read.
    A file at a known path with the same content is the same item. A file that is new at its path, with the content of
    an item whose file is no longer there, is that item, moved. What is left at a known path has changed.
    """
    matched, id_at = Matched(), {item.path: id_ for id_, item in known.items()}
    hidden, elsewhere, unmoved = set(unreadable), list[Found](), list[Found]()
    for file in files:
        item = known.get(id_at.get(file.path))
        untouched = item is not None and (item.bytes, item.modified) == (file.bytes, file.modified)
        found = item.sha256 if item is not None and untouched else digest(file)
        if found is None:
            hidden.add(file.path)
            continue
        matched.digests[file.path] = found
        if item is not None and found == item.sha256:
            matched.same.append(id_at[file.path])
        else:
            elsewhere.append(file)
    matched.unread = [id_ for id_, item in known.items() if _is_below(item.path, hidden)]
    settled = {*matched.same, *matched.unread}
    left = dict.fromkeys(id_ for id_ in known if id_ not in settled)
    lost: dict[str, list[Any]] = defaultdict(list)
    for id_ in left:
        lost[known[id_].sha256].append(id_)
    for file in elsewhere:
        if candidates := lost[matched.digests[file.path]]:
            id_ = candidates.pop(0)
            del left[id_]
            matched.moved.append((id_, file))
        else:
            unmoved.append(file)
    for file in unmoved:
        id_ = id_at.get(file.path)
        if id_ in left:
            del left[id_]
            matched.changed.append((id_, file))
        else:
            matched.new.append(file)
    matched.gone = list(left)
    return matched


def _is_below(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of some places, or inside one of them."""
    return bool(places) and any(str(place) in places for place in (path, *PurePosixPath(path).parents))
