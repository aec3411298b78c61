"""One version of a collection as the page sees it: answers by features or by descriptors, and why."""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Floats, Ints, Mask
from manifind.collection.explain import Graph, Step
from manifind.collection.version import Version
from manifind.errors import InputError
from manifind.images.files import NOT_FOR_PEOPLE
from manifind.index.vector_index import ExactIndex, make_index
from manifind.ranking import Ranking

METHODS = ("gradnet", "knn")
_USUAL_K = 10
_MOST_SHOWN = 20_000
_RANKS = 30  # of the edges whose weights are shown


class Query(NamedTuple):
    """What is searched for: an item by its row, or something else; its preprocessed descriptor, (d,), and features."""

    row: int | None
    descriptor: Floats
    features: Floats


class View:
    """A version, and what is computed of it once for all requests."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self._lock = Lock()
        self._shown: dict[int, dict[str, Any]] = {}

    @cached_property
    def rows(self) -> Ints:
        """The rows of the items in the order in which the page lists them."""
        return self.version.shelf.rows

    def ids(self, rows: Ints) -> list[Any]:
        """The user's ids."""
        return list(self.version.holdings.ids_of(rows).tolist())

    def named(self, row: int | None) -> dict[str, str | None]:
        """The id of an item, and where its file is now; nothing for what is no item."""
        if row is None:
            return {"id": None, "path": None}
        path = self.fields(row).get("path")
        return {"id": str(self.ids(np.array([row]))[0]), "path": path if isinstance(path, str) else None}

    def are_named(self, rows: Ints, text: str) -> Mask:
        """Which rows have a text, in upper or lower case, in their id or in the current path of their file."""
        folded, paths = text.casefold(), self.version.holdings.paths
        named = zip(self.ids(rows), rows.tolist(), strict=True)
        return np.fromiter(
            (folded in str(id_).casefold() or folded in (paths[row] or "").casefold() for id_, row in named),
            np.bool_,
            len(rows),
        )

    def fields(self, row: int) -> dict[str, Any]:
        """What is said of an item."""
        return dict(self.version.holdings.fields(row))

    def shown(self, row: int) -> dict[str, Any]:
        """What people want to see of it; kept, since the same items are shown again and again."""
        if row not in self._shown:
            if len(self._shown) >= _MOST_SHOWN:
                self._shown.clear()
            said = self.version.holdings.fields(row)
            self._shown[row] = {name: value for name, value in said.items() if name not in NOT_FOR_PEOPLE}
        return self._shown[row]

    def of_row(self, row: int) -> Query:
        """An item as a query."""
        rows = np.array([row])
        shelf = self.version.shelf
        return Query(row, shelf.descriptors(rows)[0], shelf.features(rows)[0])

    def of_descriptor(self, X: Any) -> Query:
        """A descriptor, (d,), as it comes from outside, as a query."""
        learned = self.version.learned
        prepared = learned.prepared(np.asarray(X)[None])
        return Query(None, prepared[0], learned.features_of(prepared)[0])

    def satisfying(self, where: str | None) -> Mask | None:
        """Which rows satisfy a condition; None for all."""
        return None if where is None else self.version.satisfying(where)

    def search(self, query: Query, k: int, method: str, where: str | None) -> tuple[Ints, Floats]:
        """Rows and scores of the k best, fewer where there are fewer."""
        wanted = self.satisfying(where)
        k = min(k, len(self.version))
        if method == "gradnet":
            found = self.version.rank_rows(query.features[None], query.descriptor[None], k, wanted)
        else:
            found = self._nearest(query.descriptor[None], k, wanted)
        return found.ids[0], found.scores[0]

    def path(self, query: Query, row: int) -> list[Step]:
        """The strongest path from a query to an item."""
        return self.graph.path(query.descriptor if query.row is None else query.row, row)

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
        """The mean weight of an item's strongest edge, the second, and so on; none where the graph is not at hand."""
        try:
            return [round(float(value), 5) for value in self.graph.weights_by_rank(_RANKS)]
        except InputError:
            return []

    def _nearest(self, descriptors: Floats, k: int, wanted: Mask | None) -> Ranking:
        allowed = None if wanted is None else wanted[self.rows]
        if allowed is not None:
            k = min(k, int(allowed.sum()))
        if k == 0:
            return Ranking(np.empty((1, 0), np.int64), np.empty((1, 0), np.float32))
        with self._lock:
            space = self._space
        found = space.nearest(descriptors, k, allowed)
        with np.errstate(over="ignore", invalid="ignore"):  # damaged descriptors are named as such below
            cosines = np.asarray(1 - found.scores**2 / 2, np.float32)  # of unit rows
        return self.version.finite(Ranking(self.rows[found.ids], cosines), "descriptors")

    @cached_property
    def _space(self) -> ExactIndex:
        shelf, settings = self.version.shelf, self.version.learned.queries
        every = shelf.descriptors(self.rows)
        return make_index(every, "euclidean", settings.index, _USUAL_K)
