"""Writing a collection: segments first, then one transaction."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from safetensors.numpy import save as safetensors_bytes

from gradnet.collection.contents import Contents
from gradnet.collection.ids import check_ids
from gradnet.collection.layout import (
    APPLICATION_ID,
    DATABASE,
    ROLES,
    SCHEMA,
    SEGMENT_NAME,
    SEGMENTS,
    VERSION,
    tables_digest,
)
from gradnet.collection.reader import is_collection
from gradnet.errors import CollectionError

_PATIENCE = 0.5  # seconds; readers lock the database for an instant as they come and go, writers for long


class Segment(NamedTuple):
    """A file that a commit refers to."""

    role: str
    name: str
    size: int
    sha256: str


def write_collection(path: str | Path, contents: Contents, ids: Sequence[Any] | None) -> None:
    """Make the directory at `path` hold exactly these contents, in one step.

    A new collection is written beside its place and moved there when it is complete; an existing one
    gets new segments and switches to them in one transaction.
    """
    target = Path(path)
    names = check_ids(ids, len(contents.learned.features))
    check_target(target)
    try:
        if is_collection(target):
            _commit(target, contents, names)
        else:
            _create(target, contents, names)
    except OSError as error:
        raise _unwritten(target, error) from error


def check_target(path: str | Path) -> None:
    """Refuse a place where something stands that is no collection; an empty directory may give way."""
    target = Path(path)
    if target.name in ("", "..") or "\0" in target.name:
        raise CollectionError(
            f"{str(target)!r} is no name for a collection", "give the path of a new directory"
        )
    try:
        free = not target.exists() or (target.is_dir() and not any(target.iterdir()))
        if not free and not is_collection(target):
            raise CollectionError(
                f"{target} exists and is no collection, so it is left alone",
                "choose another path, or remove it first",
            )
    except OSError as error:
        raise _unwritten(target, error) from error


def _unwritten(path: Path, error: OSError | sqlite3.Error) -> CollectionError:
    reason = getattr(error, "strerror", None) or error
    return CollectionError(f"{path} cannot be written: {reason}", "nothing that was there before has changed")


def _create(target: Path, contents: Contents, ids: Sequence[Any]) -> None:
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.mkdir(parents=True)
        _commit(partial, contents, ids)
        _sync_directory(partial)
        os.replace(partial, target)  # an empty directory at the target gives way
        _sync_directory(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _commit(directory: Path, contents: Contents, ids: Sequence[Any]) -> None:
    with closing(_connect(directory / DATABASE)) as database:
        with _transaction(database, directory):
            segments = _write_segments(directory / SEGMENTS, contents)
            _replace_tables(database, segments, ids, _manifest(contents, ids))
        _remove_unused(directory / SEGMENTS, {segment.name for segment in segments})


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
    try:
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        database.close()
        raise _explain(error, path) from error
    return database


@contextmanager
def _transaction(database: sqlite3.Connection, directory: Path) -> Iterator[None]:
    """Everything or nothing; the lock is taken at once, so that a second writer hears of it early."""
    try:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("COMMIT")
    except sqlite3.Error as error:
        raise _explain(error, directory) from error
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


def _explain(error: sqlite3.Error, path: Path) -> CollectionError:
    if "locked" in str(error):
        return CollectionError(
            f"{path} is being written by another process", "try again when it has finished"
        )
    return _unwritten(path, error)


def _parts(contents: Contents) -> Iterator[tuple[str, Any]]:
    """Role and content of every segment; a dictionary of arrays where the format is npz or safetensors."""
    learned, graph = contents.learned, contents.manifold
    yield "descriptors", learned.descriptors
    yield "lengths", contents.lengths
    yield "features", learned.features
    yield (
        "graph",
        {
            "affinity_data": graph.affinity.data,
            "affinity_indices": graph.affinity.indices,
            "affinity_indptr": graph.affinity.indptr,
            "anchors": graph.anchors,
            "nodes": learned.nodes,
            "inside": learned.inside,
            "loss_curve": contents.loss_curve,
            **({} if learned.preprocessor.mean is None else {"mean": learned.preprocessor.mean}),
        },
    )
    yield "model", contents.weights


def _write_segments(folder: Path, contents: Contents) -> list[Segment]:
    """Every segment, on the disk for good, or none."""
    folder.mkdir(exist_ok=True)
    before = set(folder.iterdir())
    try:
        segments = [_write_segment(folder, *part) for part in _parts(contents)]
        _sync_directory(folder)
    except BaseException:
        for file in set(folder.iterdir()) - before:  # a full disk is not to stay full
            file.unlink()
        raise
    return segments


def _write_segment(folder: Path, role: str, content: Any) -> Segment:
    name = f"{role}-{secrets.token_hex(8)}.{ROLES[role]}"
    with open(folder / name, "xb") as file:
        hashed = _HashingFile(file)
        if ROLES[role] == "npy":
            np.lib.format.write_array(hashed, np.ascontiguousarray(content), allow_pickle=False)
        elif ROLES[role] == "npz":
            buffer = io.BytesIO()  # zip writers seek back, which a running digest cannot follow
            np.savez(buffer, allow_pickle=False, **content)
            hashed.write(buffer.getbuffer())
        else:
            hashed.write(safetensors_bytes(content))
        file.flush()
        os.fsync(file.fileno())
    return Segment(role, name, hashed.size, hashed.digest.hexdigest())


class _HashingFile:
    """A file that keeps count and digest of what goes through it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.size, self.digest = file, 0, hashlib.sha256()

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.digest.update(view)
        self.size += len(view)
        return self._file.write(view)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # faiss goes by another name outside PyPI
        return "unknown"


