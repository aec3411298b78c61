"""The format on disk, version 2: names, tables, strict JSON, the manifest and its checksum.

Version 2 has two more entries in the manifest: `collection`, which names the collection through all its fits, and
`sequence`, which counts commits (see `last_commit`). Version 1 is read as it is, and becomes version 2 with its next
commit.

A commit that SQLite still keeps in its write-ahead log is lost without an error when a byte of the log changes: SQLite
takes the rest of the log for an interrupted write, and shows the version before. The log is therefore merged into the
database at the end of every commit. Where a reader holds that up, the commit is recorded here before it is reported
as done, and whoever opens an older version than the recorded one gets an error.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import sqlite3
import stat
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from manifind.errors import CollectionError, InputError
from manifind.files import atomic_write

DAMAGED = "restore the collection from a backup, or index the source again"


VERSION = 2
READABLE = (1, 2)
DATABASE = "collection.sqlite"
SEGMENTS = "segments"
APPLICATION_ID = 0x67726164  # "grad", in SQLite's header, so that no other database is taken for ours

ROLES = {
    "descriptors": "npy",
    "lengths": "npy",
    "features": "npy",
    "graph": "npz",
    "model": "safetensors",
    "descriptor_index": "npz",
    "feature_index": "npz",
}
"""What a segment may hold, and how it ends."""

FULL = {"descriptors", "lengths", "features", "graph", "model"}
"""Roles without which nothing can be added or refitted. Indexes beside them are a cache."""

COMPRESSED = {"graph", "descriptor_index", "feature_index"}
"""Roles of a collection that only answers."""

SEGMENT_NAME = re.compile(
    rf"({'|'.join(ROLES)})-[0-9a-f]{{16}}\.(npy|npz|safetensors)"  # the regular expression of our own names
)

SCHEMA = """
CREATE TABLE IF NOT EXISTS manifest (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS segments (
    role TEXT PRIMARY KEY, name TEXT NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS items (position INTEGER PRIMARY KEY, id NOT NULL UNIQUE, metadata TEXT);
CREATE TABLE IF NOT EXISTS additions (
    position INTEGER PRIMARY KEY, length REAL NOT NULL, descriptor BLOB NOT NULL, feature BLOB NOT NULL,
    neighbours BLOB NOT NULL, distances BLOB NOT NULL
);
"""
TABLES = ("manifest", "segments", "items", "additions")

_MODULUS = 1 << 256


class RowSum:
    """One digest of any number of rows, in any order, that follows as rows come and go.

    The sum of the rows' digests: SQLite does not notice a changed byte, and reading every row for every commit
    would make a small one cost as much as a large collection. It finds accidents; whoever means harm can compute
    it too.
    """

    def __init__(self, text: str = "") -> None:
        self._sum = int(text, 16) if text else 0

    def add_items(self, rows: Iterable[Sequence[Any]], sign: int = 1) -> None:
        """rows: (position, id, metadata)."""
        digest, read = hashlib.sha256, int.from_bytes
        total = 0
        for position, id_, metadata in rows:
            kind = "s" if type(id_) is str else "i"
            total += read(digest(f"{position}\0{kind}{id_}\0{metadata or ''}".encode()).digest())
        self._sum = (self._sum + sign * total) % _MODULUS

    def add_additions(self, rows: Iterable[Sequence[Any]], sign: int = 1) -> None:
        """rows: (position, length, and blobs)."""
        total = 0
        for position, length, *blobs in rows:
            hashed = hashlib.sha256(f"{position}\0{length!r}".encode())
            for blob in blobs:
                hashed.update(f"\0{len(blob)}\0".encode())
                hashed.update(blob)
            total += int.from_bytes(hashed.digest())
        self._sum = (self._sum + sign * total) % _MODULUS

    def __str__(self) -> str:
        return f"{self._sum:064x}"


def tables_digest(manifest: Iterable[Sequence[Any]], segments: Iterable[Sequence[Any]], rows: RowSum) -> str:
    """One digest of everything in the tables.

    It stands in the manifest under "digest", and that row is left out.
    """
    parts = (sorted(list(row) for row in manifest if row[0] != "digest"), sorted(map(list, segments)), str(rows))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


_LONGEST_WHOLE = 300  # characters; a longer whole number may be beyond a double
_DEEPEST = 100


def parse_json(text: str) -> Any:
    """The value of a JSON text; a ValueError for NaN, Infinity, numbers beyond a double, and deep nesting.

    Python's own parser accepts all of these, and whoever uses such a value later fails far from the cause.
    """
    if not isinstance(text, str):
        raise ValueError(f"{type(text).__name__} where a text was expected")
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if text.count("[") + text.count("{") > _DEEPEST:  # most texts need no walk
        _refuse_deep(value)
    return value


def _refuse_deep(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, list | dict)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {_DEEPEST} deep")


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _int(text: str) -> int:
    if len(text) > _LONGEST_WHOLE:
        _float(text)
    return int(text)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


_DECODER = json.JSONDecoder(parse_float=_float, parse_int=_int, parse_constant=_refuse_constant)


def make_tables(database: sqlite3.Connection) -> None:
    """The tables, where they are not there yet."""
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in SCHEMA.split(";"):
        database.execute(statement)


def check_schema(database: sqlite3.Connection, file: Path, only: str | None = None) -> None:
    """Refuse tables that are not as ours, and whatever could run what another wrote: views, triggers, indexes.

    only: one name to look at. A table that is missing is found missing by whoever asks for it.
    """
    for kind, name, sql in sorted(_schema(database) - _own_schema()):
        if only is None or name.lower() == only:  # SQLite does not mind the case of a name
            raise CollectionError(
                f"{file} holds the {kind} {name[:60]!r}, which is none of a collection: {sql[:200]!r}",
                "nothing of it was run; take the collection from somebody whom you trust",
            )


def _schema(database: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """Kind, name and text of everything in a database, with single spaces."""
    rows = database.execute("SELECT type, name, sql FROM sqlite_master")
    return {(str(kind), str(name), " ".join(str(sql or "").split())) for kind, name, sql in rows}


@lru_cache(maxsize=1)
def _own_schema() -> frozenset[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as database:
        make_tables(database)
        return frozenset(_schema(database))


LAST_COMMIT = "collection.last"
_CONTENT = re.compile(rb"([0-9]{1,18}) ([0-9a-f]{64}) ([0-9a-f]{64})\n")
_SIZE = 200  # bytes, more than any content has


class LastCommit(NamedTuple):
    """sequence: how many commits there have been. digest: of all tables after it."""

    sequence: int
    digest: str


class DamagedRecordError(ValueError):
    """A record that is not as it was written; it is of no use, and the next one replaces it."""


def read_last_commit(directory: Path) -> LastCommit | None:
    """The recorded commit; None where there is no record, a DamagedRecordError where it cannot be used."""
    try:
        # Neither through a link, nor waiting for the other end of a pipe.
        handle = os.open(directory / LAST_COMMIT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedRecordError(f"{directory / LAST_COMMIT} cannot be read: {error.strerror}") from error
    try:
        content = os.read(handle, _SIZE) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    finally:
        os.close(handle)
    found = _CONTENT.fullmatch(content)
    if found is None or found[3] != _check(found[1], found[2]):
        raise DamagedRecordError(f"{directory / LAST_COMMIT} is damaged")
    return LastCommit(int(found[1]), found[2].decode())


def usable_last_commit(directory: Path) -> LastCommit | None:
    """The same, None where it is damaged: the collection itself may well be whole."""
    try:
        return read_last_commit(directory)
    except DamagedRecordError:
        return None


def record_last_commit(directory: Path, commit: LastCommit) -> None:
    """Record a commit, unless a later one is recorded already. The commit stands, whether this works or not."""
    known = usable_last_commit(directory)
    if known is not None and known.sequence >= commit.sequence:
        return
    fields = str(commit.sequence).encode(), commit.digest.encode()
    with suppress(OSError), atomic_write(directory / LAST_COMMIT) as partial:
        partial.write_bytes(b"%b %b %b\n" % (*fields, _check(*fields)))


def _check(sequence: bytes, digest: bytes) -> bytes:
    return hashlib.sha256(b"%b %b" % (sequence, digest)).hexdigest().encode()


_T = TypeVar("_T")


def write_checksum(
    database: sqlite3.Connection, directory: Path, rows: RowSum, entries: dict[str, Any]
) -> dict[str, Any]:
    """Put entries into the manifest, with the number of the commit and the digest of all tables beside them.

    rows: items and additions. A collection of version 1 gets here what it lacks. Returns all new entries.
    """
    named = {"collection": _sound_entry(database, "collection", str) or secrets.token_hex(16)}
    numbered = {"format": VERSION, "sequence": _last_sequence(database, directory) + 1}
    changed = {**named, **entries, **numbered, "rows": str(rows)}
    database.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?)", _as_json(changed))
    digest = tables_digest(
        database.execute("SELECT key, value FROM manifest"),
        database.execute("SELECT role, name, size, sha256 FROM segments"),
        rows,
    )
    database.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?)", _as_json({"digest": digest}))
    return {**changed, "digest": digest}


def _last_sequence(database: sqlite3.Connection, directory: Path) -> int:
    """The number of the last commit, also of one that was lost."""
    recorded = usable_last_commit(directory)
    found = _sound_entry(database, "sequence", int) or 0
    return max(found, 0 if recorded is None else recorded.sequence)


def check_checksum(
    file: Path, entries: Iterable[Any], segments: Iterable[Any], rows: RowSum, last: LastCommit | None
) -> None:
    """Compare everything in the tables with the digest that was recorded, and with the last commit.

    entries: (key, value) of the manifest. last: as it was recorded before the tables were read; somebody may have
    committed since.
    """
    entries = list(entries)
    try:
        recorded, digest = dict(entries), tables_digest(entries, segments, rows)
    except TypeError as error:
        raise CollectionError(f"{file} is damaged: {error}", DAMAGED) from error
    if recorded.get("digest") != f'"{digest}"' or recorded.get("rows") != f'"{rows}"':
        raise CollectionError(f"{file} is damaged: its tables differ from the digest that was recorded", DAMAGED)
    found = parse_json(recorded.get("sequence", "0"))
    if last is not None and not (
        type(found) is int and (found > last.sequence or (found, digest) == (last.sequence, last.digest))
    ):
        raise CollectionError(
            f"{file} has lost commits: the last one was number {last.sequence}, and the newest that can be read is "
            f"{str(found)[:60]}; the write-ahead log is damaged or missing",
            f"restore it from a backup, or delete {file.parent / LAST_COMMIT} to go on with the older version",
        )


def checked_rows(database: sqlite3.Connection, file: Path, rows: RowSum | None = None) -> RowSum:
    """The sum of items and additions, once all tables fit their digest. rows: the sum; None takes it as recorded."""
    found = RowSum(entry(database, "rows")) if rows is None else rows
    check_checksum(
        file,
        database.execute("SELECT key, value FROM manifest"),
        database.execute("SELECT role, name, size, sha256 FROM segments"),
        found,
        usable_last_commit(file.parent),
    )
    return found


def entry(database: sqlite3.Connection, key: str) -> Any:
    """One value of the manifest, None where there is none."""
    found = database.execute("SELECT value FROM manifest WHERE key = ?", (key,)).fetchone()
    return None if found is None else parse_json(found[0])


def _sound_entry(database: sqlite3.Connection, key: str, kind: type[_T]) -> _T | None:
    """The same, None where it is damaged: whoever replaces a collection need not understand it."""
    with suppress(ValueError):
        found = entry(database, key)
        return found if type(found) is kind else None
    return None


def _as_json(entries: dict[str, Any]) -> list[tuple[str, str]]:
    return [(key, _json_of(key, value)) for key, value in entries.items()]


def _json_of(key: str, value: Any) -> str:
    try:
        text = json.dumps(value, default=_plain_number)
        parse_json(text)  # what could not be read again must not be written
    except ValueError as error:
        raise InputError(f"the {key} of this collection cannot be stored: {error}", "choose other settings") from error
    return text


def _plain_number(value: Any) -> int | float:
    """Settings may be numbers of any make, such as numpy's."""
    return int(value) if isinstance(value, Integral) else float(value)
