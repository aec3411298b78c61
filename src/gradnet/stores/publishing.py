"""Putting a collection into a database, so that repeating it after any failure ends with the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from gradnet.arrays import Floats, row_blocks
from gradnet.collection.collection import Collection
from gradnet.collection.metadata import read_metadata
from gradnet.collection.reader import verify_digests
from gradnet.collection.version import Version
from gradnet.errors import CollectionError
from gradnet.progress import Listener, Progress, ignore
from gradnet.stores.address import Address, parse_address
from gradnet.stores.connecting import connect
from gradnet.stores.model_row import forget_model, model_of, read_model, table_name, write_model
from gradnet.stores.store import Database, IndexKind, Shape, Store, check_index, check_name

_ROWS_AT_ONCE = 4096


class Publication(NamedTuple):
    """What was done. indexes: how features and descriptors are searched, "exact" or "hnsw"."""

    address: str
    name: str
    items: int
    nodes: int
    indexes: dict[str, str]


class _Table(NamedTuple):
    """What a table shall hold: rows by their ids, made when they are sent.

    is_of_fit: whether it holds the same rows until the collection is fitted anew.
    """

    role: str
    shape: Shape
    ids: Sequence[Any]
    rows: Callable[[slice], Floats]
    metadata: Callable[[slice], list[Any]] | None
    is_of_fit: bool


def publish(
    collection: Collection,
    address: str | Address,
    name: str,
    index: IndexKind = "auto",
    listener: Listener = ignore,
) -> Publication:
    """Put a collection into a database under a name, or make what is there of that name like it.

    What was there and is gone from the collection goes; what is the same stays. PostgreSQL does it in one transaction;
    in Milvus, which has none, nobody can open what is only half there.
    index: "exact", "hnsw", or "auto", which searches up to 20,000 rows exactly. listener: hears of "publishing".
    """
    version = collection.version
    check_name(name)
    check_index(index, 0)
    _refuse_unservable(version)
    verify_digests(version.snapshot)  # else damage would be published as if it were whole
    place = parse_address(address) if isinstance(address, str) else address
    database = connect(place)
    try:
        with database.together():
            indexes = _put_all(version, database, name, index, listener)
    finally:
        database.close()
    return Publication(place.shown, name, len(version), len(version.learned.nodes), indexes)


def _put_all(
    version: Version, database: Database, name: str, index: IndexKind, listener: Listener
) -> dict[str, str]:
    wanted, tables = model_of(version), _tables(version)
    shape = Shape(version.manifest["shape"]["dimension"], "euclidean", "number")
    for role, metric in (("model", shape.metric), *((table.role, table.shape.metric) for table in tables)):
        database.open(table_name(name, role), metric)  # refuses what is not ours, before anything is changed
    model = database.create(table_name(name, "model"), shape)
    before = read_model(model, name)
    forget_model(model)
    total, done, indexes = sum(len(table.ids) for table in tables), 0, {}
    for table in tables:
        store = database.create(table_name(name, table.role), table.shape)
        is_there = table.is_of_fit and before is not None and before.fit == wanted.fit
        if not is_there or store.count() != len(table.ids):
            for sent in _put(store, table):
                listener(Progress("publishing", done + sent, total))
        done += len(table.ids)
        indexes[table.role] = store.build_index(index)
    write_model(model, wanted)
    return indexes


def _put(store: Store, table: _Table) -> Iterator[int]:
    """Make a table hold these rows and no others; how many have been sent."""
    gone = sorted(set(store.ids()) - set(table.ids))
    if gone:
        store.delete(gone)
    for rows in row_blocks(len(table.ids), _ROWS_AT_ONCE):
        said = None if table.metadata is None else table.metadata(rows)
        store.upsert(table.ids[rows], table.rows(rows), said)
        yield rows.stop


def _tables(version: Version) -> list[_Table]:
    learned, holdings, shelf = version.learned, version.holdings, version.shelf
    nodes, where = learned.nodes, str(version.directory)
    d, D = learned.descriptors.shape[1], learned.features.shape[1]

    def said(rows: slice) -> list[Any]:
        return [read_metadata(text, where) for text in holdings.metadata[rows]]

    of_items = Shape(D, "cosine", "text" if holdings.has_texts else "number")
    numbers = range(len(nodes))
    return [
        _Table(
            "descriptors",
            Shape(d, "euclidean", "number"),
            numbers,
            lambda rows: learned.descriptors[nodes[rows]],
            None,
            True,
        ),
        _Table(
            "node_features",
            Shape(D, "cosine", "number"),
            numbers,
            lambda rows: learned.features[nodes[rows]],
            None,
            True,
        ),
        _Table(
            "features",
            of_items,
            holdings.ids.tolist(),
            lambda rows: shelf.features(shelf.rows[rows]),
            said,
            False,
        ),
    ]


def _refuse_unservable(version: Version) -> None:
    if not version.snapshot.is_full or not version.learned.inside.all():
        why = "it was fitted with truncation" if version.snapshot.is_full else "it is compressed"
        raise CollectionError(
            f"{version.directory} cannot be published: {why}", "publish one that is full, and fitted without"
        )
