"""Reading a collection: nothing is believed before it is checked."""

from __future__ import annotations

import hashlib
import sqlite3
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manifind.collection.database import reading, refuse_link
from manifind.collection.format import (
    DAMAGED,
    DATABASE,
    SEGMENT_NAME,
    SEGMENTS,
    DamagedRecordError,
    LastCommit,
    RowSum,
    check_checksum,
    check_schema,
    read_last_commit,
    usable_last_commit,
)
from manifind.collection.items import ItemRows, read_additions, read_items
from manifind.collection.manifest import Manifest
from manifind.errors import CollectionError, ManifindError
from manifind.io.npy import read_stored_arrays
from manifind.search.live_index import AddedItems
from manifind.text import count

_BEYOND = 1 << 63  # the largest number of SQLite is one less


@dataclass(frozen=True)
class Snapshot:
    """One consistent version of the truth: the manifest, the items, and the files it refers to."""

    directory: Path
    manifest: Manifest
    items: ItemRows
    added: AddedItems
    segments: dict[str, Path]
    sizes: dict[str, int]
    digests: dict[str, str]


def read_snapshot(path: str | Path) -> Snapshot:
    """What the collection at `path` says of itself, with the size of every segment checked."""
    directory = Path(path)
    last = usable_last_commit(directory)  # before the tables: a commit may come in between
    with reading(directory) as database:
        return _read(directory, database, last)


def read_manifest(path: str | Path) -> Manifest:
    """What the collection at `path` says of itself, without its items, which are not compared with anything."""
    directory = Path(path)
    with reading(directory) as database:
        return Manifest.read(database.execute("SELECT key, value FROM manifest"), directory / DATABASE)


def read_commit(path: str | Path) -> Any:
    """What names the present version of the collection at `path`: another one after every commit."""
    with reading(Path(path)) as database:
        return database.execute("SELECT value FROM manifest WHERE key = 'commit'").fetchone()


def verify_digests(snapshot: Snapshot) -> None:
    """Compare the content of every segment with the digest that was recorded when it was written."""
    for role, file in snapshot.segments.items():
        if _digest(file) != snapshot.digests[role]:
            raise CollectionError(f"{file} is damaged: its content differs from the digest that was recorded", DAMAGED)
    try:
        read_last_commit(snapshot.directory)
    except DamagedRecordError as error:
        raise CollectionError(
            str(error), "delete it: the collection itself is whole, and a later commit makes it anew"
        ) from error


