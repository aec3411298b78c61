"""Writes a fitted collection: immutable segments first, then one transaction."""

from __future__ import annotations

import glob
import hashlib
import os
import secrets
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from safetensors.numpy import save as safetensors_bytes

from manifind.arrays import Floats
from manifind.collection.database import is_collection, only_one, refuse_link, unwritten, writing
from manifind.collection.format import (
    DATABASE,
    LAST_COMMIT,
    ROLES,
    SEGMENT_NAME,
    SEGMENTS,
    TABLES,
    RowSum,
    checked_rows,
    entry,
    make_tables,
    write_checksum,
)
from manifind.collection.ids import check_ids
from manifind.collection.items import addition_rows, read_additions, read_items
from manifind.collection.load_model import INDEX_ROLES
from manifind.collection.manifest import new_entries
from manifind.collection.metadata import metadata_texts
from manifind.collection.transactions import RefittedMeanwhileError
from manifind.collection.version import Version
from manifind.errors import CollectionError
from manifind.graph.manifold import Manifold
from manifind.index.ivf import InvertedFile
from manifind.search.feature_model import FeatureModel
from manifind.search.live_index import AddedItems, place


@dataclass(frozen=True)
class Contents:
    """A fitted model, ready to be written.

    lengths: (n, 1) what each descriptor was divided by. weights: the network's arrays by name.
    loss_curve: (steps, 3). n_neighbors: of an item in the graph. settings, info: plain values.
    """

    learned: FeatureModel
    lengths: Floats
    manifold: Manifold
    weights: dict[str, Floats]
    loss_curve: Floats
    n_neighbors: int
    settings: dict[str, Any]
    info: dict[str, Any]

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Role and content of every segment; a dictionary of arrays where the format is npz or safetensors."""
        learned, graph = self.learned, self.manifold
        yield "descriptors", learned.descriptors
        yield "lengths", self.lengths
        yield "features", learned.features
        affinity = {
            "affinity_data": graph.affinity.data,
            "affinity_indices": graph.affinity.indices,
            "affinity_indptr": graph.affinity.indptr,
            "anchors": graph.anchors,
        }
        yield "graph", affinity | answering_arrays(learned, self.loss_curve)
        yield "model", self.weights
        yield from index_parts(learned.indexes())

    def manifest(self) -> dict[str, Any]:
        """The entries of the manifest for a full collection with these contents."""
        return new_entries("full", self.learned, self.n_neighbors, self.learned.indexes(), self.settings, self.info)


def answering_arrays(learned: FeatureModel, loss_curve: Floats) -> dict[str, Any]:
    """The small arrays that answering needs."""
    taken = {"mean": learned.preprocessor.mean, "whitening": learned.preprocessor.whitening}
    return {
        "nodes": learned.nodes,
        "inside": learned.inside,
        "loss_curve": loss_curve,
        **{name: array for name, array in taken.items() if array is not None},
    }


def index_parts(indexes: dict[str, InvertedFile | None]) -> Iterator[tuple[str, Any]]:
    """Role and arrays of the indexes that there are."""
    for name, index in indexes.items():
        if index is not None:
            yield INDEX_ROLES[name], index.packed()


class Segment(NamedTuple):
    """A file that a commit refers to."""

    role: str
    name: str
    size: int
    sha256: str


def write_segments(folder: Path, parts: Iterable[tuple[str, Any]]) -> list[Segment]:
    """Every segment, on the disk for good, or none. parts: role and content."""
    folder.mkdir(exist_ok=True)
    before = set(folder.iterdir())
    try:
        segments = [_write_segment(folder, *part) for part in parts]
        sync_directory(folder)
    except BaseException:
        for file in set(folder.iterdir()) - before:  # a full disk is not to stay full
            file.unlink()
        raise
    return segments


def remove_unused(folder: Path, used: set[str]) -> None:
    """Old segments go; a reader that still has one open keeps it until it is done."""
    for file in folder.iterdir():
        if SEGMENT_NAME.fullmatch(file.name) and file.name not in used:
            with suppress(OSError):  # the commit stands; what is left over goes with the next one
                file.unlink()


def sync_directory(folder: Path) -> None:
    """Make the names in a folder last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_segment(folder: Path, role: str, content: Any) -> Segment:
    name = f"{role}-{secrets.token_hex(8)}.{ROLES[role]}"
    with open(folder / name, "xb") as file:
        hashed = _HashingFile(file)
        if ROLES[role] == "npy":
            np.lib.format.write_array(hashed, np.ascontiguousarray(content), allow_pickle=False)
        elif ROLES[role] == "npz":
            _write_npz(hashed, content)
        else:
            hashed.write(safetensors_bytes(content))
        file.flush()
        os.fsync(file.fileno())
    return Segment(role, name, hashed.size, hashed.digest.hexdigest())


