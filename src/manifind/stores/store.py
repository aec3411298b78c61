"""What a table of vectors in a database can do, and what is checked before it is asked."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifind.arrays import Floats
from manifind.collection.filters import Condition, parse_where
from manifind.collection.ids import check_ids
from manifind.collection.items import as_array
from manifind.collection.metadata import Fields, metadata_texts
from manifind.errors import InputError, StoreError
from manifind.index.exact import Metric
from manifind.ranking import Ranking
from manifind.stores.address import Address

IdKind = Literal["text", "number"]
IndexKind = Literal["auto", "exact", "hnsw"]
INDEXES = ("auto", "exact", "hnsw")

EXACT_UP_TO = 20_000
"""FetchedRows that "auto" searches exactly: as in a collection, there is nothing to build, and nothing to miss."""

LONGEST_TABLE = 54
"""Letters in the name of a table: those of a published collection, and its role; an index adds 7 to PostgreSQL's 63."""

_LONGEST_NAME = 40
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_MARK = "published by gradnet d3188cb6-0be1-45b6-bc67-2d6b4f035425"  # drawn once: no table has it by chance


class Shape(NamedTuple):
    """Of a table. width: of its vectors. metric: "cosine" or "euclidean". ids: "text" or "number"."""

    width: int
    metric: Metric
    ids: IdKind


class FetchedRows(NamedTuple):
    """vectors: (m, d). metadata: of each."""

    vectors: Floats
    metadata: list[Fields]


class Store(ABC):
    """A table of vectors under ids, with metadata. Arguments are checked here, and a database only does the work."""

    kind = "table"
    """What the database calls it."""

    def __init__(self, address: Address, name: str, shape: Shape) -> None:
        self.address, self.name, self.shape = address, name, shape

    def upsert(
        self, ids: Sequence[Any], vectors: Any, metadata: Sequence[Mapping[str, Any] | None] | None = None
    ) -> None:
        """Put rows there, or in the place of those that have their ids."""
        names, rows = self._checked_ids(ids), self._checked_vectors(vectors)
        # Plain fields, as a collection would keep them.
        fields = [{} if text is None else json.loads(text) for text in metadata_texts(metadata, len(names))]
        if names:
            self._upsert(names, rows, fields)

    def delete(self, ids: Sequence[Any]) -> None:
        """Take rows away; an id that is not there is no mistake, so that this can be repeated."""
        self._delete(self._checked_ids(ids))

    def search(self, vectors: Any, k: int, where: str | None = None) -> Ranking:
        """The k best rows for each vector, by cosine or by negative distance; all rows where there are fewer.

        Equal scores stand in the order of their ids; which of them are found, where only some can be, is up to the
        database. where: a filter on metadata.
        """
        queries, condition = self._checked_vectors(vectors), _condition(where)
        return as_ranking(self._search(queries, checked_k(k), condition), self.shape.ids)

    def count(self, where: str | None = None) -> int:
        """How many rows there are, or satisfy a filter."""
        return self._count(_condition(where))

    def rows(self, ids: Sequence[Any]) -> FetchedRows:
        """Some rows by their ids, in this order."""
        names = self._checked_ids(ids)
        found = self._fetch(names)
        missing = next((name for name in names if name not in found), None)
        if missing is not None:
            raise StoreError(f"the {self.kind} {self.name} of {self.address} has no row {missing!r}", "publish again")
        vectors = np.array([found[name][0] for name in names], dtype=np.float32)
        return FetchedRows(vectors.reshape(-1, self.shape.width), [found[name][1] for name in names])

    @abstractmethod
    def ids(self) -> list[Any]:
        """Of all rows, in no particular order."""

    @abstractmethod
    def build_index(self, kind: IndexKind) -> str:
        """Make the table quick to search, once it is filled; which kind was made, "exact" for none."""

    @abstractmethod
    def _upsert(self, names: list[Any], rows: Floats, fields: list[Fields]) -> None: ...

    @abstractmethod
    def _delete(self, names: list[Any]) -> None: ...

    @abstractmethod
    def _count(self, condition: Condition | None) -> int: ...

    @abstractmethod
    def _fetch(self, names: list[Any]) -> dict[Any, tuple[Any, Fields]]:
        """Vector and metadata by id, of those that are there."""

    @abstractmethod
    def _search(self, queries: Floats, k: int, condition: Condition | None) -> list[list[tuple[Any, float]]]:
        """(id, score) of the best rows for each query."""

    def _checked_ids(self, ids: Sequence[Any]) -> list[Any]:
        """Ids as plain values of the kind that the table has."""
        plain = list(check_ids(ids, len(ids)))
        if plain and isinstance(plain[0], str) != (self.shape.ids == "text"):
            raise InputError(f"the id {plain[0]!r} is no {self.shape.ids}, as the ids of this table are")
        return plain

    def _checked_vectors(self, vectors: Any) -> Floats:
        """(m, d) float32, finite, and with a direction where directions are compared."""
        rows = np.ascontiguousarray(vectors, dtype=np.float32)
        if rows.ndim != 2 or rows.shape[1] != self.shape.width:
            raise InputError(f"the vectors have the shape {rows.shape}; expected (any, {self.shape.width})")
        if not np.isfinite(rows).all():
            raise InputError(f"the vector in row {int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])} holds NaN")
        if self.shape.metric == "cosine" and not rows.any(axis=1).all():
            row = int(np.flatnonzero(~rows.any(axis=1))[0])
            raise InputError(f"the vector in row {row} is zero, and has no direction to compare")
        return rows


