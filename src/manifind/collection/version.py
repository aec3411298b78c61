"""Reading a collection, of which nothing is believed before it is checked: one version of it, with all that answers."""

import hashlib
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from manifind.arrays import Floats, row_blocks
from manifind.collection import format
from manifind.collection.database import reading, refuse_link, retried_while_changing
from manifind.collection.format import DATABASE, SEGMENTS, Manifest, Sizes, damaged
from manifind.collection.items import Committed, ItemRows, ItemTable, read_item_table, read_rows
from manifind.errors import CollectionError, ManifindError
from manifind.graph.joining import JoiningShape, NodeScales
from manifind.graph.preprocess import Preprocessor
from manifind.index.exact import Metric, RowMatrix
from manifind.index.ivf import InvertedFile, Quality
from manifind.index.vector_index import DecodedRows
from manifind.io.npy import read_stored_arrays
from manifind.search.cutoff import read_cutoff
from manifind.search.feature_model import FeatureModel, QuerySettings
from manifind.search.live_index import AddedItems, LiveIndex
from manifind.settings import CONSTRAINTS, POSITIVE, SIMILARITY, or_none, whole
from manifind.text import count

INDEX_ROLES = {"descriptors": "descriptor_index", "features": "feature_index"}
_METRICS: dict[str, Metric] = {"descriptors": "euclidean", "features": "cosine"}
_ROWS_PER_BLOCK = 4096
_WIDEST = 1000.0  # of edges by which queries join: their scales are no distances any more
_Rows: TypeAlias = tuple[RowMatrix, RowMatrix, Callable[[str], InvertedFile | None]]
"""Descriptors, features, and what gives the indexes over them."""


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


@retried_while_changing
def read_snapshot(directory: Path) -> Snapshot:
    """What a collection says of itself, with the size of every segment checked."""
    file = directory / DATABASE
    last = format.usable_last_commit(directory)  # before the tables: a commit may come in between
    with reading(directory) as database:
        manifest = Manifest.read(database.execute(format.SELECT_MANIFEST), file)
        format.check_schema(database, file)  # of another format it may be otherwise
        rows = database.execute(format.SELECT_SEGMENTS).fetchall()
        items, added, total = read_rows(database, str(file), manifest.sizes)
        format.check_checksum(database, file, total, last)
        _check_counts(directory, manifest, items, len(added))
        segments = _existing_segments(directory, manifest, rows)
    sizes, digests = {row[0]: row[2] for row in rows}, {row[0]: row[3] for row in rows}
    return Snapshot(directory, manifest, items, added, segments, sizes, digests)


@retried_while_changing
def read_manifest(directory: Path) -> Manifest:
    """What a collection says of itself, without its items, which are not compared with anything."""
    with reading(directory) as database:
        return Manifest.read(database.execute(format.SELECT_MANIFEST), directory / DATABASE)


@retried_while_changing
def read_commit(directory: Path) -> Any:
    """What names the present version of a collection: another one after every commit."""
    with reading(directory) as database:
        return database.execute("SELECT value FROM manifest WHERE key = 'commit'").fetchone()


def verify_digests(snapshot: Snapshot) -> None:
    """Compare the content of every segment with the digest that was recorded when it was written."""
    for role in snapshot.segments:
        _verify_digest(snapshot, role, "the digest that was recorded")
    format.read_last_commit(snapshot.directory)


