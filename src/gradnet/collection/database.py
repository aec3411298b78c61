"""The SQLite file of a collection: how it is opened, locked and explained when it refuses."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from gradnet.collection.layout import APPLICATION_ID, DATABASE
from gradnet.collection.schema import check_schema
from gradnet.errors import CollectionError

DAMAGED = "restore the collection from a backup, or index the source again"
_PATIENCE = 0.5  # seconds; readers lock the database for an instant as they come and go, writers for long
_SHARED, _UNCHANGING = "mode=ro", "mode=ro&immutable=1"
_EMPTY_LOG = 32  # bytes, of its header
_REFUSALS = (
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
)


@contextmanager
def reading(directory: Path) -> Iterator[sqlite3.Connection]:
    """The database, all of whose answers are of one version; whatever it raises becomes a CollectionError."""
    try:
        file = directory / DATABASE
        if not file.is_file():
            problem = "holds no collection" if directory.exists() else "does not exist"
            raise CollectionError(
                f"{directory} {problem}", "make one with `gradnet index FILE COLLECTION` or GradNet.save"
            )
        refuse_link(file)
        with closing(_connect_to_read(directory)) as database:
            if database.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                raise CollectionError(f"{file} is no gradnet collection", "give the path of a collection")
            check_schema(database, file, "manifest")
            yield database
    except OSError as error:
        raise CollectionError(
            f"{directory} cannot be read: {error.strerror or error}", "check that it is yours to read"
        ) from error
    except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError) as error:
        if _is_refused(error):
            raise CollectionError(
                f"{directory / DATABASE} cannot be read: {error}",
                "check that it is yours to read, and that there is room on the disk",
            ) from error
        raise CollectionError(f"{directory / DATABASE} is damaged: {str(error)[:200]}", DAMAGED) from error


@contextmanager
def writing(directory: Path) -> Iterator[sqlite3.Connection]:
    """The database inside a transaction: everything or nothing.

    The lock is taken at once, so that a second writer hears of it early.
    """
    refuse_link(directory / DATABASE)
    with closing(_connect_to_write(directory)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
            check_schema(database, directory / DATABASE)
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
    if not file.is_file() or file.is_symlink():
        return False
    with open(file, "rb") as handle:
        header = handle.read(72)
    return header[:16] == b"SQLite format 3\0" and header[68:] == APPLICATION_ID.to_bytes(4)


def unwritten(path: Path, error: OSError | sqlite3.Error) -> CollectionError:
    """What to say of something that could not be written."""
    reason = getattr(error, "strerror", None) or error
    return CollectionError(f"{path} cannot be written: {reason}", "nothing that was there before has changed")


def refuse_link(path: Path) -> None:
    """Refuse what stands elsewhere: a collection is whole, and nothing is written or removed outside of it."""
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(path.lstat().st_mode):
            raise CollectionError(f"{path} is a link, and no collection has one", DAMAGED)


def _connect_to_read(directory: Path) -> sqlite3.Connection:
    """The database inside a transaction that has begun to read.

    A directory of somebody else, or a full disk, has no room for SQLite's shared memory. Where there is no log,
    everything stands in the file, which is then taken as unchanging; where a log is about to come or to go, it is
    tried again.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        is_ours = os.access(directory, os.W_OK, effective_ids=True)
        try:
            return _reading_from(directory, _SHARED if is_ours or _has_log(directory) else _UNCHANGING)
        except sqlite3.OperationalError as error:
            if not _is_refused(error) or error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise
            if not _has_log(directory):
                return _reading_from(directory, _UNCHANGING)
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def _reading_from(directory: Path, mode: str) -> sqlite3.Connection:
    address = f"{(directory / DATABASE).resolve().as_uri()}?{mode}"
    database = sqlite3.connect(address, uri=True, isolation_level=None)
    try:
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("BEGIN")
        database.execute("PRAGMA schema_version")  # a first look into the file, which begins the transaction
    except BaseException:
        database.close()
        raise
    return database


def _has_log(directory: Path) -> bool:
    """Whether there may be commits that have not come into the file yet."""
    with suppress(FileNotFoundError):
        return (directory / f"{DATABASE}-wal").stat().st_size > _EMPTY_LOG
    return False


def _is_refused(error: BaseException) -> bool:
    """Whether it is the system that refuses, and not the content that is wrong."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF in _REFUSALS


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
