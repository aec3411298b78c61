"""One version of a collection as the page sees it: queries, answers, and what is computed once for all requests."""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Floats, Ints, Mask
from manifind.collection.collection import Collection
from manifind.collection.explain import Graph, Step
from manifind.collection.version import Version
from manifind.errors import InputError
from manifind.images.files import NOT_FOR_PEOPLE
from manifind.ranking import Ranking

_SPACES = {"gradnet": "features", "knn": "descriptors"}  # what a method of the API compares
_MOST_CACHED = 20_000
_RANKS = 30  # of the edges whose weights are shown


class Query(NamedTuple):
    """What is searched for: an item by its id, or a descriptor, (d,), as it comes from outside."""

    id: Any = None
    descriptor: Any = None


class View:
    """A collection that stays at one version, so that all parts of an answer fit together."""

    def __init__(self, version: Version) -> None:
        self.version, self.collection = version, Collection(version)
        self._lock = Lock()
        self._shown: dict[Any, dict[str, Any]] = {}

    @property
    def rows(self) -> Ints:
        """The rows of the items in the order in which the page lists them."""
        return self.version.items.rows

    def exact_ids(self, text: str) -> list[Any]:
        """The ids of the items that a text in an address stands for, by id or by current path: usually one or none."""
        items = self.version.items
        return list(items.ids_of(np.array(items.exact_rows(text), dtype=np.int64)).tolist())

    def search(self, query: Query, k: int, method: str, where: str | None) -> Ranking:
        """The k best for one query, fewer where there are fewer."""
        if query.descriptor is not None:
            return self.collection.search(np.asarray(query.descriptor)[None], k, where, by=_SPACES[method])
        return self.collection.search_ids([query.id], k, where, by=_SPACES[method])

    def path(self, query: Query, id_: Any) -> list[Step]:
        """The strongest path from a query to an item."""
        start: int | Floats
        if query.descriptor is not None:
            start = self.version.learned.prepared(np.asarray(query.descriptor)[None])[0]
        else:
            start = self.version.items.known_row(query.id)
        return self.graph.path(start, self.version.items.known_row(id_))

    def fields(self, id_: Any) -> dict[str, Any]:
        """The metadata of an item."""
        return self.collection.metadata([id_])[0]

    def shown(self, id_: Any) -> dict[str, Any]:
        """The metadata that people want to see; cached, since the same items are shown again and again."""
        if id_ not in self._shown:
            if len(self._shown) >= _MOST_CACHED:
                self._shown.clear()
            fields = self.fields(id_).items()
            self._shown[id_] = {name: value for name, value in fields if name not in NOT_FOR_PEOPLE}
        return self._shown[id_]

    def step_of(self, row: int | None) -> dict[str, str | None]:
        """The id of an item on a path, and where its file is now; nothing for a query that is no item."""
        if row is None:
            return {"id": None, "path": None}
        items = self.version.items
        path = items.fields(row).get("path")
        return {"id": str(items.ids_of(np.array(row)).item()), "path": path if isinstance(path, str) else None}

    def listed(self, where: str | None, name: str | None) -> Ints:
        """The rows that satisfy a filter and have a text, in upper or lower case, in their id or current path."""
        rows, items = self.rows, self.version.items
        if where is not None:
            rows = rows[items.satisfying(where)[rows]]
        return rows[self._are_named(rows, name)] if name else rows

    def _are_named(self, rows: Ints, text: str) -> Mask:
        folded, items = text.casefold(), self.version.items
        named = zip(items.ids_of(rows).tolist(), (items.paths[row] for row in rows.tolist()), strict=True)
        return np.fromiter(
            (folded in str(id_).casefold() or folded in (path or "").casefold() for id_, path in named),
            np.bool_,
            len(rows),
        )

    @property
    def graph(self) -> Graph:
        """Read when it is first needed, once."""
        with self._lock:
            return self._graph

    @cached_property
    def _graph(self) -> Graph:
        return Graph(self.version)

    @cached_property
    def edge_weights(self) -> list[float]:
        """The mean weight of an item's strongest edge, the second, and so on; none where there is no graph."""
        try:
            return [round(float(value), 5) for value in self.graph.weights_by_rank(_RANKS)]
        except InputError:
            return []