def read_array(snapshot: Snapshot, role: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """A memory-mapped float32 segment of exactly this shape."""
    file = snapshot.segments[role]
    try:
        array: np.ndarray[Any, Any] = np.lib.format.open_memmap(file, mode="r")  # takes no objects
    except Exception as error:  # numpy raises many kinds on a damaged header
        raise damaged(f"{file} is damaged: {error}") from error
    if array.dtype != np.float32 or array.shape != shape or not array.flags.c_contiguous:
        expected = f"float32 of shape {shape} was expected"
        raise damaged(f"{file} holds {array.dtype} of shape {array.shape}, and {expected}")
    return array


def read_arrays(snapshot: Snapshot, role: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an npz segment by name."""
    file = snapshot.segments[role]
    try:
        return read_stored_arrays(file)
    except (ManifindError, OSError) as error:
        raise damaged(f"{file} is damaged: {error}") from error


def _verify_digest(snapshot: Snapshot, role: str, expected: str) -> None:
    file = snapshot.segments[role]
    try:
        with open(file, "rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
    except FileNotFoundError as error:
        hint = "refresh the collection, which may have been refitted since, and try again"
        raise CollectionError(f"{file} is gone", hint) from error
    except OSError as error:
        raise damaged(f"{file} cannot be read: {error.strerror or error}") from error
    if digest != snapshot.digests[role]:
        raise damaged(f"{file} is damaged: its content differs from {expected}")


def _check_counts(directory: Path, manifest: Manifest, items: ItemRows, n_added: int) -> None:
    """Whether as many came and went since the fit as the manifest says, and the next gets what no item has."""
    n_fitted, changes = manifest.sizes.items, manifest.entries.get("changes")
    if changes != {"added": n_added, "removed": n_fitted - (len(items.ids) - n_added)}:
        there = f"{count(len(items.ids), 'item')} where {n_fitted} were fitted"
        raise damaged(f"{directory} has {there}, and since then, it says, {str(changes)[:200]}")
    numbers = items.ids if items.ids and isinstance(items.ids[0], int) else []
    free = {
        "next_position": max(n_fitted, *(last + 1 for last in items.positions[-1:].tolist()), 0),
        "next_id": max(0, max(numbers, default=-1) + 1),
    }
    for name, least in free.items():
        value = manifest.entries.get(name)
        if type(value) is not int or not least <= value <= format.BEYOND:
            expected = f"a whole number of at least {least} was expected"
            raise damaged(f"{directory} is damaged: its {name} is {str(value)[:60]}, and {expected}")


def _existing_segments(directory: Path, manifest: Manifest, rows: list[Any]) -> dict[str, Path]:
    """The files by role. An index that is not what was written counts as missing where it can be made anew."""
    found = {}
    refuse_link(directory / SEGMENTS)
    for role, name, size, _ in rows:
        if not isinstance(name, str) or not format.SEGMENT_NAME.fullmatch(name) or not name.startswith(f"{role}-"):
            raise damaged(f"{directory} refers to {repr(name)[:200]}, which is no name of a segment")
        file = directory / SEGMENTS / name
        problem = _problem(file, size)
        if problem is None:
            found[role] = file
        elif role in manifest.roles:
            raise damaged(f"{file} {problem}")
    missing = manifest.roles - set(found)
    if missing:
        raise damaged(f"{directory} lacks its {', '.join(sorted(missing))}")
    return found


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


@dataclass(frozen=True)
class Version:
    """A fit, and the items that are there: one ItemTable and one LiveIndex, with the same rows.

    opened: what was fitted, as it was opened; `learned` is the same after a check.
    blocks: of added items, in the order in which they were added; joined for the first search.
    """

    directory: Path
    manifest: Manifest
    opened: FeatureModel
    loss_curve: Floats
    snapshot: Snapshot
    items: ItemTable
    blocks: tuple[AddedItems, ...]

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def added(self) -> AddedItems:
        """The items that were added after the fit."""
        return self.blocks[0] if len(self.blocks) == 1 else AddedItems.join(self.blocks)

    @property
    def learned(self) -> FeatureModel:
        """What was fitted; refused where a file of it was cut off since it was opened."""
        self._check_files()
        return self.opened

    @property
    def index(self) -> LiveIndex:
        """All items to search in, after the same check."""
        self._check_files()
        return self._index

    @cached_property
    def _index(self) -> LiveIndex:
        return LiveIndex(self.opened, self.items.present, self.added)

    def _check_files(self) -> None:
        """Before every answer refuse a mapped file that has become shorter: reading beyond its end kills the process.

        A map keeps its file open, and with it the content of one that was deleted. The map itself is asked, since
        another file may stand at the path by now.
        """
        for rows in (self.opened.descriptors, self.opened.features):
            if isinstance(rows, np.memmap):
                size, expected = rows._mmap.size(), rows.offset + rows.nbytes  # type: ignore[attr-defined]
                if size < expected:
                    was = f"it has {size} bytes, and had {expected} when it was opened"
                    raise damaged(f"{rows.filename} is damaged: {was}")

    def check_finite(self, values: Floats, what: str) -> None:
        """Refuse values that were computed from the `what` of this collection, where one is not a finite number."""
        if not np.isfinite(values).all():
            raise damaged(f"{self.directory} is damaged: its {what} hold values that are not finite numbers")

    def check_all_finite(self) -> None:
        """Refuse descriptors and features of which any is not a finite number."""
        for name in ("descriptors", "features"):
            rows = getattr(self.learned, name)
            for part in row_blocks(len(rows), _ROWS_PER_BLOCK):
                self.check_finite(rows[part], name)

    def after(self, placed: AddedItems | None, done: Committed) -> Self:
        """The version that a commit of our own has made of this one. placed: the items that it has added."""
        blocks = (self.added,) if "added" in self.__dict__ else self.blocks  # what was joined stays so
        places = self.items.later_kept(done)
        if places is not None:
            blocks = (self.added[places],)
        if placed is not None:
            blocks = (*blocks, placed)
        manifest, items = self.manifest.updated(done.entries), self.items.after(done)
        return replace(self, manifest=manifest, items=items, blocks=blocks)


def open_version(snapshot: Snapshot, before: Version | None = None) -> Version:
    """A version from what was read. before: an older one, whose fit is taken over where it is the same."""
    directory, manifest = snapshot.directory, snapshot.manifest
    if before is not None and before.manifest.fit == manifest.fit:
        learned, loss_curve = before.opened, before.loss_curve
    else:
        learned, loss_curve = _load_model(snapshot)
    if len(learned.nodes) < len(learned.features) and not np.isin(snapshot.added.neighbours, learned.nodes).all():
        raise damaged(f"{directory} is damaged: an addition has neighbours that are no nodes")
    items = read_item_table(snapshot.items, manifest.sizes.items, str(directory))
    return Version(directory, manifest, learned, loss_curve, snapshot, items, (snapshot.added,))


def original_descriptors(version: Version) -> Floats:
    """(n, d) the descriptors of the items that are there, as they were given, to float32 rounding."""
    fitted, later = np.flatnonzero(version.items.present), version.added
    lengths = read_array(version.snapshot, "lengths", (version.items.n_fitted, 1))
    restore = version.learned.preprocessor.restore
    out = np.empty((len(version), version.manifest.sizes.dimension), dtype=np.float32)
    out[: len(fitted)] = restore(version.learned.descriptors[fitted], lengths[fitted])
    out[len(fitted) :] = restore(later.descriptors, later.lengths)
    if not np.isfinite(out).all():
        raise damaged(f"{version.directory} is damaged: a descriptor or its length is no number")
    return out


def _load_model(snapshot: Snapshot) -> tuple[FeatureModel, Floats]:
    """What answers, and the loss curve of its training."""
    manifest, graph = snapshot.manifest, read_arrays(snapshot, "graph")
    try:
        kind, scale = manifest.preprocess["kind"], manifest.preprocess["scale"]
        preprocessor = Preprocessor(kind, graph.get("mean"), scale, graph.get("whitening"))
        queries = read_query_settings(manifest.queries)
        check_settings(preprocessor, queries)
        _check_graph(preprocessor, graph, manifest.sizes)
        descriptors, features, ready = (_full_rows if manifest.is_full else _compressed_rows)(snapshot, graph)
        cutoff = read_cutoff(manifest.info.get("cutoff"))
        rows = (preprocessor, queries, descriptors, features, graph["nodes"], graph["inside"])
        learned = FeatureModel(*rows, ready, cutoff, _scales(queries, graph))
        return learned, graph["loss_curve"]
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # the last is faiss's
        raise damaged(f"{snapshot.directory} is damaged: {repr(error)[:200]}") from error


def _scales(queries: QuerySettings, graph: dict[str, Any]) -> NodeScales | None:
    """By which queries join; None where an earlier version fitted, or another graph."""
    if queries.joining is None:
        return None
    scales = NodeScales(*(graph[f"node_{name}"] for name in NodeScales._fields))
    check_scales(scales, graph["nodes"].shape)
    return scales


def check_scales(scales: NodeScales, shape: tuple[int, ...]) -> None:
    """A ValueError where what was read can be no scales of nodes."""
    for name, array in scales._asdict().items():
        if array.dtype != np.float32 or array.shape != shape:
            raise ValueError(f"the {name} do not fit the nodes")
        if not ((array >= 0) & (array < np.inf)).all():
            raise ValueError(f"the {name} of the nodes hold what is no length")


def _full_rows(snapshot: Snapshot, graph: dict[str, Any]) -> _Rows:
    (n, d, D, _), nodes = snapshot.manifest.sizes, graph["nodes"]
    descriptors, features = read_array(snapshot, "descriptors", (n, d)), read_array(snapshot, "features", (n, D))

    def ready(name: str) -> InvertedFile | None:
        """The index as it was written; None, so that it is made anew, if it is not what was written."""
        try:
            rows = features if name == "features" else descriptors if len(nodes) == n else descriptors[nodes]
            return _index(snapshot, name, rows.shape, rows)
        except (CollectionError, KeyError, TypeError, ValueError, RuntimeError):
            return None

    return descriptors, features, ready


def _compressed_rows(snapshot: Snapshot, graph: dict[str, Any]) -> _Rows:
    n, d, D, _ = snapshot.manifest.sizes
    if not graph["inside"].all():
        raise ValueError("what is compressed knows no truncation")
    shapes = {"descriptors": (len(graph["nodes"]), d), "features": (n, D)}
    found = {name: _index(snapshot, name, shape, None) for name, shape in shapes.items()}
    return DecodedRows(found["descriptors"], d), DecodedRows(found["features"], D), found.__getitem__


def _index(snapshot: Snapshot, name: str, shape: tuple[int, ...], rows: Floats | None) -> InvertedFile:
    """An index that was written before, and can be made anew where it is not whole any more.

    shape: of what it is over. rows: these, None where only codes are there.
    """
    quality, role = Quality(**snapshot.manifest.indexes[name]), INDEX_ROLES[name]
    if role not in snapshot.segments:
        raise damaged(f"{snapshot.directory} lacks its {role}")
    _verify_digest(snapshot, role, "its digest")
    packed = read_arrays(snapshot, role)
    return InvertedFile.from_packed(packed, quality, shape[0], shape[1], _METRICS[name], rows)


def read_query_settings(entries: dict[str, Any]) -> QuerySettings:
    """From the manifest; a TypeError or ValueError where it holds what is none."""
    shape = entries.get("joining")
    if shape is None:
        return QuerySettings(**entries)
    joining = JoiningShape(*shape)
    if not (POSITIVE.holds(joining.width) and POSITIVE.holds(joining.own) and max(joining) <= _WIDEST):
        raise ValueError(f"{repr(shape)[:60]} where two numbers above 0 were expected")
    return QuerySettings(**{**entries, "joining": joining})


def check_settings(preprocessor: Preprocessor, queries: QuerySettings) -> None:
    """A ValueError where what was read is nothing that a model is fitted with."""
    for value, constraint in (
        (preprocessor.kind, CONSTRAINTS["preprocess"]),
        (preprocessor.scale, or_none(POSITIVE)),
        (queries.n_neighbors, whole(1)),
        (queries.similarity, SIMILARITY),
        (queries.passes, CONSTRAINTS["query_passes"]),
        (queries.index, CONSTRAINTS["index"]),
    ):
        if not constraint.holds(value):
            raise ValueError(f"{repr(value)[:60]} where {constraint.words} was expected")


def _check_graph(preprocessor: Preprocessor, graph: dict[str, Any], sizes: Sizes) -> None:
    n, d, nodes, inside, loss_curve = sizes.items, sizes.dimension, graph["nodes"], graph["inside"], graph["loss_curve"]
    if nodes.dtype != np.int64 or nodes.ndim != 1 or not len(nodes) or nodes.min() < 0 or nodes.max() >= n:
        raise ValueError("the graph names nodes that are no items")
    if (np.diff(nodes) <= 0).any():
        raise ValueError("the nodes of the graph are out of order")
    if sizes.neighbors > len(nodes):
        raise ValueError("an item is to have more neighbours than there are nodes")
    if inside.dtype != np.bool_ or inside.shape != (n,):
        raise ValueError("the graph's truncation does not fit the items")
    for name, shape, kinds in (("mean", (d,), ("center", "whiten")), ("whitening", (d, d), ("whiten",))):
        array = getattr(preprocessor, name)
        if (array is None) == (preprocessor.kind in kinds):
            raise ValueError(f"the {name} does not fit the preprocessing")
        if array is not None and not (array.dtype == np.float32 and array.shape == shape and np.isfinite(array).all()):
            raise ValueError(f"the {name} does not fit the descriptors")
    if loss_curve.dtype != np.float32 or loss_curve.ndim != 2 or loss_curve.shape[1] != 3:
        raise ValueError("the loss curve is no table of three columns")
    if not np.isfinite(loss_curve).all():
        raise ValueError("the loss curve has values that are not finite numbers")