def _write_npz(file: Any, arrays: dict[str, Any]) -> None:
    """As numpy.savez, which seeks back and forth, where a running digest cannot follow."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


class _HashingFile:
    """A file that keeps count and digest of what goes through it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.size, self.digest = file, 0, hashlib.sha256()

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.digest.update(view)
        self.size += len(view)
        return self._file.write(view)

    def flush(self) -> None:
        """A zip archive asks for it when it is done; the file is flushed when all is written."""


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves on the disk: segments by role and content, and what the manifest says of them."""

    parts: Callable[[], Iterable[tuple[str, Any]]]
    manifest: dict[str, Any]


@dataclass(frozen=True)
class Tables:
    """The items of a collection as (position, id, metadata), those that were added after the fit last.

    next_id: a number that was never given, nor any behind it.
    """

    items: list[tuple[int, Any, str | None]]
    added: AddedItems | None = None
    next_id: int = 0

    def additions(self) -> list[Sequence[Any]]:
        """Rows of the table of additions."""
        if self.added is None or not len(self.added):
            return []
        return list(addition_rows(self.added, [row[0] for row in self.items[-len(self.added) :]]))


def write_collection(
    path: str | Path,
    contents: Contents,
    ids: Sequence[Any] | None,
    metadata: Sequence[Mapping[str, Any] | None] | None = None,
    source: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Make the directory at `path` hold exactly these contents, in one step.

    source: where the descriptors come from, as JSON has it. overwrite: whether a collection there may be replaced.
    """
    n = len(contents.learned.features)
    names, texts = check_ids(ids, n), metadata_texts(metadata, n)
    tables = Tables(list(zip(range(n), names, texts, strict=True)))
    manifest = contents.manifest() | {"source": source or {}}
    write_new(path, Fitted(contents.parts, manifest), tables, overwrite)


def write_new(path: str | Path, fitted: Fitted, tables: Tables, overwrite: bool) -> None:
    """Make a collection at `path` of what was fitted, in one step.

    It is written beside its place and moved there when it is complete. overwrite: whether a collection that is there
    may be replaced, by one transaction that switches to new segments.
    """
    target = Path(path)
    check_target(target)
    try:
        if not is_collection(target):
            _create(target, fitted, tables)
        elif overwrite:
            named = {**fitted.manifest, "collection": secrets.token_hex(16)}  # it is another one from now on
            _commit(target, replace(fitted, manifest=named), lambda _: tables)
        else:
            raise CollectionError(
                f"there is a collection at {target} already, which this would replace",
                "choose another path, or say that it may be overwritten (overwrite=True, --overwrite)",
            )
    except OSError as error:
        raise unwritten(target, error) from error


def write_refit(directory: Path, fitted: Fitted, tables: Callable[[sqlite3.Connection], Tables]) -> None:
    """Switch a collection to a new fit of its items in one transaction. tables: asked inside the transaction."""
    try:
        _commit(directory, fitted, tables)
    except OSError as error:
        raise unwritten(directory, error) from error


def merge_refit(version: Version, learned: FeatureModel, n_neighbors: int) -> Callable[[sqlite3.Connection], Tables]:
    """The items of a new fit of a version, to be asked for inside the transaction that commits it.

    learned: fitted on the version's items in their order. Items that were added meanwhile are placed beside them, and
    items that were removed meanwhile are left out.
    """

    def tables(database: sqlite3.Connection) -> Tables:
        if entry(database, "fit") != version.manifest.fit:
            raise RefittedMeanwhileError(
                f"{version.directory} was refitted meanwhile by another process", "open it again"
            )
        file, sizes, total = version.directory / DATABASE, version.manifest.sizes, RowSum()
        items = read_items(database, str(file), total)
        added = read_additions(database, str(file), total, sizes, items)
        checked_rows(database, file, total)
        now = dict(zip(items.positions.tolist(), zip(items.ids, items.metadata, strict=True), strict=True))
        fitted, next_id = version.items.positions.tolist(), int(entry(database, "next_id"))
        still_there: list[tuple[int, Any, str | None]] = [
            (row, *now[position]) for row, position in enumerate(fitted) if position in now
        ]
        late = np.setdiff1d(items.positions, version.items.positions)
        if not len(late):
            return Tables(still_there, None, next_id)
        among_added = np.searchsorted(items.positions[items.positions >= sizes.items], late)
        originals = version.learned.preprocessor.restore(added.descriptors[among_added], added.lengths[among_added])
        placed = place(learned, originals, min(n_neighbors, len(learned.nodes)))
        new = [(len(fitted) + row, *now[position]) for row, position in enumerate(late.tolist())]
        return Tables(still_there + new, placed, next_id)

    return tables


