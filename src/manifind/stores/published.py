"""A published collection: answered from its store, without its files.

NAME_features       everybody who is there: learned features and metadata under the user's ids, by cosine
NAME_descriptors    the nodes of the graph: preprocessed descriptors under numbers, by distance; queries find them
NAME_node_features  the same nodes by their features, of which those of a query are made; who was fitted and has
                    gone is among them, as in the collection; their scales, by which queries join, as fields
NAME_model          row 0: the mean, and what else answering needs; rows 1 to d: the whitening, where there is one
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from manifind.arrays import Floats, Ints, Mask, check_descriptors, row_blocks
from manifind.collection.filters import check_fields, parse_where
from manifind.collection.searchable import QueryRows, SearchableCollection, prepare_words
from manifind.collection.version import check_scales
from manifind.errors import InputError, StoreError
from manifind.graph.joining import NodeScales
from manifind.index.exact import settle
from manifind.ranking import Ranking, best_first
from manifind.search.cutoff import Cutoff
from manifind.search.feature_model import Expanded, check_k, expand_queries
from manifind.stores.address import Address
from manifind.stores.publish import Model, connect, read_model
from manifind.stores.store import Database, FetchedRows, Store, check_name

_SPARE_CANDIDATES = 16  # proposed beyond k, since a store's own arithmetic is in single precision
_FLOATS_PER_BLOCK = 1 << 22


def settled(store: Store, queries: Floats, k: int, where: str | None = None) -> Ranking:
    """The k best rows of a store, fewer where there are fewer, with scores as the collection itself has them.

    queries: (m, d), checked. Equal scores stand in the order of the ids.
    """
    per_query = (k + _SPARE_CANDIDATES) * store.shape.width
    blocks = row_blocks(len(queries), max(1, _FLOATS_PER_BLOCK // per_query))
    found = [_settled_block(store, queries[rows], k, where) for rows in blocks]
    if not found:
        return store.search(queries, k, where)
    return Ranking(np.concatenate([one.ids for one in found]), np.concatenate([one.scores for one in found]))


def _settled_block(store: Store, queries: Floats, k: int, where: str | None) -> Ranking:
    proposed = store.search(queries, k + _SPARE_CANDIDATES, where)
    if proposed.ids.size == 0:
        return proposed
    names, inverse = np.unique(proposed.ids, return_inverse=True)
    places: Ints = inverse.reshape(proposed.ids.shape)
    scores = settle(queries, store.rows(names.tolist()).vectors, places, store.shape.metric)
    best = best_first(scores, places, min(k, places.shape[1]))
    return Ranking(names[best.ids], best.scores)


@dataclass(frozen=True)
class StoredSpace:
    """A store whose ids are 0 to n - 1, as the VectorIndex and the RowMatrix that query feature expansion asks.

    known: the answer to the next search, where it is known already. held: rows, by their rising ids, that were fetched.
    """

    store: Store
    n: int
    known: Ranking | None = None
    held: tuple[list[int], FetchedRows] | None = None

    def __len__(self) -> int:
        return self.n

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.store.shape.width

    @property
    def database(self) -> Self:
        return self

    def __getitem__(self, rows: Any) -> Floats:
        return self.take(np.arange(self.n)[rows], 0)

    def take(self, ids: Ints, axis: int) -> Floats:
        """Rows by number, as an array has it; axis: 0. Fetched when asked for."""
        del axis
        names, places = np.unique(ids, return_inverse=True)
        return self._rows(names.tolist()).vectors[places.reshape(ids.shape)]

    def holding(self, ids: Ints) -> Self:
        """The same, with some rows fetched."""
        names = np.unique(ids).tolist()
        return replace(self, held=(names, self.store.rows(names)))

    def at(self, ids: Ints) -> NodeScales:
        """The scales of nodes, which are fields of their rows."""
        names, places = np.unique(ids, return_inverse=True)
        fields = self._rows(names.tolist()).metadata
        try:
            parts = ([row[name] for row in fields] for name in NodeScales._fields)
            scales = NodeScales(*(np.array(part, dtype=np.float32) for part in parts))
            check_scales(scales, (len(names),))
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{self.store.name} is damaged: {repr(error)[:200]}", "publish it again") from error
        return scales.at(places.reshape(ids.shape))

    def _rows(self, names: list[int]) -> FetchedRows:
        return self.held[1] if self.held is not None and self.held[0] == names else self.store.rows(names)

    def nearest(self, queries: Floats, k: int, allowed: Mask | None = None) -> Ranking:
        """The k best rows for every query; a store takes no mask of rows."""
        if allowed is not None:
            raise NotImplementedError("a store is searched by conditions on metadata, not by rows")
        return self.roughly_nearest(queries, k)

    def roughly_nearest(self, queries: Floats, k: int) -> Ranking:
        return settled(self.store, queries, k) if self.known is None else self.known

    def distances(self, queries: Floats, found: Ranking) -> Floats:
        """(m, k) Euclidean distances of the queries to rows that were found."""
        if self.store.shape.metric == "euclidean":
            return -found.scores
        return -settle(queries, self, found.ids, "euclidean")


@dataclass(frozen=True)
class PublishedCollection(SearchableCollection):
    """A published collection, as it was published last when this was opened; it answers as a Collection does.

    Open one with `open_published`. ``len`` is the number of items. It is searched by features only.

    Parameters
    ----------
    database : Database
        The open connection.
    model : Model
        What answering needs besides vectors.
    features : Store
        The items that can be found.
    descriptors, node_features : StoredSpace
        The nodes of the graph, which place queries.
    """

    database: Database
    model: Model
    features: Store
    descriptors: StoredSpace
    node_features: StoredSpace

    def __len__(self) -> int:
        return self.features.count()

    def _ranked(self, rows: QueryRows, k: int, where: str | None, by: str) -> Ranking:
        if where is not None and self.model.kinds is not None:
            check_fields(parse_where(where), self.model.kinds)
        return settled(self.features, rows.features, check_k(k, self.model.n_items), where)

    def _of_ids(self, ids: list[Any], by: str) -> QueryRows:
        _check_space(by)
        return QueryRows(self.features.rows(ids).vectors, np.empty((len(ids), 0), np.float32))

    def _of_descriptors(self, Q: Any, by: str, *, are_words: bool = False) -> QueryRows:
        _check_space(by)
        preprocessor, d = self.model.preprocessor, self.descriptors.store.shape.width
        prepared = prepare_words(preprocessor, Q, d) if are_words else preprocessor(check_descriptors(Q, "X", d))
        features, nearest = self._features_of(prepared, are_words)
        cutoff = self.model.cutoff
        known = None if are_words or cutoff is None else cutoff.familiarity(nearest)
        return QueryRows(features, np.empty((len(prepared), 0), np.float32), known)

    def _cutoff(self) -> Cutoff | None:
        return self.model.cutoff

    def _transform(self, Q: Any) -> Floats:
        return self._of_descriptors(Q, "features").features

    def _features_of(self, prepared: Floats, apart: bool) -> Expanded:
        near = self.descriptors.roughly_nearest(prepared, min(self.model.queries.n_neighbors, len(self.descriptors)))
        known = near.scores[:, 0] == 0  # nodes are distinct, so there is one at most
        out = np.empty((len(prepared), self.node_features.store.shape.width), dtype=np.float32)
        if known.any():
            out[known] = self.node_features.take(near.ids[known, 0], axis=0)
        if not known.all():
            first = replace(self.descriptors, known=Ranking(near.ids[~known], near.scores[~known]))
            nodes = self.node_features.holding(near.ids[~known])
            scales = None if apart else nodes
            out[~known] = expand_queries(prepared[~known], first, nodes, self.model.queries, scales).features
        return Expanded(out, -near.scores[:, 0])

    def close(self) -> None:
        """Close the connection."""
        self.database.close()


def _check_space(by: str) -> None:
    if by != "features":
        raise InputError(f"by = {by!r}; a published collection is searched by 'features'")


def open_published(address: str | Address, name: str) -> PublishedCollection:
    """Open a published collection, to search it where it is.

    Parameters
    ----------
    address : str or Address
        Where the database is, as in `publish`.
    name : str
        The name that it was published under.

    Returns
    -------
    PublishedCollection
        What answers; close it when it is no longer needed.

    Raises
    ------
    StoreError
        Where the database cannot be reached, or nothing was published completely under the name.
    """
    check_name(name)
    database = connect(address)
    where = f"{name} in {database.address}"
    try:
        table = database.open(f"{name}_model", "euclidean")
        model = None if table is None else read_model(table, where)
        features = database.open(f"{name}_features", "cosine")
        descriptors = database.open(f"{name}_descriptors", "euclidean")
        node_features = database.open(f"{name}_node_features", "cosine")
        if model is None or features is None or descriptors is None or node_features is None:
            raise StoreError(
                f"there is no collection {where} that was published to its end",
                "publish it: manifind publish COLLECTION ADDRESS",
            )
    except BaseException:
        database.close()
        raise
    return PublishedCollection(
        database, model, features, StoredSpace(descriptors, model.n_nodes), StoredSpace(node_features, model.n_nodes)
    )
