"""Writes to a collection: segments first and then one transaction for a fit, one small transaction for a change."""

import glob
import hashlib
import os
import secrets
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import numpy as np
from safetensors.numpy import save as safetensors_bytes

from manifind.arrays import Floats
from manifind.checkpoint import installed_versions
from manifind.collection import format
from manifind.collection.database import is_collection, only_one, refuse_link, write_errors, writing
from manifind.collection.format import DATABASE, JUDGED_TABLES, ROLES, SEGMENTS, Manifest, RowSum, entry
from manifind.collection.history import check_notes, label_of_change, record_step, rows_before, undo_last
from manifind.collection.ids import check_ids
from manifind.collection.items import SELECT_ADDITIONS, SELECT_ITEMS, Committed, addition_rows, read_rows
from manifind.collection.metadata import Fields, merged_metadata, metadata_texts, read_metadata
from manifind.collection.version import INDEX_ROLES, Version
from manifind.errors import CollectionError, InputError
from manifind.graph.manifold import Manifold
from manifind.index.ivf import InvertedFile
from manifind.search.feature_model import FeatureModel
from manifind.search.live_index import AddedItems, place

Item: TypeAlias = tuple[int, Any, str | None]
"""Position, id and metadata."""

Segment: TypeAlias = tuple[str, str, int, str]
"""Role, name, size and SHA-256 of a file that a commit refers to."""


@dataclass(frozen=True)
class Contents:
    """A fitted model, ready to be written: in full, or what only answers, without lengths, manifold and weights.

    lengths: (n, 1) what each descriptor was divided by. weights: the network's arrays by name. loss_curve: (steps, 3).
    n_neighbors: of an item in the graph. settings, info: plain values. indexes: None for those of the model.
    source: where the descriptors come from.
    """

    learned: FeatureModel
    lengths: Floats | None
    manifold: Manifold | None
    weights: dict[str, Floats]
    loss_curve: Floats
    n_neighbors: int
    settings: dict[str, Any]
    info: dict[str, Any]
    indexes: Mapping[str, InvertedFile] | None = None
    source: dict[str, Any] = field(default_factory=dict)

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Role and content of each segment; a dictionary of arrays where the format is npz or safetensors."""
        learned, graph = self.learned, self.manifold
        arrays = {"nodes": learned.nodes, "inside": learned.inside, "loss_curve": self.loss_curve}
        taken = {"mean": learned.preprocessor.mean, "whitening": learned.preprocessor.whitening}
        arrays |= {name: array for name, array in taken.items() if array is not None}
        if learned.scales is not None:
            arrays |= {f"node_{name}": array for name, array in learned.scales._asdict().items()}
        if graph is None:
            yield "graph", arrays
        else:
            yield "descriptors", learned.descriptors
            yield "lengths", self.lengths
            yield "features", learned.features
            affinity = {f"affinity_{name}": getattr(graph.affinity, name) for name in ("data", "indices", "indptr")}
            yield "graph", affinity | {"anchors": graph.anchors} | arrays
            yield "model", self.weights
        for name, index in self._indexes():
            yield INDEX_ROLES[name], index.packed()

    def manifest(self) -> dict[str, Any]:
        """The entries of the manifest that a collection with these contents sets."""
        learned, preprocessor = self.learned, self.learned.preprocessor
        widths = learned.descriptors.shape[1], learned.features.shape[1]
        sizes = format.Sizes(len(learned.features), *widths, min(self.n_neighbors, len(learned.nodes)))
        return {
            "kind": "compressed" if self.manifold is None else "full",
            "fit": secrets.token_hex(8),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": installed_versions(),
            "shape": sizes._asdict(),
            "preprocess": {"kind": preprocessor.kind, "scale": preprocessor.scale},
            "queries": asdict(learned.queries),
            "indexes": {name: index.quality._asdict() for name, index in self._indexes()},
            "settings": self.settings,
            "info": self.info,
            "source": self.source,
        }

    def _indexes(self) -> list[tuple[str, InvertedFile]]:
        indexes = self.learned.indexes() if self.indexes is None else self.indexes
        return [(name, index) for name, index in indexes.items() if index is not None]


def write_segments(folder: Path, parts: Iterable[tuple[str, Any]]) -> list[Segment]:
    """Every segment, on the disk for good, or none."""
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
        if format.SEGMENT_NAME.fullmatch(file.name) and file.name not in used:
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
            # As numpy.savez, which seeks back and forth, where a running digest cannot follow.
            with zipfile.ZipFile(hashed, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
                for member, array in content.items():
                    with archive.open(f"{member}.npy", "w", force_zip64=True) as inner:
                        np.lib.format.write_array(inner, np.asarray(array), allow_pickle=False)
        else:
            hashed.write(safetensors_bytes(content))
        file.flush()
        os.fsync(file.fileno())
    return role, name, hashed.size, hashed.digest.hexdigest()


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
class Tables:
    """The items of a collection as (position, id, metadata), those that were added after the fit last.

    next_id: a number that was never given, nor any behind it.
    """

    items: list[Item]
    added: AddedItems | None = None
    next_id: int = 0


def write_collection(
    path: str | Path,
    contents: Contents,
    ids: Sequence[Any] | None,
    metadata: Sequence[Mapping[str, Any] | None] | None = None,
    source: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Make the directory at `path` hold exactly these contents, in one step. source: where descriptors come from."""
    n = len(contents.learned.features)
    items = list(zip(range(n), check_ids(ids, n), metadata_texts(metadata, n), strict=True))
    write_new(path, replace(contents, source=source or {}), Tables(items), overwrite)