def check_target(path: str | Path) -> None:
    """Refuse a place where something stands that is no collection; an empty directory may give way."""
    target = Path(path)
    if target.name in ("", "..") or "\0" in target.name:
        raise CollectionError(f"{str(target)!r} is no name for a collection", "give the path of a new directory")
    try:
        free = not target.exists() or (target.is_dir() and not any(target.iterdir()))
        if not free and not is_collection(target):
            raise CollectionError(
                f"{target} exists and is no collection, so it is left alone", "choose another path, or remove it first"
            )
    except OSError as error:
        raise unwritten(target, error) from error


def _create(target: Path, fitted: Fitted, tables: Tables) -> None:
    _remove_abandoned(target)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.mkdir(parents=True)
        with only_one(partial):
            _commit(partial, fitted, lambda _: tables)
            sync_directory(partial)
            os.replace(partial, target)  # an empty directory at the target gives way
        sync_directory(target.parent)
    except CollectionError as error:
        problem = error.problem.replace(str(partial), str(target))  # nobody has heard of the folder beside it
        raise CollectionError(problem, error.hint) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _remove_abandoned(target: Path) -> None:
    """What a process that was killed has left beside the target; one that is still at work holds the lock."""
    for partial in target.parent.glob(f".{glob.escape(target.name)}.????????.partial"):
        with suppress(CollectionError), only_one(partial):
            shutil.rmtree(partial, ignore_errors=True)


def _commit(directory: Path, fitted: Fitted, tables: Callable[[sqlite3.Connection], Tables]) -> None:
    refuse_link(directory / SEGMENTS)
    with writing(directory) as database:
        make_tables(database)
        wanted = tables(database)
        segments = write_segments(directory / SEGMENTS, fitted.parts())
        _replace_tables(database, directory, segments, wanted, fitted.manifest)
    # Somebody else may have begun to write: only inside a transaction is it known what is used, and whoever is in one
    # takes the old ones away afterwards.
    with suppress(CollectionError, OSError), writing(directory) as database:
        used = {name for (name,) in database.execute("SELECT name FROM segments")}
        remove_unused(directory / SEGMENTS, used)
        for partial in directory.glob(f".{LAST_COMMIT}.????????.partial"):  # of a process that was killed
            with suppress(OSError):  # the commit stands, whatever has this name
                partial.unlink()


def _replace_tables(
    database: sqlite3.Connection, directory: Path, segments: list[Segment], tables: Tables, entries: dict[str, Any]
) -> None:
    lasting = "SELECT key, value FROM manifest WHERE key IN ('collection', 'sequence')"
    saved = database.execute(lasting).fetchall()
    for table in TABLES:
        database.execute(f"DELETE FROM {table}")  # noqa: S608 - fixed names
    database.executemany("INSERT INTO manifest VALUES (?, ?)", saved)
    items, additions, rows = tables.items, tables.additions(), RowSum()
    database.executemany("INSERT INTO items VALUES (?, ?, ?)", items)
    database.executemany("INSERT INTO additions VALUES (?, ?, ?, ?, ?, ?)", additions)
    database.executemany("INSERT INTO segments VALUES (?, ?, ?, ?)", segments)
    rows.add_items(items)
    rows.add_additions(additions)
    last_id = max((id_ for _, id_, _ in items if isinstance(id_, int)), default=-1)
    start, n_fitted = max((position for position, _, _ in items), default=-1) + 1, entries["shape"]["items"]
    new = {
        "commit": secrets.token_hex(8),
        "next_position": max(start, n_fitted),
        "next_id": max(last_id + 1, tables.next_id),
        "changes": {"added": len(additions), "removed": n_fitted + len(additions) - len(items)},
    }
    write_checksum(database, directory, rows, entries | new)
