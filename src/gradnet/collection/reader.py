"""Reading a collection: nothing is believed before it is checked."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradnet.collection.layout import (
    APPLICATION_ID,
    DATABASE,
    ROLES,
    SEGMENT_NAME,
    SEGMENTS,
    VERSION,
    tables_digest,
)
from gradnet.errors import CollectionError, GradNetError
from gradnet.formats.arrays_in_npz import read_npz_arrays, read_npz_headers

_DAMAGED = "restore the collection from a backup, or index the source again"


@dataclass(frozen=True)
class Snapshot:
    """One consistent version of the truth: the manifest, the ids, and the files it refers to."""

    directory: Path
    manifest: dict[str, Any]
    ids: list[Any]
    segments: dict[str, Path]
    sizes: dict[str, int]
    digests: dict[str, str]


def read_snapshot(path: str | Path) -> Snapshot:
    """What the collection at `path` says of itself, with the size of every segment checked."""
    directory = Path(path)
    with _opened(directory) as database:
        return _read(directory, database)


def read_commit(path: str | Path) -> Any:
    """What names the present version of the collection at `path`: another one once it has been replaced."""
    with _opened(Path(path)) as database:
        return database.execute("SELECT value FROM manifest WHERE key = 'commit'").fetchone()


def is_collection(directory: Path) -> bool:
    """Whether a collection of ours stands there, whole or damaged; nothing is touched to find out."""
    file = directory / DATABASE
    if not file.is_file():
        return False
    with open(file, "rb") as handle:
        header = handle.read(72)
    return header[:16] == b"SQLite format 3\0" and header[68:] == APPLICATION_ID.to_bytes(4)


def verify_digests(snapshot: Snapshot) -> None:
    """Compare the content of every segment with the digest that was recorded when it was written."""
    for role, file in snapshot.segments.items():
        try:
            with open(file, "rb") as handle:
                digest = hashlib.file_digest(handle, "sha256").hexdigest()
        except OSError as error:
            raise CollectionError(f"{file} cannot be read: {error.strerror or error}", _DAMAGED) from error
        if digest != snapshot.digests[role]:
            raise CollectionError(
                f"{file} is damaged: its content differs from the digest that was recorded", _DAMAGED
            )


def read_array(snapshot: Snapshot, role: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """A memory-mapped float32 segment of exactly this shape."""
    file = snapshot.segments[role]
    try:
        array: np.ndarray[Any, Any] = np.lib.format.open_memmap(file, mode="r")  # takes no objects
    except Exception as error:  # numpy raises many kinds on a damaged header
        raise CollectionError(f"{file} is damaged: {error}", _DAMAGED) from error
    if array.dtype != np.float32 or array.shape != shape or not array.flags.c_contiguous:
        raise CollectionError(
            f"{file} holds {array.dtype} of shape {array.shape}, and float32 of shape {shape} was expected",
            _DAMAGED,
        )
    return array


def read_arrays(snapshot: Snapshot, role: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an npz segment by name."""
    file = snapshot.segments[role]
    try:
        return read_npz_arrays(file, list(read_npz_headers(file)))
    except (GradNetError, OSError) as error:
        raise CollectionError(f"{file} is damaged: {error}", _DAMAGED) from error


@contextmanager
def _opened(directory: Path) -> Iterator[sqlite3.Connection]:
    """The database of a collection; whatever it raises becomes a CollectionError."""
    try:
        if not (directory / DATABASE).is_file():
            problem = "holds no collection" if directory.exists() else "does not exist"
            raise CollectionError(
                f"{directory} {problem}", "make one with `gradnet index FILE COLLECTION` or GradNet.save"
            )
        with closing(_connect(directory)) as database:
            if database.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                raise CollectionError(
                    f"{directory / DATABASE} is no gradnet collection", "give the path of a collection"
                )
            yield database
    except OSError as error:
        raise CollectionError(
            f"{directory} cannot be read: {error.strerror or error}", "check that it is yours to read"
        ) from error
    except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError) as error:
        raise CollectionError(f"{directory / DATABASE} is damaged: {error}", _DAMAGED) from error