def write_new(path: str | Path, contents: Contents, tables: Tables, overwrite: bool) -> None:
    """Make a collection at `path` of what was fitted, in one step.

    It is written beside its place and moved there when it is complete. overwrite: whether a collection that is there
    may be replaced, by one transaction that switches to new segments.
    """
    target = Path(path)
    check_target(target)
    with write_errors(target):
        if not is_collection(target):
            _create(target, contents, tables)
        elif overwrite:
            write_refit(target, contents, lambda _: tables, is_another=True)
        else:
            hint = "choose another path, or say that it may be overwritten (overwrite=True, --overwrite)"
            raise CollectionError(f"there is a collection at {target} already, which this would replace", hint)


def write_refit(
    directory: Path, contents: Contents, tables: Callable[[sqlite3.Connection], Tables], is_another: bool = False
) -> None:
    """Switch a collection to a new fit in one transaction.

    tables: asked inside the transaction. is_another: whether it is another collection from now on, with another name.
    """
    entries = contents.manifest() | ({"collection": secrets.token_hex(16)} if is_another else {})
    with write_errors(directory):
        refuse_link(directory / SEGMENTS)
        with writing(directory) as database:
            format.make_tables(database)
            wanted = tables(database)
            segments = write_segments(directory / SEGMENTS, contents.parts())
            _replace_tables(database, directory, segments, wanted, entries | {"notes": _judged(database, is_another)})
    # Somebody else may have begun to write: only inside a transaction is it known what is used, and whoever is in one
    # takes the old ones away afterwards.
    with suppress(CollectionError, OSError), writing(directory) as database:
        used = {name for (name,) in database.execute("SELECT name FROM segments")}
        remove_unused(directory / SEGMENTS, used)
        for partial in directory.glob(f".{format.LAST_COMMIT}.????????.partial"):  # of a process that was killed
            with suppress(OSError):  # the commit stands, whatever has this name
                partial.unlink()