class Database(ABC):
    """An open connection to tables of vectors."""

    product: str
    widest: int
    """Of a vector."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def create(self, name: str, shape: Shape) -> Store:
        """The table of this name, made where there is none, and anew where it has another shape."""
        if shape.width > self.widest:
            raise InputError(f"the vectors are {shape.width} wide; {self.product} takes at most {self.widest}")
        present = self.open(name, shape.metric)
        if present is not None and present.shape == shape:
            return present
        return self._create(name, shape, present is not None)

    @abstractmethod
    def open(self, name: str, metric: Metric) -> Store | None:
        """The table of this name, None where there is none; one that manifind did not make is refused."""

    @abstractmethod
    def _create(self, name: str, shape: Shape, is_there: bool) -> Store:
        """A new table, in the place of one that is there."""

    @abstractmethod
    def together(self) -> AbstractContextManager[None]:
        """What is done inside is done at once, or not at all, where the database can do that."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection."""


def check_name(name: str, longest: int = _LONGEST_NAME) -> str:
    """A name that every database takes for a table, as it is."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > longest:
        raise InputError(
            f"name = {name!r}; expected at most {longest} small letters, digits and _, the first of them a letter",
            "give one such as museum_2",
        )
    return name


def mark_of(name: str) -> str:
    """What a table made under this name carries as its description; a copy or an alias has another name."""
    return f"{_MARK} as {name}"


def not_ours(table: str, place: object) -> StoreError:
    """table: what the database calls it, and its name."""
    return StoreError(
        f"the {table} in {place} was not made by manifind and is left as it is",
        "choose another name; if an earlier version of manifind published it, drop it and publish again",
    )


def changed(table: str, place: object, how: str = "its columns have been changed since") -> StoreError:
    """A table that was made by manifind, and is another now."""
    return StoreError(
        f"the {table} in {place} was made by manifind, but {how}", "drop it and publish again, or choose another name"
    )


def check_index(kind: str, n_rows: int) -> bool:
    """Whether an approximate index is wanted for so many rows."""
    if kind not in INDEXES:
        raise InputError(f"index = {kind!r}; expected one of {', '.join(map(repr, INDEXES))}")
    return kind == "hnsw" or (kind == "auto" and n_rows > EXACT_UP_TO)


def checked_k(k: int) -> int:
    """k as a plain number."""
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise InputError(f"k = {k!r}; expected a whole number of at least 1")
    return int(k)


def _condition(where: str | None) -> Condition | None:
    return None if where is None else parse_where(where)


def untranslatable(what: str, database: str) -> InputError:
    """A part of a condition that a database cannot be asked."""
    return InputError(
        f"where holds {what}, which {database} cannot be asked", "leave that part out, or search the collection itself"
    )


def as_ranking(found: Sequence[Sequence[tuple[Any, float]]], kind: IdKind) -> Ranking:
    """From (id, score) for each query; as many columns as every query has answers."""
    k = min(map(len, found), default=0)
    ordered = [sorted(row, key=lambda pair: (-pair[1], pair[0]))[:k] for row in found]
    dtype = np.dtype(object if kind == "text" else np.int64)
    ids: NDArray[Any] = np.empty((len(found), k), dtype=dtype)
    scores = np.empty((len(found), k), dtype=np.float32)
    for row, pairs in enumerate(ordered):
        ids[row] = as_array([id_ for id_, _ in pairs], dtype)
        scores[row] = [score for _, score in pairs]
    return Ranking(ids, scores)