def _connect(directory: Path) -> sqlite3.Connection:
    # A directory that cannot be written to has no room for SQLite's shared memory; nobody else can write
    # there either, so the file may be taken as unchanging.
    mode = "mode=ro" if os.access(directory, os.W_OK) else "mode=ro&immutable=1"
    database = sqlite3.connect(
        f"{(directory / DATABASE).resolve().as_uri()}?{mode}", uri=True, isolation_level=None
    )
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def _read(directory: Path, database: sqlite3.Connection) -> Snapshot:
    database.execute("BEGIN")  # all that follows sees one version
    entries = database.execute("SELECT key, value FROM manifest").fetchall()
    manifest = _parse_manifest(directory, entries)
    rows = database.execute("SELECT role, name, size, sha256 FROM segments").fetchall()
    ids = [row[0] for row in database.execute("SELECT id FROM items ORDER BY position")]
    _check_tables(directory, manifest, entries, rows, ids)
    segments = {role: _check_segment(directory, role, name, size) for role, name, size, _ in rows}
    missing = set(ROLES) - set(segments)
    if missing:
        raise CollectionError(f"{directory} lacks its {', '.join(sorted(missing))}", _DAMAGED)
    sizes, digests = {row[0]: row[2] for row in rows}, {row[0]: row[3] for row in rows}
    return Snapshot(directory, manifest, ids, segments, sizes, digests)


def _parse_manifest(directory: Path, entries: list[tuple[Any, Any]]) -> dict[str, Any]:
    where = f"the manifest in {directory / DATABASE}"
    try:
        manifest = {key: json.loads(value) for key, value in entries}
        if manifest["format"] != VERSION:
            found = manifest["format"]
            raise CollectionError(
                f"{directory} has format {found!r}, and this version of gradnet reads format {VERSION}",
                "update gradnet",
            )
        shape = manifest["shape"]
        sizes = [shape[name] for name in ("items", "dimension", "feature_dimension")]
        tables = [manifest[name] for name in ("preprocess", "queries", "settings", "info", "versions")]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CollectionError(f"{where} is damaged: {error!r}", _DAMAGED) from error
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise CollectionError(f"{where} claims a shape of {shape}", _DAMAGED)
    if not all(isinstance(table, dict) for table in tables):
        raise CollectionError(f"{where} is damaged: a value where a table of names was expected", _DAMAGED)
    return manifest


def _check_tables(
    directory: Path, manifest: dict[str, Any], entries: list[Any], rows: list[Any], ids: list[Any]
) -> None:
    try:
        digest = tables_digest(entries, rows, ids)
    except TypeError as error:
        raise CollectionError(f"{directory / DATABASE} is damaged: {error}", _DAMAGED) from error
    if digest != manifest.get("digest"):
        raise CollectionError(
            f"{directory / DATABASE} is damaged: its tables differ from the digest that was recorded",
            _DAMAGED,
        )
    if len(ids) != manifest["shape"]["items"]:
        raise CollectionError(
            f"{directory} names {len(ids)} ids for {manifest['shape']['items']} items", _DAMAGED
        )
    if set(map(type, ids)) not in ({str}, {int}):
        raise CollectionError(
            f"the ids in {directory / DATABASE} are neither all strings nor all integers", _DAMAGED
        )


def _check_segment(directory: Path, role: Any, name: Any, size: Any) -> Path:
    """The path of a segment, which must be a plain file of the recorded size inside the collection."""
    if not isinstance(name, str) or not SEGMENT_NAME.fullmatch(name) or not name.startswith(f"{role}-"):
        raise CollectionError(f"{directory} refers to {name!r}, which is no name of a segment", _DAMAGED)
    file = directory / SEGMENTS / name
    try:
        status = file.lstat()
    except FileNotFoundError:
        raise CollectionError(f"{file} is missing", _DAMAGED) from None
    except OSError as error:
        raise CollectionError(f"{file} cannot be read: {error.strerror or error}", _DAMAGED) from error
    if not stat.S_ISREG(status.st_mode):
        raise CollectionError(f"{file} is not a plain file", _DAMAGED)
    if status.st_size != size:
        raise CollectionError(f"{file} has {status.st_size} bytes, and {size} were recorded", _DAMAGED)
    return file