def merge_refit(version: Version, contents: Contents) -> Callable[[sqlite3.Connection], Tables]:
    """The items of a new fit of a version, to be asked for inside the transaction that commits it.

    contents: fitted on the version's items in their order. Items that were added meanwhile are placed beside them, and
    items that were removed meanwhile are left out.
    """
    learned, k = contents.learned, min(contents.n_neighbors, len(contents.learned.nodes))

    def tables(database: sqlite3.Connection) -> Tables:
        if entry(database, "fit") != version.manifest.fit:
            problem = f"{version.directory} was refitted meanwhile by another process"
            raise RefittedMeanwhileError(problem, "open it again")
        file, sizes = version.directory / DATABASE, version.manifest.sizes
        items, added, total = read_rows(database, str(file), sizes)
        format.check_checksum(database, file, total, format.usable_last_commit(version.directory))
        now = dict(zip(items.positions.tolist(), zip(items.ids, items.metadata, strict=True), strict=True))
        fitted, next_id = version.items.positions.tolist(), int(entry(database, "next_id"))
        still_there: list[Item] = [(row, *now[one]) for row, one in enumerate(fitted) if one in now]
        late = np.setdiff1d(items.positions, version.items.positions)
        if not len(late):
            return Tables(still_there, None, next_id)
        among_added = np.searchsorted(items.positions[items.positions >= sizes.items], late)
        originals = version.learned.preprocessor.restore(added.descriptors[among_added], added.lengths[among_added])
        placed = place(learned, originals, k)
        new = [(len(fitted) + row, *now[position]) for row, position in enumerate(late.tolist())]
        return Tables(still_there + new, placed, next_id)

    return tables


def check_target(path: str | Path) -> None:
    """Refuse a place where something stands that is no collection; an empty directory may give way."""
    target = Path(path)
    if target.name in ("", "..") or "\0" in target.name:
        raise CollectionError(f"{str(target)!r} is no name for a collection", "give the path of a new directory")
    with write_errors(target):
        free = not target.exists() or (target.is_dir() and not any(target.iterdir()))
        if not free and not is_collection(target):
            hint = "choose another path, or remove it first"
            raise CollectionError(f"{target} exists and is no collection, so it is left alone", hint)


def _create(target: Path, contents: Contents, tables: Tables) -> None:
    for abandoned in target.parent.glob(f".{glob.escape(target.name)}.????????.partial"):
        with suppress(CollectionError), only_one(abandoned):  # or it is still at work
            shutil.rmtree(abandoned, ignore_errors=True)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.mkdir(parents=True)
        with only_one(partial):
            write_refit(partial, contents, lambda _: tables)
            sync_directory(partial)
            os.replace(partial, target)  # an empty directory at the target gives way
        sync_directory(target.parent)
    except CollectionError as error:
        problem = error.problem.replace(str(partial), str(target))  # the folder beside it is no concern of the user
        raise CollectionError(problem, error.hint) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _judged(database: sqlite3.Connection, is_another: bool) -> str:
    """The sum of all judgements, which a new fit of the same collection leaves as they are."""
    total = RowSum()
    for table in JUDGED_TABLES:
        if is_another:
            database.execute(f"DELETE FROM {table}")  # noqa: S608 - fixed names
        total.add_notes(table, database.execute(f"SELECT * FROM {table}"))  # noqa: S608 - fixed names
    return str(total)


def _replace_tables(
    database: sqlite3.Connection, directory: Path, segments: list[Segment], tables: Tables, entries: dict[str, Any]
) -> None:
    lasting = database.execute(f"{format.SELECT_MANIFEST} WHERE key IN ('collection', 'sequence')").fetchall()
    for table in format.FITTED_TABLES:
        database.execute(f"DELETE FROM {table}")  # noqa: S608 - fixed names
    database.executemany("INSERT INTO manifest VALUES (?, ?)", lasting)
    items, added, rows = tables.items, tables.added, RowSum()
    additions = [] if added is None else addition_rows(added, [row[0] for row in items[len(items) - len(added) :]])
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
    format.write_checksum(database, directory, rows, entries | new)


@dataclass(frozen=True)
class Change:
    """What is to happen, in this order: ids that go, items that come, ids that get other metadata.

    ids, metadata: of the items in `placed`. ids: None for the next free numbers. metadata: fields to set, beside those
    of the item that goes under the same id. new_metadata: fields to set, by id, or what makes them of those that are
    there. protected: fields that nobody may set. label: what it does, for who may want to undo it; None for counts.
    """

    removed: Sequence[Any] = ()
    placed: AddedItems | None = None
    ids: Sequence[Any] | None = None
    metadata: Sequence[Mapping[str, Any] | None] | None = None
    new_metadata: Mapping[Any, Mapping[str, Any] | Callable[[Fields], Fields] | None] = field(default_factory=dict)
    protected: Collection[str] = ()
    label: str | None = None


