"""One version of a collection as the page sees it: answers to requests, and what is computed once for all of them."""

import math
from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from manifind.arrays import Ints
from manifind.collection.collection import Collection
from manifind.collection.explain import Graph
from manifind.collection.field_summary import summarize_fields
from manifind.collection.ids import parse_id
from manifind.collection.searchable import QueryPart, prepare_words
from manifind.collection.version import Version
from manifind.errors import InputError
from manifind.images.files import NOT_FOR_PEOPLE
from manifind.ranking import Ranking
from manifind.search.cutoff import RatedRanking
from manifind.server.errors import RefusedError
from manifind.text import did_you_mean

_SPACES = {"gradnet": "features", "knn": "descriptors"}  # what a method of the API compares
_DEPTH = 1000  # ranks among which the other method of a comparison is looked for
_MOST_CACHED = 20_000
_MOST_SUGGESTED = 100_000  # items among which a misspelt one is looked for: anybody may ask for nonsense
_RANKS = 30  # of the edges whose weights are shown


Query: TypeAlias = Sequence[QueryPart]
"""What is searched for: items, and descriptors of pictures, (d,), or of words, as they come from outside."""


class View:
    """A collection that stays at one version, so that all parts of an answer fit together."""

    def __init__(self, version: Version) -> None:
        self.version, self.collection, self._items = version, Collection(version), version.items
        self._lock = Lock()
        self._shown: dict[Any, dict[str, Any]] = {}

    def id_of(self, text: str) -> Any:
        """The id of an item by its id, or by the current path of its file, as it stands in an address."""
        ids = self._items.ids_of(np.array(self._items.exact_rows(text), dtype=np.int64)).tolist()
        if len(ids) == 1:
            return ids[0]
        try:
            parse_id(text, self._items.has_texts, self.collection.path.name)
        except InputError as error:
            raise RefusedError(404, error.problem, error.hint) from None
        meant = self._items.suggested_ids(text) if len(self.collection) <= _MOST_SUGGESTED else []
        hint = did_you_mean(meant) if meant else "it may have been removed"
        raise RefusedError(404, f"there is no item {text[:200]!r}", hint)

    def search(self, query: Query, k: int, offset: int, method: str, where: str | None, cut: bool) -> dict[str, Any]:
        """Results offset + 1 to offset + k; with `cut`, of those that belong, where that is known."""
        found, n = self._ranked(query, offset + k, method, where), len(self.collection)
        n_found = found.ids.shape[1]
        if cut and isinstance(found, RatedRanking):
            found = found.cut()
        left_out = n_found - found.ids.shape[1]
        more = n_found == offset + k and offset + k < n and not left_out
        return {"items": n, "results": self._results(found, offset, offset + k), "more": more, "cut_off": left_out > 0}

    def compare(self, query: Query, k: int, offset: int, where: str | None) -> dict[str, Any]:
        """The same query by features and by descriptors: results offset + 1 to offset + k, each with its other rank."""
        found = {method: self._ranked(query, max(_DEPTH, offset + k), method, where) for method in _SPACES}
        ranks = {
            method: {str(id_): rank for rank, id_ in enumerate(ranking.ids[0].tolist(), 1)}
            for method, ranking in found.items()
        }
        pages = {
            method: [
                {**one, "other_rank": ranks[other].get(one["id"])} for one in self._results(ranking, offset, offset + k)
            ]
            for method, other, ranking in (("gradnet", "knn", found["gradnet"]), ("knn", "gradnet", found["knn"]))
        }
        return {**pages, "more": found["gradnet"].ids.shape[1] > offset + k}

    def why(self, query: Query, result: str) -> dict[str, Any]:
        """The strongest path from the query to a result, item by item."""
        if len(query) > 1:
            raise RefusedError(422, "a combined query has no path of its own", "ask for one of its parts")
        (part,), end, learned = query, self._items.known_row(self.id_of(result)), self.version.learned
        start: Any
        if part.text is not None:
            start = prepare_words(learned.preprocessor, np.asarray(part.text)[None], learned.descriptors.shape[1])[0]
        elif part.vector is not None:
            start = learned.prepared(np.asarray(part.vector)[None])[0]
        else:
            start = self._items.known_row(part.id)
        steps = self.graph.path(start, end)
        path = [{**self._step(step.row), "weight": round(step.weight, 4)} for step in steps]
        return {"path": path, "strength": round(math.prod(step.weight for step in steps), 6) if steps else 0.0}

    def listed(
        self, offset: int, limit: int, where: str | None, name: str | None, among: Ints | None = None
    ) -> dict[str, Any]:
        """Items in their order: of those that satisfy a filter and have this text in their id or current path.

        among: the rows of the items that are meant, rising; None for all.
        """
        rows = self._items.rows if among is None else among
        if where is not None:
            rows = rows[self._items.satisfying(where)[rows]]
        if name:
            rows = self._named(rows, name.casefold())
        page = self._items.ids_of(rows[offset : offset + limit]).tolist()
        return {"total": len(rows), "items": [{"id": str(id_), "fields": self._fields_shown(id_)} for id_ in page]}

    def item(self, text: str) -> dict[str, Any]:
        id_ = self.id_of(text)
        added = self._items.added_place(self._items.known_row(id_)) is not None
        return {"id": str(id_), "fields": self.fields(id_), "added_since_fit": added}

    def described_fields(self, where: str | None) -> list[dict[str, Any]]:
        """What the metadata hold, field by field; of all items it is found once."""
        if where is None:
            return self._all_fields
        rows = self._items.rows
        return self._summaries(rows[self._items.satisfying(where)[rows]])

    def fields(self, id_: Any) -> dict[str, Any]:
        return self.collection.metadata([id_])[0]

    def _ranked(self, query: Query, k: int, method: str, where: str | None) -> Ranking:
        """The k best for one query, fewer where there are fewer."""
        return self.collection.search_combined(query, k, where, by=_SPACES[method])

    def _results(self, found: Ranking, first: int, last: int) -> list[dict[str, Any]]:
        ids, scores = found.ids[0, first:last].tolist(), found.scores[0, first:last].tolist()
        sure = found.certainty[0, first:last].tolist() if isinstance(found, RatedRanking) else [None] * len(ids)
        return [
            {
                "id": str(id_),
                "rank": rank,
                "score": round(min(score, 1.0), 4),
                "certainty": certainty and round(certainty, 4),
                "fields": self._fields_shown(id_),
            }
            for rank, (id_, score, certainty) in enumerate(zip(ids, scores, sure, strict=True), first + 1)
        ]

    def _fields_shown(self, id_: Any) -> dict[str, Any]:
        """The metadata that people want to see; cached, since the same items are shown again and again."""
        if id_ not in self._shown:
            if len(self._shown) >= _MOST_CACHED:
                self._shown.clear()
            fields = self.fields(id_).items()
            self._shown[id_] = {name: value for name, value in fields if name not in NOT_FOR_PEOPLE}
        return self._shown[id_]

    def _step(self, row: int | None) -> dict[str, str | None]:
        """The id of an item on a path, and where its file is now; nothing for a query that is no item."""
        if row is None:
            return {"id": None, "path": None}
        path = self._items.fields(row).get("path")
        return {"id": str(self._items.ids_of(np.array(row)).item()), "path": path if isinstance(path, str) else None}

    def _named(self, rows: Ints, text: str) -> Ints:
        """Those with a text, in upper or lower case, in their id or current path."""
        paths = (self._items.paths[row] or "" for row in rows.tolist())
        names = zip(self._items.ids_of(rows).tolist(), paths, strict=True)
        found = [text in str(id_).casefold() or text in path.casefold() for id_, path in names]
        return rows[np.array(found, dtype=np.bool_)]

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

    @cached_property
    def ids_by_content(self) -> dict[str, Any]:
        """The ids of pictures by the digest of their files."""
        ids, rows = self._items.ids.tolist(), self._items.rows.tolist()
        digests = (self._items.fields(row).get("sha256") for row in rows)
        return {digest: id_ for digest, id_ in zip(digests, ids, strict=True) if isinstance(digest, str)}

    @cached_property
    def _all_fields(self) -> list[dict[str, Any]]:
        return self._summaries(self._items.rows)

    def _summaries(self, rows: Ints) -> list[dict[str, Any]]:
        found = summarize_fields((self._items.fields(row) for row in rows.tolist()), NOT_FOR_PEOPLE)
        return [{**one._asdict(), "values": [{"value": value, "items": n} for value, n in one.values]} for one in found]