def _manifest(contents: Contents, ids: Sequence[Any]) -> dict[str, Any]:
    learned = contents.learned
    preprocessor, queries = learned.preprocessor, learned.queries
    return {
        "format": VERSION,
        "commit": secrets.token_hex(8),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: _version(name) for name in ("gradnet", "numpy", "scipy", "torch", "faiss-cpu")},
        "shape": {
            "items": len(ids),
            "dimension": learned.descriptors.shape[1],
            "feature_dimension": learned.features.shape[1],
        },
        "preprocess": {"kind": preprocessor.kind, "scale": preprocessor.scale},
        "queries": {
            "n_neighbors": queries.n_neighbors,
            "similarity": queries.similarity,
            "passes": queries.passes,
        },
        "settings": contents.settings,
        "info": contents.info,
    }


def _replace_tables(
    database: sqlite3.Connection, segments: list[Segment], ids: Sequence[Any], manifest: dict[str, Any]
) -> None:
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in SCHEMA.split(";"):
        database.execute(statement)
    for table in ("manifest", "segments", "items"):
        database.execute(f"DELETE FROM {table}")  # noqa: S608 - three fixed names
    database.executemany("INSERT INTO items VALUES (?, ?)", enumerate(ids))
    database.executemany("INSERT INTO segments VALUES (?, ?, ?, ?)", segments)
    entries = [(key, json.dumps(value, default=_plain_number)) for key, value in manifest.items()]
    entries.append(("digest", json.dumps(tables_digest(entries, segments, ids))))
    database.executemany("INSERT INTO manifest VALUES (?, ?)", entries)


def _plain_number(value: Any) -> int | float:
    """Settings may be numbers of any make, such as numpy's."""
    return int(value) if isinstance(value, Integral) else float(value)


def _remove_unused(folder: Path, used: set[str]) -> None:
    """Old segments go; a reader that still has one open keeps it until it is done."""
    for file in folder.iterdir():
        if SEGMENT_NAME.fullmatch(file.name) and file.name not in used:
            with suppress(OSError):  # the commit stands; what is left over goes with the next one
                file.unlink()


def _sync_directory(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