class RefittedMeanwhileError(CollectionError):
    """The features that a change brings belong to a fit that is no longer there."""


def replaced(directory: Path) -> CollectionError:
    """What to say where another collection has taken the place of the one that was opened."""
    hint = "open it again, and see whether it is the one to change"
    return CollectionError(f"{directory} holds another collection than when it was opened; nothing was changed", hint)


def commit_change(directory: Path, manifest: Manifest, change: Change) -> Committed:
    """Let a change happen, or nothing. manifest: of the version that the features in it belong to."""
    with _changing(directory, manifest) as database:
        return _commit(database, change, directory)


def commit_undo(directory: Path, manifest: Manifest, number: int | None) -> str:
    """Undo the last change, or nothing; its label. number: of the change, which must be the last one."""
    with _changing(directory, manifest) as database:
        rows, notes = RowSum(entry(database, "rows")), check_notes(database, directory / DATABASE)
        format.check_checksum(database, directory / DATABASE, rows, format.usable_last_commit(directory))
        label = undo_last(database, rows, notes, number, directory)
        n_fitted = entry(database, "shape")["items"]
        (n_left,) = database.execute("SELECT count(*) FROM items WHERE position < ?", (n_fitted,)).fetchone()
        (n_added,) = database.execute("SELECT count(*) FROM additions").fetchone()
        changes = {"added": n_added, "removed": n_fitted - n_left}
        new = {"commit": secrets.token_hex(8), "changes": changes, "notes": str(notes)}
        format.write_checksum(database, directory, rows, new)
        return label


def commit_notes(directory: Path, manifest: Manifest, write: Callable[[sqlite3.Connection, RowSum], None]) -> None:
    """Write judgements, or nothing. write: given the sum that has to follow its rows."""
    with _changing(directory, manifest) as database:
        rows, notes = RowSum(entry(database, "rows")), RowSum(entry(database, "notes") or "")
        format.check_checksum(database, directory / DATABASE, rows, format.usable_last_commit(directory))
        write(database, notes)
        format.write_checksum(database, directory, rows, {"commit": secrets.token_hex(8), "notes": str(notes)})


@contextmanager
def _changing(directory: Path, manifest: Manifest) -> Iterator[sqlite3.Connection]:
    """A transaction on a collection that still has the fit of this manifest."""
    try:
        with writing(directory) as database:
            is_same_fit = entry(database, "fit") == manifest.fit
            # One of format 1 has no name of its own before its first commit.
            has_no_name_yet = is_same_fit and manifest.collection is None
            if entry(database, "collection") != manifest.collection and not has_no_name_yet:
                raise replaced(directory)
            if not is_same_fit:
                raise RefittedMeanwhileError(f"{directory} was refitted meanwhile", "open it again")
            if entry(database, "format") != format.VERSION:
                format.make_tables(database)  # those of older formats lack some
            yield database
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise format.damaged(f"{directory / DATABASE} is damaged: {repr(error)[:200]}") from error


def _commit(database: sqlite3.Connection, change: Change, directory: Path) -> Committed:
    rows, before = RowSum(entry(database, "rows")), entry(database, "commit")
    notes = RowSum(entry(database, "notes") or "")
    format.check_checksum(database, directory / DATABASE, rows, format.usable_last_commit(directory))
    former = rows_before(database, change.removed, change.new_metadata)
    went = [_remove(database, rows, id_, directory) for id_ in change.removed]
    came = _add(database, rows, change, {id_: text for _, id_, text in went}, directory)
    described = {id_: _describe(database, rows, id_, change, directory) for id_ in change.new_metadata}
    counts, n_fitted = entry(database, "changes"), entry(database, "shape")["items"]
    gone = [position for position, _, _ in went]
    later = sum(position >= n_fitted for position in gone)
    changes = {"added": counts["added"] + len(came) - later, "removed": counts["removed"] + len(gone) - later}
    new: dict[str, Any] = {"commit": secrets.token_hex(8), "changes": changes}
    positions, ids = [position for position, _, _ in came], [id_ for _, id_, _ in came]
    if positions:
        free = (id_ + 1 for id_ in ids if isinstance(id_, int))
        new |= {"next_position": positions[-1] + 1, "next_id": int(max([entry(database, "next_id"), *free]))}
    label = change.label or label_of_change(len(went), len(came), len(described))
    record_step(database, notes, label, former, positions)
    entries = format.write_checksum(database, directory, rows, new | {"notes": str(notes)})
    return Committed(before, entries, positions, ids, [text for _, _, text in came], gone, described)


