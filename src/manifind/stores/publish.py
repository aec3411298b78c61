"""Publishes a collection to a store, so that repeating it after any failure ends with the same.

Row 0 is written last and taken away first: where it is missing, nothing has been published to its end.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from manifind.arrays import Floats, row_blocks
from manifind.collection.collection import Collection
from manifind.collection.filters import ELEMENT_KINDS
from manifind.collection.metadata import Fields, read_metadata
from manifind.collection.version import Version, check_settings, read_query_settings, verify_digests
from manifind.errors import CollectionError, MissingExtraError, StoreError
from manifind.graph.joining import NodeScales
from manifind.graph.preprocess import Preprocessor
from manifind.index.exact import Metric, RowMatrix
from manifind.progress import Listener, Progress, ignore
from manifind.search.cutoff import Cutoff, read_cutoff
from manifind.search.feature_model import QuerySettings
from manifind.stores.address import Address, parse_address
from manifind.stores.store import Database, IndexKind, Shape, Store, check_index, check_name

_FORMAT = 1
_KINDS = {"text", "number", "truth", "list"}
Kinds: TypeAlias = Mapping[str, frozenset[str]]
_FieldsOf: TypeAlias = Callable[[slice], list[Fields | None]]
_MOST_LETTERS = 10_000  # of the fields: Milvus keeps a row of 65,536 bytes, and the manifest in it twice and escaped
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Model:
    """Of one published version. fit, commit: what names it. n_items: that can be found. n_nodes: that place queries.

    kinds: the metadata fields that items have, each with the kinds of its values, as `field_kinds` has them; None where
    that is not known, since an earlier version published it or there are too many fields to be stored.
    cutoff: how sure results are; None where that is not known.
    """

    preprocessor: Preprocessor
    queries: QuerySettings
    fit: str
    commit: str
    n_items: int
    n_nodes: int
    kinds: Kinds | None = None
    cutoff: Cutoff | None = None


def connect(address: str | Address) -> Database:
    place = parse_address(address) if isinstance(address, str) else address
    try:
        if place.kind == "postgres":
            from manifind.stores.postgres import PostgresDatabase

            return PostgresDatabase(place)
        from manifind.stores.milvus import MilvusDatabase

        return MilvusDatabase(place)
    except ImportError as error:
        raise MissingExtraError(
            f"the database {place} needs {error.name}, which is not installed", f'pip install "manifind[{place.kind}]"'
        ) from error


def write_model(store: Store, version: Version) -> None:
    """Say that all is there; the whitening first, so that a row 0 has all that it refers to."""
    learned, preprocessor = version.learned, version.learned.preprocessor
    mean, whitening = preprocessor.mean, preprocessor.whitening
    n_rows = 0 if whitening is None else len(whitening)
    _delete_but(store, range(n_rows + 1))
    if whitening is not None:
        store.upsert(range(1, n_rows + 1), whitening)
    kinds = sorted(version.items.kinds.items())
    entries = {
        "fields": {name: sorted(found - ELEMENT_KINDS) for name, found in kinds},
        # Of lists, which earlier versions pass over.
        "elements": {name: sorted(found & ELEMENT_KINDS) for name, found in kinds if found & ELEMENT_KINDS},
    }
    manifest = {
        "format": _FORMAT,
        "preprocess": {"kind": preprocessor.kind, "scale": preprocessor.scale, "mean": mean is not None},
        "queries": asdict(learned.queries),
        "fit": version.manifest.fit,
        "commit": version.manifest.commit,
        "items": len(version),
        "nodes": len(learned.nodes),
        "cutoff": None if learned.cutoff is None else learned.cutoff.to_dict(),
    } | (entries if len(json.dumps(entries)) <= _MOST_LETTERS else {})
    row = np.zeros((1, store.shape.width)) if mean is None else mean[None]
    store.upsert([0], row, [{"manifest": json.dumps(manifest)}])


def _read_kinds(fields: Any, elements: Any) -> Kinds | None:
    if fields is None:
        return None
    for tables, known in ((fields, _KINDS), (elements, ELEMENT_KINDS)):
        if not isinstance(tables, dict) or not all(isinstance(found, list) for found in tables.values()):
            raise ValueError("the fields of the metadata are no table of lists")
        if not all(set(found) <= known for found in tables.values()):
            raise ValueError("a field of the metadata has an unknown kind")
    return {name: frozenset(found) | frozenset(elements.get(name, ())) for name, found in fields.items()}


def read_model(store: Store, where: str) -> Model | None:
    """What was published; None where nothing was, to its end. where: named in errors."""
    ids = store.ids()
    if 0 not in ids:
        return None
    rows = store.rows([0])
    try:
        manifest = json.loads(rows.metadata[0]["manifest"])
        if manifest["format"] != _FORMAT:
            raise StoreError(
                f"{where} was published in format {manifest['format']}, and this version of manifind reads {_FORMAT}",
                "publish it again with this version, or update manifind",
            )
        kind, further = manifest["preprocess"]["kind"], sorted(ids)[1:]
        if kind == "whiten" and further != list(range(1, store.shape.width + 1)):
            raise ValueError("the whitening is not whole")
        whitening = store.rows(further).vectors if kind == "whiten" else None
        mean = rows.vectors[0] if manifest["preprocess"]["mean"] else None
        preprocessor = Preprocessor(kind, mean, manifest["preprocess"]["scale"], whitening)
        queries = read_query_settings(manifest["queries"])
        check_settings(preprocessor, queries)
        if (mean is None) == (kind in ("center", "whiten")):
            raise ValueError("the mean does not fit the preprocessing")
        fit, commit = str(manifest["fit"]), str(manifest["commit"])
        kinds = _read_kinds(manifest.get("fields"), manifest.get("elements", {}))
        cutoff = read_cutoff(manifest.get("cutoff"))
        return Model(preprocessor, queries, fit, commit, int(manifest["items"]), int(manifest["nodes"]), kinds, cutoff)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{where} is damaged: {repr(error)[:200]}", "publish it again") from error


class Publication(NamedTuple):
    """What was done. indexes: how features and descriptors are searched, "exact" or "hnsw"."""

    address: str
    name: str
    items: int
    nodes: int
    indexes: dict[str, str]


class _Table(NamedTuple):
    """What a table shall hold: rows by their ids, made when they are sent, and their fields.

    is_of_fit: whether it stays the same until the collection is fitted anew.
    """

    role: str
    shape: Shape
    ids: Sequence[Any]
    rows: Callable[[slice], Floats]
    fields: _FieldsOf
    is_of_fit: bool


def publish(
    collection: Collection, address: str | Address, name: str, index: IndexKind = "auto", listener: Listener = ignore
) -> Publication:
    """Put a collection into a database, or make what is there under the name equal to it.

    Rows that are no longer in the collection are deleted, and equal rows stay. PostgreSQL does it in one transaction;
    in Milvus, which has none, nobody can open what is only half there.

    Parameters
    ----------
    collection : Collection
        A full collection, fitted without truncation.
    address : str or Address
        Where the database is, such as ``postgresql://host/database`` or ``http://host:19530``.
    name : str
        Of the tables, before their roles: small letters, digits and _.
    index : {"auto", "exact", "hnsw"}, default="auto"
        How tables are searched; "auto" searches up to 20,000 rows exactly.
    listener : callable, default=ignore
        Called with the progress of "publishing".

    Returns
    -------
    Publication
        The address and the name, how many items and nodes there are, and how tables are searched.

    Raises
    ------
    StoreError
        Where the database cannot be reached or refuses, or a table of the name is not manifind's.
    CollectionError
        Where the collection is damaged, compressed, or was fitted with truncation.
    """
    version = collection.version
    check_name(name)
    check_index(index)
    if not version.manifest.is_full or not version.learned.inside.all():
        why = "it was fitted with truncation" if version.manifest.is_full else "it is compressed"
        raise CollectionError(
            f"{version.directory} cannot be published: {why}", "publish one that is full, and fitted without"
        )
    verify_digests(version.snapshot)  # else damage would be published as if it were whole
    with closing(connect(address)) as database, database.together():
        indexes = _put_all(version, database, name, index, listener)
    return Publication(database.address.shown, name, len(version), len(version.learned.nodes), indexes)


def _put_all(version: Version, database: Database, name: str, index: IndexKind, listener: Listener) -> dict[str, str]:
    tables, shape = _tables(version), Shape(version.manifest.sizes.dimension, "euclidean", "number")
    for role, metric in (("model", shape.metric), *((table.role, table.shape.metric) for table in tables)):
        database.open(f"{name}_{role}", metric)  # refuses what is not ours, before anything is changed
    model = database.create(f"{name}_model", shape)
    before = read_model(model, name)
    model.delete([0])  # from now on until the end, nobody answers from what is there
    total, done, indexes = sum(len(table.ids) for table in tables), 0, {}
    for table in tables:
        store = database.create(f"{name}_{table.role}", table.shape)
        is_there = table.is_of_fit and before is not None and before.fit == version.manifest.fit
        if not is_there or store.count() != len(table.ids):
            _delete_but(store, table.ids)
            for rows in row_blocks(len(table.ids), _ROWS_AT_ONCE):
                store.upsert(table.ids[rows], table.rows(rows), table.fields(rows))
                listener(Progress("publishing", done + rows.stop, total))
        done += len(table.ids)
        indexes[table.role] = store.build_index(index)
    write_model(model, version)
    return indexes


def _delete_but(store: Store, ids: Sequence[Any]) -> None:
    if gone := sorted(set(store.ids()) - set(ids)):
        store.delete(gone)


def _tables(version: Version) -> list[_Table]:
    learned, items, index = version.learned, version.items, version.index
    nodes, d, D = learned.nodes, learned.descriptors.shape[1], learned.features.shape[1]
    numbers = range(len(nodes))

    def without(rows: slice) -> list[Fields | None]:
        return [None] * len(numbers[rows])

    def scales(rows: slice) -> list[Fields | None]:
        if learned.scales is None:
            return without(rows)
        columns = (part[rows].tolist() for part in learned.scales)
        return [dict(zip(NodeScales._fields, values, strict=True)) for values in zip(*columns, strict=True)]

    def of_items(rows: slice) -> list[Fields | None]:
        return [read_metadata(text, str(version.directory)) for text in items.metadata[rows]]

    def of_nodes(role: str, width: int, metric: Metric, values: RowMatrix, fields: _FieldsOf) -> _Table:
        shape = Shape(width, metric, "number")
        return _Table(role, shape, numbers, lambda rows: values[nodes[rows]], fields, is_of_fit=True)

    found, ids = Shape(D, "cosine", "text" if items.has_texts else "number"), items.ids.tolist()
    return [
        of_nodes("descriptors", d, "euclidean", learned.descriptors, without),
        of_nodes("node_features", D, "cosine", learned.features, scales),
        _Table("features", found, ids, lambda rows: index.features(items.rows[rows]), of_items, is_of_fit=False),
    ]
