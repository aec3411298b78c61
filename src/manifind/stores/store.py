"""What a table of vectors in a database can do, and what is checked before it is asked."""

import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from manifind.arrays import Floats
from manifind.collection.filters import All, Condition, Contains, FieldComparison, Not, Some, parse_where
from manifind.collection.ids import check_ids, is_text
from manifind.collection.items import as_array
from manifind.collection.metadata import Fields, metadata_texts
from manifind.errors import InputError, StoreError
from manifind.index.exact import Metric
from manifind.index.vector_index import EXACT_UP_TO
from manifind.ranking import Ranking
from manifind.search.feature_model import check_k
from manifind.stores.address import Address

IdKind = Literal["text", "number"]
IndexKind = Literal["auto", "exact", "hnsw"]
Hits: TypeAlias = list[list[tuple[Any, float]]]
"""(id, score) of the best rows for each query."""

Inspected: TypeAlias = tuple[Collection[Any], tuple[int, IdKind] | str] | None
"""Of a table, where there is one: its marks; width and kind of ids, or what has changed that must not."""

CHANGED = "its columns have been changed since"
_LONGEST_NAME = 40
_LONGEST_TABLE = 54  # letters: a name and its role; an index adds 7 to PostgreSQL's 63
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

    widest_index = sys.maxsize

    def __init__(self, database: "Database", name: str, shape: Shape) -> None:
        self._database, self.name, self.shape = database, name, shape

    def upsert(self, ids: Sequence[Any], vectors: Any, metadata: Sequence[Fields | None] | None = None) -> None:
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
        found = self._search(queries, check_k(k, k), condition)
        fewest = min(map(len, found), default=0)
        best = [hit for hits in found for hit in sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:fewest]]
        ids = as_array([id_ for id_, _ in best], np.dtype(object if self.shape.ids == "text" else np.int64))
        scores = np.array([score for _, score in best], dtype=np.float32)
        return Ranking(ids.reshape(len(found), fewest), scores.reshape(len(found), fewest))

    def count(self, where: str | None = None) -> int:
        """How many rows there are, or satisfy a filter."""
        return self._count(_condition(where))

    def rows(self, ids: Sequence[Any]) -> FetchedRows:
        """Some rows by their ids, in this order."""
        names = self._checked_ids(ids)
        found = self._fetch(names)
        missing = next((name for name in names if name not in found), None)
        if missing is not None:
            where = f"the {self.kind} {self.name} of {self._database.address}"
            raise StoreError(f"{where} has no row {missing!r}", "publish again")
        vectors = np.array([found[name][0] for name in names], dtype=np.float32)
        return FetchedRows(vectors.reshape(-1, self.shape.width), [found[name][1] for name in names])

    def build_index(self, kind: IndexKind) -> str:
        """Make the table quick to search, once it is filled; which kind was made, "exact" for none."""
        check_index(kind)
        n_rows, width = self.count(), self.shape.width
        if kind == "hnsw" and width > self.widest_index:
            raise InputError(
                f"the vectors are {width} wide, and {self._database.product}'s HNSW takes at most {self.widest_index}",
                "fit with fewer n_components, or leave the index at 'auto', which searches such vectors exactly",
            )
        wanted = kind == "hnsw" or (kind == "auto" and n_rows > EXACT_UP_TO and width <= self.widest_index)
        self._build_index(n_rows if wanted else None)
        return "hnsw" if wanted else "exact"

    @abstractmethod
    def ids(self) -> list[Any]:
        """Of all rows, in no particular order."""

    @abstractmethod
    def _build_index(self, n_rows: int | None) -> None:
        """Make the approximate index for so many rows; None for none."""

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
    def _search(self, queries: Floats, k: int, condition: Condition | None) -> Hits: ...

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
        finite, directed = np.isfinite(rows).all(axis=1), rows.any(axis=1)
        if not finite.all():
            raise InputError(f"the vector in row {np.argmin(finite)} holds NaN")
        if self.shape.metric == "cosine" and not directed.all():
            raise InputError(f"the vector in row {np.argmin(directed)} is zero, and has no direction to compare")
        return rows


class Database(ABC):
    """An open connection to tables of vectors."""

    product: str
    store: type[Store]
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
        self._create(name, shape, mark_of(name), present is not None)
        return self.store(self, name, shape)

    def open(self, name: str, metric: Metric) -> Store | None:
        """The table of this name, None where there is none; one that manifind did not make is refused."""
        found = self._inspect(check_name(name, _LONGEST_TABLE))
        if found is None:
            return None
        marks, columns = found
        table = f"the {self.store.kind} {name} in {self.address}"
        if mark_of(name) not in marks:
            raise StoreError(
                f"{table} was not made by manifind and is left as it is",
                "choose another name; if an earlier version of manifind published it, drop it and publish again",
            )
        if isinstance(columns, str):
            raise StoreError(
                f"{table} was made by manifind, but {columns}", "drop it and publish again, or choose another name"
            )
        width, ids = columns
        return self.store(self, name, Shape(width, metric, ids))

    @abstractmethod
    def session(self) -> AbstractContextManager[Any]:
        """The connection, made where there is none; errors of the driver become ours, without secrets."""

    def together(self) -> AbstractContextManager[Any]:
        """What is done inside is done at once, or not at all, where the database can do that."""
        return self.session()

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection."""

    @abstractmethod
    def _inspect(self, name: str) -> Inspected: ...

    @abstractmethod
    def _create(self, name: str, shape: Shape, mark: str, is_there: bool) -> None:
        """A new table, in the place of one that is there."""


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


def check_index(kind: str) -> None:
    if kind not in get_args(IndexKind):
        raise InputError(f"index = {kind!r}; expected one of {', '.join(map(repr, get_args(IndexKind)))}")


def _condition(where: str | None) -> Condition | None:
    return None if where is None else parse_where(where)


def translated(condition: Condition, compared: Callable[[FieldComparison | Contains], str]) -> str:
    """A condition in the words that SQL and Milvus share. compared: a comparison as the database has it, in order."""
    if isinstance(condition, Not):
        return f"(not {translated(condition.part, compared)})"
    if isinstance(condition, All | Some):
        word = " and " if isinstance(condition, All) else " or "
        return f"({word.join(translated(part, compared) for part in condition.parts)})"
    return compared(condition)


def checked_text(text: str, database: str) -> str:
    """A text of a condition, refused where no database keeps it."""
    if not is_text(text):
        raise unaskable(f"{text[:60]!r}, no valid text", database)
    return text


def unaskable(what: str, database: str) -> InputError:
    """A part of a condition that a database cannot be asked."""
    return InputError(
        f"where holds {what}, which {database} cannot be asked", "leave that part out, or search the collection itself"
    )