def read_array(snapshot: Snapshot, role: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """A memory-mapped float32 segment of exactly this shape."""
    file = snapshot.segments[role]
    try:
        array: np.ndarray[Any, Any] = np.lib.format.open_memmap(file, mode="r")  # takes no objects
    except Exception as error:  # numpy raises many kinds on a damaged header
        raise CollectionError(f"{file} is damaged: {error}", DAMAGED) from error
    if array.dtype != np.float32 or array.shape != shape or not array.flags.c_contiguous:
        raise CollectionError(
            f"{file} holds {array.dtype} of shape {array.shape}, and float32 of shape {shape} was expected", DAMAGED
        )
    return array


def check_mapped(rows: Any) -> None:
    """Refuse a memory-mapped array whose file has become shorter; a file that was deleted keeps its content.

    The map keeps the file open and is asked itself, since another file may stand at the path by now.
    """
    if not isinstance(rows, np.memmap):
        return
    size, expected = rows._mmap.size(), rows.offset + rows.nbytes  # type: ignore[attr-defined]
    if size < expected:
        raise CollectionError(
            f"{rows.filename} is damaged: it has {size} bytes, and had {expected} when it was opened", DAMAGED
        )


def read_arrays(snapshot: Snapshot, role: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an npz segment by name."""
    file = snapshot.segments[role]
    try:
        return read_stored_arrays(file)
    except (ManifindError, OSError) as error:
        raise CollectionError(f"{file} is damaged: {error}", DAMAGED) from error


def read_cached_arrays(snapshot: Snapshot, role: str) -> dict[str, np.ndarray[Any, Any]]:
    """The same, after its content was compared with its digest: for a segment that could be made anew."""
    if role not in snapshot.segments:
        raise CollectionError(f"{snapshot.directory} lacks its {role}", DAMAGED)
    file = snapshot.segments[role]
    if _digest(file) != snapshot.digests[role]:
        raise CollectionError(f"{file} is damaged: its content differs from its digest", DAMAGED)
    return read_arrays(snapshot, role)


def _digest(file: Path) -> str:
    try:
        with open(file, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise CollectionError(
            f"{file} is gone", "refresh the collection, which may have been refitted since, and try again"
        ) from error
    except OSError as error:
        raise CollectionError(f"{file} cannot be read: {error.strerror or error}", DAMAGED) from error


def _read(directory: Path, database: sqlite3.Connection, last: LastCommit | None) -> Snapshot:
    file, total = directory / DATABASE, RowSum()
    entries = database.execute("SELECT key, value FROM manifest").fetchall()
    manifest = Manifest.read(entries, file)
    check_schema(database, file)  # of another format it may be otherwise
    rows = database.execute("SELECT role, name, size, sha256 FROM segments").fetchall()
    items = read_items(database, str(file), total)
    added = read_additions(database, str(file), total, manifest.sizes, items)
    check_checksum(file, entries, rows, total, last)
    _check_counts(directory, manifest, len(items), len(added))
    _check_next(directory, manifest, items)
    segments = _existing_segments(directory, manifest, rows)
    missing = manifest.roles - set(segments)
    if missing:
        raise CollectionError(f"{directory} lacks its {', '.join(sorted(missing))}", DAMAGED)
    sizes, digests = {row[0]: row[2] for row in rows}, {row[0]: row[3] for row in rows}
    return Snapshot(directory, manifest, items, added, segments, sizes, digests)


def _check_counts(directory: Path, manifest: Manifest, n_items: int, n_added: int) -> None:
    """Whether as many were added and removed since the fit as the manifest says."""
    n_fitted, changes = manifest.sizes.items, manifest.entries.get("changes")
    if changes != {"added": n_added, "removed": n_fitted - (n_items - n_added)}:
        raise CollectionError(
            f"{directory} has {count(n_items, 'item')} where {n_fitted} were fitted, "
            f"and since then, it says, {str(changes)[:200]}",
            DAMAGED,
        )


def _check_next(directory: Path, manifest: Manifest, items: ItemRows) -> None:
    """Whether the next item would get a position and a number that no item has."""
    numbers = items.ids if items.ids and isinstance(items.ids[0], int) else []
    free = {
        "next_position": max(manifest.sizes.items, *(last + 1 for last in items.positions[-1:].tolist()), 0),
        "next_id": max(0, max(numbers, default=-1) + 1),
    }
    for name, least in free.items():
        value = manifest.entries.get(name)
        if type(value) is not int or not least <= value <= _BEYOND:
            raise CollectionError(
                f"{directory} is damaged: its {name} is {str(value)[:60]}, "
                f"and a whole number of at least {least} was expected",
                DAMAGED,
            )


def _existing_segments(directory: Path, manifest: Manifest, rows: list[Any]) -> dict[str, Path]:
    """The files by role. An index that is not what was written counts as missing where it can be made anew."""
    found = {}
    refuse_link(directory / SEGMENTS)
    for role, name, size, _ in rows:
        _check_name(directory, role, name)
        file = directory / SEGMENTS / name
        problem = _problem(file, size)
        if problem is None:
            found[role] = file
        elif role in manifest.roles:
            raise CollectionError(f"{file} {problem}", DAMAGED)
    return found


def _check_name(directory: Path, role: Any, name: Any) -> None:
    if not isinstance(name, str) or not SEGMENT_NAME.fullmatch(name) or not name.startswith(f"{role}-"):
        raise CollectionError(f"{directory} refers to {repr(name)[:200]}, which is no name of a segment", DAMAGED)


def _problem(file: Path, size: Any) -> str | None:
    """Why this is not a plain file of the recorded size, or None."""
    try:
        status = file.lstat()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if not stat.S_ISREG(status.st_mode):
        return "is not a plain file"
    if status.st_size != size:
        recorded = f"{size:,}" if type(size) is int else repr(size)[:60]
        return f"has {count(status.st_size, 'byte')}, and {recorded} were recorded"
    return None
