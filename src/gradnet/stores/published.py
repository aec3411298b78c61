"""A collection in a database, put there by `publishing`, and answered from there without its files.

NAME_features       everybody who is there: learned features and metadata under the user's ids, by cosine
NAME_descriptors    the nodes of the graph: preprocessed descriptors under numbers, by distance; queries find them
NAME_node_features  the same nodes by their features, of which those of a query are made; who was fitted and has
                    gone is among them, as in the collection
NAME_model          row 0: the mean, and what else answering needs; rows 1 to d: the whitening, where there is one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradnet.arrays import Floats
from gradnet.collection.where import check_fields, parse_where
from gradnet.descriptors.check import check_descriptors
from gradnet.errors import StoreError
from gradnet.ranking import Ranking
from gradnet.search.learned import check_k
from gradnet.search.qfe import expand_queries
from gradnet.stores.address import Address, parse_address
from gradnet.stores.answering import StoredSpace, settled
from gradnet.stores.connecting import connect
from gradnet.stores.model_row import Model, read_model, table_name
from gradnet.stores.store import Database, Store, check_name, checked_k


@dataclass(frozen=True)
class PublishedCollection:
    """What answers from a database, as it was published last when this was opened."""

    database: Database
    model: Model
    features: Store
    descriptors: StoredSpace
    node_features: StoredSpace

    def __len__(self) -> int:
        return self.features.count()

    def search(self, Q: Any, k: int = 10, where: str | None = None) -> Ranking:
        """The k best items for each row of Q, (m, d) descriptors; `ids` of the answer are the user's.

        where: a condition on metadata fields that there are; fewer than k satisfy it, fewer are answered.
        """
        return self._rank(self.transform(Q), k, where)

    def search_ids(self, ids: Sequence[Any], k: int = 10, where: str | None = None) -> Ranking:
        """The k best items for items of the collection, each of which finds itself too."""
        return self._rank(self.features.rows(ids).vectors, k, where)

    def transform(self, Q: Any) -> Floats:
        """Features, (m, D), of any descriptors; a row equal to a fitted item gets that item's features."""
        checked = check_descriptors(Q, "X", self.descriptors.store.shape.width)
        prepared = self.model.preprocessor(checked)
        k = min(self.model.queries.n_neighbors, len(self.descriptors))
        near = self.descriptors.roughly_nearest(prepared, k)
        known = near.scores[:, 0] == 0  # nodes are distinct, so there is one at most
        out = np.empty((len(prepared), self.node_features.store.shape.width), dtype=np.float32)
        if known.any():
            out[known] = self.node_features.database.take(near.ids[known, 0], axis=0)
        if not known.all():
            first = self.descriptors.answering(Ranking(near.ids[~known], near.scores[~known]))
            out[~known] = expand_queries(
                prepared[~known], first.as_space(), self.node_features.as_space(), self.model.queries
            )
        return out

    def close(self) -> None:
        """Let go of the connection."""
        self.database.close()

    def _rank(self, features: Floats, k: int, where: str | None) -> Ranking:
        n, kinds = self.model.n_items, self.model.kinds
        if where is not None and kinds is not None:
            check_fields(parse_where(where), kinds)
        return settled(
            self.features, features, check_k(k, n) if where is None else min(checked_k(k), n), where
        )


def open_published(address: str | Address, name: str) -> PublishedCollection:
    """The collection that was published under a name, to search it where it is."""
    check_name(name)
    place = parse_address(address) if isinstance(address, str) else address
    database = connect(place)
    try:
        return _opened(database, name, str(place))
    except BaseException:
        database.close()
        raise


def _opened(database: Database, name: str, place: str) -> PublishedCollection:
    table = database.open(table_name(name, "model"), "euclidean")
    model = None if table is None else read_model(table, f"{name} in {place}")
    features = database.open(table_name(name, "features"), "cosine")
    descriptors = database.open(table_name(name, "descriptors"), "euclidean")
    node_features = database.open(table_name(name, "node_features"), "cosine")
    if model is None or features is None or descriptors is None or node_features is None:
        raise StoreError(
            f"there is no collection {name} in {place} that was published to its end",
            "publish it: gradnet publish COLLECTION ADDRESS",
        )
    return PublishedCollection(
        database,
        model,
        features,
        StoredSpace(descriptors, model.n_nodes),
        StoredSpace(node_features, model.n_nodes),
    )