def _remove(database: sqlite3.Connection, rows: RowSum, id_: Any, directory: Path) -> Item:
    """The row of an item, which is no longer there."""
    row = _item(database, id_, directory)
    rows.add_items([row], -1)
    rows.add_additions(database.execute(SELECT_ADDITIONS + " WHERE position = ?", row[:1]), -1)
    database.execute("DELETE FROM items WHERE position = ?", row[:1])
    database.execute("DELETE FROM additions WHERE position = ?", row[:1])
    return row


def _add(
    database: sqlite3.Connection, rows: RowSum, change: Change, old: dict[Any, str | None], directory: Path
) -> list[Item]:
    """The rows of the items that were added. old: metadata of those that were removed, by id."""
    if change.placed is None:
        return []
    count, start = len(change.placed), _next_position(database)
    ids = _numbers(database, count) if change.ids is None else list(change.ids)
    found = database.execute("SELECT id FROM items LIMIT 1").fetchone()
    if found is not None and ids and type(found[0]) is not type(ids[0]):  # another handle may have added the first
        hint = "ids are either all texts or all whole numbers"
        raise InputError(f"the id {ids[0]!r} is of another kind than {found[0]!r} in {directory}", hint)
    items: list[Item] = []
    fields = [None] * count if change.metadata is None else change.metadata
    for position, (id_, new) in enumerate(zip(ids, fields, strict=True), start):
        item = (position, id_, merged_metadata(old.get(id_), new, change.protected, f"the item {id_!r}"))
        try:
            database.execute("INSERT INTO items VALUES (?, ?, ?)", item)
        except sqlite3.IntegrityError as error:
            problem = f"there is an item with the id {id_!r} in {directory} already"
            raise InputError(problem, "give another id, or change that item with `update`") from error
        items.append(item)
    additions = addition_rows(change.placed, range(start, start + count))
    database.executemany("INSERT INTO additions VALUES (?, ?, ?, ?, ?, ?)", additions)
    rows.add_items(items)
    rows.add_additions(additions)
    return items


def _describe(database: sqlite3.Connection, rows: RowSum, id_: Any, change: Change, directory: Path) -> str | None:
    """Set fields of an item; the text of all its fields."""
    position, _, old = row = _item(database, id_, directory)
    given = change.new_metadata[id_]
    fields = given(read_metadata(old, f"the item {id_!r}")) if callable(given) else given
    text = merged_metadata(old, fields, change.protected, f"the item {id_!r}")
    rows.add_items([row], -1)
    rows.add_items([(position, id_, text)])
    database.execute("UPDATE items SET metadata = ? WHERE position = ?", (text, position))
    return text


def _item(database: sqlite3.Connection, id_: Any, directory: Path) -> Item:
    found = database.execute(SELECT_ITEMS + " WHERE id = ?", (id_,)).fetchone()
    if found is None or type(found[1]) is not type(id_):
        raise InputError(f"there is no item with the id {id_!r} in {directory}", "give an id of one of its items")
    return cast("Item", found)


def _next_position(database: sqlite3.Connection) -> int:
    """The first position that nobody has or had."""
    start, n_fitted = entry(database, "next_position"), entry(database, "shape")["items"]
    last = database.execute("SELECT max(position) FROM items").fetchone()[0]
    if start < n_fitted or (last is not None and start <= last):
        raise ValueError(f"the next position is said to be {start}")
    return int(start)


def _numbers(database: sqlite3.Connection, count: int) -> list[int]:
    """The next free numbers."""
    first = entry(database, "next_id")
    if first + count > format.BEYOND:
        raise InputError(f"there are not {count} free numbers behind {first - 1}", "give ids")
    return list(range(first, first + count))
