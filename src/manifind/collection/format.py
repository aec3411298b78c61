"""The format on disk, version 3: names, tables, strict JSON, the manifest and its checksum.

Version 2 has two more entries in the manifest than version 1: `collection`, which names the collection through all its
fits, and `sequence`, which counts commits (see `last_commit`). Version 3 has four more tables, of judged queries and of
what the last changes can be undone with, and the entry `notes` with the sum of their rows. Older versions are read as
they are, and become version 3 with their next commit.

A commit that SQLite still keeps in its write-ahead log is lost without an error when a byte of the log changes: SQLite
takes the rest of the log for an interrupted write, and shows the version before. The log is therefore merged into the
database at the end of every commit. Where a reader holds that up, the commit is recorded here before it is reported
as done, and whoever opens an older version than the recorded one gets an error.
"""

import hashlib
import json
import math
import os
import re
import secrets
import sqlite3
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from manifind.errors import CollectionError, InputError
from manifind.files import atomic_write

VERSION = 3
READABLE = (1, 2, 3)
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

SEGMENT_NAME = re.compile(rf"({'|'.join(ROLES)})-[0-9a-f]{{16}}\.(npy|npz|safetensors)")

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
CREATE TABLE IF NOT EXISTS steps (
    number INTEGER PRIMARY KEY, label TEXT NOT NULL, made TEXT NOT NULL, n_items INTEGER NOT NULL,
    first_added INTEGER, n_added INTEGER NOT NULL, n_bytes INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS former (
    step INTEGER NOT NULL, position INTEGER NOT NULL, id NOT NULL, metadata TEXT, length REAL, descriptor BLOB,
    feature BLOB, neighbours BLOB, distances BLOB, PRIMARY KEY (step, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS queries (
    name TEXT PRIMARY KEY, parts TEXT NOT NULL, vectors BLOB NOT NULL, made TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS judgements (
    query TEXT NOT NULL, item NOT NULL, is_right INTEGER NOT NULL, PRIMARY KEY (query, item)
) WITHOUT ROWID;
"""
FITTED_TABLES = ("manifest", "segments", "items", "additions", "steps", "former")
"""What a new fit replaces."""
JUDGED_TABLES = ("queries", "judgements")
"""What stays through all fits of a collection."""
NOTES = ("steps", "former", *JUDGED_TABLES)
"""Tables that are read only when they are asked for; the entry `notes` has the sum of their rows."""
SELECT_MANIFEST = "SELECT key, value FROM manifest"
SELECT_SEGMENTS = "SELECT role, name, size, sha256 FROM segments"

_ROLES = {"full": FULL, "compressed": COMPRESSED}
_MOST = 1 << 40  # of anything
_TABLES = ("preprocess", "queries", "indexes", "settings", "info", "versions")
_TEXTS = ("fit", "commit", "created")
_MODULUS = 1 << 256
BEYOND = 1 << 63  # the largest number of SQLite, and so of an item, is one less
_LONGEST_WHOLE = 300  # characters; a longer whole number may be beyond a double
_DEEPEST = 100


def damaged(problem: str) -> CollectionError:
    """The error for anything that is not as it was written."""
    return CollectionError(problem, "restore the collection from a backup, or index the source again")


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
        self._add((_item_digest(*row) for row in rows), sign)

    def add_additions(self, rows: Iterable[Sequence[Any]], sign: int = 1) -> None:
        """rows: (position, length, and blobs)."""
        self._add((_addition_digest(*row) for row in rows), sign)

    def add_notes(self, table: str, rows: Iterable[Sequence[Any]], sign: int = 1) -> None:
        """rows: whole ones of one of NOTES."""
        self._add((_note_digest(table, row) for row in rows), sign)

    def _add(self, digests: Iterable[bytes], sign: int) -> None:
        self._sum = (self._sum + sign * sum(map(int.from_bytes, digests))) % _MODULUS

    def __str__(self) -> str:
        return f"{self._sum:064x}"


def _item_digest(position: int, id_: Any, metadata: str | None) -> bytes:
    kind = "s" if type(id_) is str else "i"
    return hashlib.sha256(f"{position}\0{kind}{id_}\0{metadata or ''}".encode()).digest()


def _addition_digest(position: int, length: float, *blobs: bytes) -> bytes:
    hashed = hashlib.sha256(f"{position}\0{length!r}".encode())
    for blob in blobs:
        hashed.update(f"\0{len(blob)}\0".encode())
        hashed.update(blob)
    return hashed.digest()


def _note_digest(table: str, row: Sequence[Any]) -> bytes:
    hashed = hashlib.sha256(table.encode())
    for value in row:
        data = value if isinstance(value, bytes) else repr(value).encode()
        hashed.update(f"\0{type(value).__name__}{len(data)}\0".encode())
        hashed.update(data)
    return hashed.digest()


def tables_digest(manifest: Iterable[Sequence[Any]], segments: Iterable[Sequence[Any]], rows: RowSum) -> str:
    """One digest of everything in the tables but the row "digest" of the manifest, where it stands itself."""
    parts = (sorted(list(row) for row in manifest if row[0] != "digest"), sorted(map(list, segments)), str(rows))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


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
        level = [value]
        for _ in range(_DEEPEST):
            parts = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, list | dict))
            level = list(chain.from_iterable(parts))
        if level:
            raise ValueError(f"it is nested more than {_DEEPEST} deep")
    return value


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


class Sizes(NamedTuple):
    """items: that were fitted. dimension: of descriptors. feature_dimension: of features. neighbors: of an item."""

    items: int
    dimension: int
    feature_dimension: int
    neighbors: int


@dataclass(frozen=True)
class Manifest:
    """What a collection says of itself.

    kind: "full", or "compressed" for one that only answers. fit, commit: what names the fit and the version.
    collection: what names it through all its fits; None in format 1. settings, info: of the model.
    source: where the descriptors come from. entries: everything, as JSON has it.
    """

    kind: str
    fit: str
    commit: str
    created: str
    collection: str | None
    sizes: Sizes
    preprocess: dict[str, Any]
    queries: dict[str, Any]
    indexes: dict[str, Any]
    settings: dict[str, Any]
    info: dict[str, Any]
    versions: dict[str, Any]
    source: dict[str, Any]
    entries: dict[str, Any] = field(repr=False)

    @property
    def is_full(self) -> bool:
        """Whether descriptors and features are there, and not only what answers for them."""
        return self.kind == "full"

    @property
    def roles(self) -> set[str]:
        """The roles of segments without which it cannot be opened."""
        return _ROLES[self.kind]

    @property
    def n_added(self) -> int:
        """Items that were added since the fit, and are still there."""
        return int(self.entries["changes"]["added"])

    @property
    def n_removed(self) -> int:
        """Fitted items that were removed since."""
        return int(self.entries["changes"]["removed"])

    def updated(self, entries: Mapping[str, Any]) -> Self:
        """With other entries in place of some."""
        return self._parse({**self.entries, **entries})

    @classmethod
    def read(cls, rows: Iterable[tuple[Any, Any]], file: Path) -> Self:
        """From (key, JSON) as the table has them. file: of the database, named in errors."""
        try:
            entries = {key: parse_json(value) for key, value in rows}
            format_ = entries["format"]
            if type(format_) is not int or format_ not in READABLE:
                known = f"this version of manifind reads format {' and '.join(map(str, READABLE))}"
                raise CollectionError(f"{file.parent} has format {repr(format_)[:60]}, and {known}", "update manifind")
            return cls._parse(entries)
        except (ValueError, KeyError, TypeError) as error:
            problem = error if type(error) is ValueError else repr(error)
            raise damaged(f"the manifest in {file} is damaged: {str(problem)[:200]}") from error

    @classmethod
    def _parse(cls, entries: dict[str, Any]) -> Self:
        """A ValueError, KeyError or TypeError where something is not as it should be."""
        name = None
        if entries["format"] >= 2:
            name, sequence = entries["collection"], entries["sequence"]
            if not isinstance(name, str) or type(sequence) is not int or not 0 < sequence < _MOST:
                raise ValueError(f"its collection is {repr(name)[:60]}, its sequence {repr(sequence)[:60]}")
        if entries["kind"] not in _ROLES:
            raise ValueError(f"its kind is {repr(entries['kind'])[:60]}")
        sizes = Sizes(*(entries["shape"][name] for name in Sizes._fields))
        if not all(type(size) is int and 0 < size < _MOST for size in sizes):
            raise ValueError(f"its shape is {str(entries['shape'])[:120]}")
        source = entries.get("source") or {}  # the first collections had none
        tables = {name: entries[name] for name in _TABLES} | {"source": source}
        texts = {name: entries[name] for name in _TEXTS}
        for values, kind, expected in ((tables, dict, "a table of names"), (texts, str, "a text")):
            for key, value in values.items():
                if not isinstance(value, kind):
                    raise ValueError(f"its {key} is {repr(value)[:60]}; expected {expected}")
        return cls(kind=entries["kind"], collection=name, sizes=sizes, entries=entries, **texts, **tables)


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
            problem = f"{file} holds the {kind} {name[:60]!r}, which is none of a collection: {sql[:200]!r}"
            raise CollectionError(problem, "nothing of it was run; take the collection from somebody whom you trust")


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


def read_last_commit(directory: Path) -> LastCommit | None:
    """The recorded commit, None where there is no record; a record that cannot be used is refused."""
    file, hint = directory / LAST_COMMIT, "delete it: the collection itself is whole, and a later commit makes it anew"
    try:
        # Neither through a link, nor waiting for the other end of a pipe.
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CollectionError(f"{file} cannot be read: {error.strerror}", hint) from error
    try:
        content = os.read(handle, _SIZE) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    finally:
        os.close(handle)
    found = _CONTENT.fullmatch(content)
    if found is None or found[3] != _check(found[1], found[2]):
        raise CollectionError(f"{file} is damaged", hint)
    return LastCommit(int(found[1]), found[2].decode())


def usable_last_commit(directory: Path) -> LastCommit | None:
    """The same, None where it is damaged: the collection itself may well be whole."""
    with suppress(CollectionError):
        return read_last_commit(directory)
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
    recorded = usable_last_commit(directory)  # also a commit that was lost since
    last = max(_sound_entry(database, "sequence", int) or 0, 0 if recorded is None else recorded.sequence)
    named = {"collection": _sound_entry(database, "collection", str) or secrets.token_hex(16)}
    changed = {**named, **entries, "format": VERSION, "sequence": last + 1, "rows": str(rows)}
    _set_entries(database, changed)
    digest = tables_digest(database.execute(SELECT_MANIFEST), database.execute(SELECT_SEGMENTS), rows)
    _set_entries(database, {"digest": digest})
    return {**changed, "digest": digest}


def _set_entries(database: sqlite3.Connection, entries: dict[str, Any]) -> None:
    for key, value in entries.items():
        try:
            text = json.dumps(value, default=_plain_number)
            parse_json(text)  # what could not be read again must not be written
        except ValueError as error:
            problem = f"the {key} of this collection cannot be stored: {error}"
            raise InputError(problem, "choose other settings") from error
        database.execute("INSERT OR REPLACE INTO manifest VALUES (?, ?)", (key, text))


def _plain_number(value: Any) -> int | float:
    """Settings may be numbers of any make, such as numpy's."""
    return int(value) if isinstance(value, Integral) else float(value)


def check_checksum(database: sqlite3.Connection, file: Path, rows: RowSum, last: LastCommit | None) -> None:
    """Compare everything in the tables with the digest that was recorded, and with the last commit.

    rows: of items and additions. last: as it was recorded before the tables were read; somebody may have committed
    since.
    """
    entries = database.execute(SELECT_MANIFEST).fetchall()
    try:
        recorded, digest = dict(entries), tables_digest(entries, database.execute(SELECT_SEGMENTS), rows)
    except TypeError as error:
        raise damaged(f"{file} is damaged: {error}") from error
    if recorded.get("digest") != f'"{digest}"' or recorded.get("rows") != f'"{rows}"':
        raise damaged(f"{file} is damaged: its tables differ from the digest that was recorded")
    found = parse_json(recorded.get("sequence", "0"))
    if last is None or (type(found) is int and found > last.sequence):
        return
    if type(found) is not int or (found, digest) != (last.sequence, last.digest):
        raise CollectionError(
            f"{file} has lost commits: the last one was number {last.sequence}, and the newest that can be read is "
            f"{str(found)[:60]}; the write-ahead log is damaged or missing",
            f"restore it from a backup, or delete {file.parent / LAST_COMMIT} to go on with the older version",
        )


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
