"""The SQLite file of a collection: opened, locked, and explained when it refuses."""

import fcntl
import json
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import TypeVar

from manifind.collection.format import APPLICATION_ID, DATABASE, LastCommit, check_schema, damaged, record_last_commit
from manifind.errors import CollectionError, system_errors_as

T = TypeVar("T")
_PATIENCE = 0.5  # seconds; readers lock the database for an instant as they come and go, writers for long
_CHANGING_PATIENCE = 5.0  # seconds; commit may follow commit while a busy machine lets a reader try but a few times
_TORN_PATIENCE = 0.1  # the same for who may write, and is told of damage at once
_MERGE_PATIENCE = 50  # milliseconds to wait for readers before the log is left as it is
_SHARED, _UNCHANGING = "mode=ro", "mode=ro&immutable=1"
_EMPTY_LOG = 32  # bytes, of its header
_REFUSALS = {
    getattr(sqlite3, f"SQLITE_{name}") for name in ("PERM", "BUSY", "READONLY", "IOERR", "FULL", "CANTOPEN", "PROTOCOL")
}


@contextmanager
def reading(directory: Path) -> Iterator[sqlite3.Connection]:
    """The database, all of whose answers are of one version; whatever it raises becomes a CollectionError."""
    file = directory / DATABASE
    try:
        if not file.is_file():
            problem = "holds no collection" if directory.exists() else "does not exist"
            hint = "make one with `manifind index FILE COLLECTION` or GradNet.save"
            raise CollectionError(f"{directory} {problem}", hint)
        _check_files(directory)
        with closing(_connect_to_read(directory)) as database:
            if database.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                raise CollectionError(f"{file} is no manifind collection", "give the path of a collection")
            check_schema(database, file, "manifest")
            yield database
    except OSError as error:
        problem = f"{directory} cannot be read: {error.strerror or error}"
        raise CollectionError(problem, "check that it is yours to read") from error
    except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError) as error:
        if _is_refused(error):
            hint = "check that it is yours to read, and that there is room on the disk"
            raise CollectionError(f"{file} cannot be read: {error}", hint) from error
        raise damaged(f"{file} is damaged: {str(error)[:200]}") from error


def retried_while_changing(read: Callable[[Path], T]) -> Callable[[str | Path], T]:
    """A function that reads a collection, tried again where a merged log changed the file under it.

    A file that is taken as unchanging can be found shorter or longer than it was, or with pages of two versions. Mostly
    that is so for those who may not write there; for others it is rare, and a file that stays so is damaged.
    """

    @wraps(read)
    def again(path: str | Path) -> T:
        is_ours = os.access(path, os.W_OK, effective_ids=True)
        end = time.monotonic() + (_TORN_PATIENCE if is_ours else _CHANGING_PATIENCE)
        while True:
            try:
                return read(Path(path))
            except CollectionError as error:
                code = getattr(error.__cause__, "sqlite_errorcode", None) or 0
                is_torn = code == sqlite3.SQLITE_IOERR_SHORT_READ or code & 0xFF == sqlite3.SQLITE_CORRUPT
                if not is_torn or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    return again


@contextmanager
def writing(directory: Path) -> Iterator[sqlite3.Connection]:
    """The database inside a transaction, everything or nothing; locked at once, so that a second writer fails early."""
    file = directory / DATABASE
    with write_errors(directory):
        _check_files(directory)
        _refuse_second_name(file)
        with closing(sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)) as database:
            for pragma in ("trusted_schema = OFF", "journal_mode = WAL", "synchronous = FULL"):
                database.execute(f"PRAGMA {pragma}")
            try:
                database.execute("BEGIN IMMEDIATE")
                check_schema(database, file)
                yield database
                database.execute("COMMIT")
                _merge_log(database, directory)
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


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """What the system or SQLite says where something cannot be written in the block, as an error of ours."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if isinstance(error, sqlite3.Error) and "locked" in str(error):
            problem = f"{path} is being written by another process"
            raise CollectionError(problem, "try again when it has finished") from error
        reason = getattr(error, "strerror", None) or error
        hint = "nothing that was there before has changed"
        raise CollectionError(f"{path} cannot be written: {reason}", hint) from error


def work_folder(target: Path) -> Path:
    """Where unfinished work for a collection is kept, beside it; it goes when the work is done."""
    folder = target.with_name(f".{target.name}.work")
    refuse_link(folder)
    return folder


def refuse_link(path: Path) -> None:
    """Refuse what stands elsewhere: a collection is whole, and nothing is written or removed outside of it."""
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(path.lstat().st_mode):
            raise damaged(f"{path} is a link, and no collection has one")


def _check_files(directory: Path) -> None:
    """Refuse whatever would make SQLite write to, or delete, a file outside of the collection.

    A rollback journal names a further file, which SQLite deletes. No collection has a journal: it is always in
    write-ahead mode, and its log names no files. A log or its index that is a link, or another name of a file
    elsewhere, would be overwritten where it stands.
    """
    file = directory / DATABASE
    refuse_link(file)
    journal = file.with_name(f"{DATABASE}-journal")
    if os.path.lexists(journal):
        problem = f"there is a rollback journal {journal}, and no collection has one; nothing was opened"
        raise CollectionError(problem, "delete it, or take the collection from somebody whom you trust")
    if file.exists() and not _is_in_write_ahead_mode(file):
        raise damaged(f"{file} is not in write-ahead mode, and every collection is")
    for suffix in ("-wal", "-shm"):
        beside = file.with_name(f"{DATABASE}{suffix}")
        refuse_link(beside)
        _refuse_second_name(beside)


def _refuse_second_name(path: Path) -> None:
    """Refuse a file that stands under another name, too: it may belong to somebody else, or be a backup."""
    with suppress(FileNotFoundError):
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            hint = "copy the collection with `cp -r`, and use the copy"
            raise CollectionError(f"{path} is not a plain file, or has a second name elsewhere (a hard link)", hint)


def _is_in_write_ahead_mode(file: Path) -> bool:
    """By the header. What is too short to have one is left to SQLite, which says what is wrong with it."""
    with open(file, "rb") as handle:
        header = handle.read(20)
    return len(header) < 20 or header[:16] != b"SQLite format 3\0" or header[18:20] == b"\2\2"


def _merge_log(database: sqlite3.Connection, directory: Path) -> None:
    """Merge the log into the database, or record the commit where a reader holds that up. Nothing here may fail."""
    with suppress(sqlite3.Error):
        database.execute(f"PRAGMA busy_timeout = {_MERGE_PATIENCE}")
        if database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0:
            return
    with suppress(sqlite3.Error, TypeError, ValueError):
        values = dict(database.execute("SELECT key, value FROM manifest WHERE key IN ('sequence', 'digest')"))
        record_last_commit(directory, LastCommit(int(values["sequence"]), json.loads(values["digest"])))


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


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, or say at once that another process has it."""
    with system_errors_as(CollectionError, f"{directory} cannot be opened", "check that it is yours to read"):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            problem = f"{directory} is being fitted by another process"
            raise CollectionError(problem, "try again when it has finished") from error
        yield
    finally:
        os.close(handle)
