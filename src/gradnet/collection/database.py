"""The SQLite file of a collection: how it is opened, locked and explained when it refuses."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any

from gradnet.collection.layout import APPLICATION_ID, DATABASE, SCHEMA, RowSum, tables_digest
from gradnet.errors import CollectionError

DAMAGED = "restore the collection from a backup, or index the source again"
_PATIENCE = 0.5  # seconds; readers lock the database for an instant as they come and go, writers for long


@contextmanager
def reading(directory: Path) -> Iterator[sqlite3.Connection]:
    """The database, all of whose answers are of one version; whatever it raises becomes a CollectionError."""
    try:
        if not (directory / DATABASE).is_file():
            problem = "holds no collection" if directory.exists() else "does not exist"
            raise CollectionError(
                f"{directory} {problem}", "make one with `gradnet index FILE COLLECTION` or GradNet.save"
            )
        with closing(_connect_to_read(directory)) as database:
            if database.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                raise CollectionError(
                    f"{directory / DATABASE} is no gradnet collection", "give the path of a collection"
                )
            database.execute("BEGIN")
            yield database
    except OSError as error:
        raise CollectionError(
            f"{directory} cannot be read: {error.strerror or error}", "check that it is yours to read"
        ) from error
    except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError) as error:
        raise CollectionError(f"{directory / DATABASE} is damaged: {error}", DAMAGED) from error


@contextmanager
def writing(directory: Path) -> Iterator[sqlite3.Connection]:
    """The database inside a transaction: everything or nothing.

    The lock is taken at once, so that a second writer hears of it early.
    """
    with closing(_connect_to_write(directory)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        except sqlite3.Error as error:
            raise _explain(error, directory) from error
        finally:
            if database.in_transaction:
                database.execute("ROLLBACK")


def is_collection(directory: Path) -> bool:
    """Whether a collection of ours stands there, whole or damaged; nothing is touched to find out."""
    file = directory / DATABASE
    if not file.is_file():
        return False
    with open(file, "rb") as handle:
        header = handle.read(72)
    return header[:16] == b"SQLite format 3\0" and header[68:] == APPLICATION_ID.to_bytes(4)


def unwritten(path: Path, error: OSError | sqlite3.Error) -> CollectionError:
    """What to say of something that could not be written."""
    reason = getattr(error, "strerror", None) or error
    return CollectionError(f"{path} cannot be written: {reason}", "nothing that was there before has changed")


def make_tables(database: sqlite3.Connection) -> None:
    """The tables, where they are not there yet."""
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in SCHEMA.split(";"):
        database.execute(statement)


def sign(database: sqlite3.Connection, rows: RowSum, entries: dict[str, Any]) -> None:
    """Put entries into the manifest, and the digest of all tables beside them. rows: items and additions."""
    changed = {**entries, "rows": str(rows)}
    database.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?)", _as_json(changed))
    digest = tables_digest(
        database.execute("SELECT key, value FROM manifest"),
        database.execute("SELECT role, name, size, sha256 FROM segments"),
        rows,
    )
    database.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?)", _as_json({"digest": digest}))


def entry(database: sqlite3.Connection, key: str) -> Any:
    """One value of the manifest, None where there is none."""
    found = database.execute("SELECT value FROM manifest WHERE key = ?", (key,)).fetchone()
    return None if found is None else json.loads(found[0])


def _as_json(entries: dict[str, Any]) -> Iterable[tuple[str, str]]:
    return [(key, json.dumps(value, default=_plain_number)) for key, value in entries.items()]


def _plain_number(value: Any) -> int | float:
    """Settings may be numbers of any make, such as numpy's."""
    return int(value) if isinstance(value, Integral) else float(value)


def _connect_to_read(directory: Path) -> sqlite3.Connection:
    # A directory that cannot be written to has no room for SQLite's shared memory; nobody else can write
    # there either, so the file may be taken as unchanging.
    mode = "mode=ro" if os.access(directory, os.W_OK) else "mode=ro&immutable=1"
    database = sqlite3.connect(
        f"{(directory / DATABASE).resolve().as_uri()}?{mode}", uri=True, isolation_level=None
    )
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def _connect_to_write(directory: Path) -> sqlite3.Connection:
    try:
        database = sqlite3.connect(directory / DATABASE, timeout=_PATIENCE, isolation_level=None)
    except sqlite3.Error as error:
        raise _explain(error, directory) from error
    try:
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        database.close()
        raise _explain(error, directory) from error
    return database


def _explain(error: sqlite3.Error, path: Path) -> CollectionError:
    if "locked" in str(error):
        return CollectionError(
            f"{path} is being written by another process", "try again when it has finished"
        )
    return unwritten(path, error)
