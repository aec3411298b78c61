"""The files of pictures: their names as text, the folders that may be shown, and the file of an item below them.

A collection may come from anywhere, so it does not decide which folder is read, written or shown: that is the folder
which the user names, or from which this user has indexed the collection. The latter is recorded outside of
collections, in `indexed-folders.json` below $XDG_STATE_HOME/gradnet (~/.local/state/gradnet if that is not set).
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from gradnet.errors import InputError
from gradnet.whole_files import put_in_place

_ESCAPE = re.compile(r"\\x[0-9a-f]{2}")
_MOST_FOLDERS = 10_000  # that are remembered, the last ones


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
    parts = re.split(rf"({_ESCAPE.pattern})", text)
    named = b"".join(
        bytes.fromhex(part[2:]) if number % 2 else part.encode(errors="surrogateescape")
        for number, part in enumerate(parts)
    )
    return os.fsdecode(named)


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
    recorded = _recorded().get(_name_of(manifest))
    return () if recorded is None else (Path(path_from_text(recorded)),)


def remember_folder(manifest: Mapping[str, Any], folder: Path) -> None:
    """Record that this user has indexed a collection from a folder; if that fails, nothing is shown later."""
    recorded = _recorded()
    name, place = _name_of(manifest), path_text(str(folder.absolute()))
    if recorded.get(name) == place:
        return
    recorded.pop(name, None)
    kept = dict(list(recorded.items())[-(_MOST_FOLDERS - 1) :]) | {name: place}
    with suppress(InputError):
        put_in_place(_record(), json.dumps(kept, indent=1).encode())


def _name_of(manifest: Mapping[str, Any]) -> str:
    """What names a collection; one of version 1 only has the name of its fit."""
    return str(manifest.get("collection") or manifest.get("fit"))


def _record() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "gradnet" / "indexed-folders.json"


def _recorded() -> dict[str, str]:
    """Folders by what names their collections; empty where nothing can be read."""
    try:
        found = json.loads(_record().read_bytes())
    except (OSError, ValueError, RuntimeError):  # the last where nobody knows the user's home
        return {}
    is_record = isinstance(found, dict) and all(isinstance(folder, str) for folder in found.values())
    return found if is_record else {}
