"""What a table of vectors in a database can do, and what is checked before it is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Protocol

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

IdKind = Literal["text", "number"]
IndexKind = Literal["auto", "exact", "hnsw"]
INDEXES = ("auto", "exact", "hnsw")

EXACT_UP_TO = 20_000
"""Rows that "auto" searches exactly: as in a collection, there is nothing to build, and nothing to miss."""

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


class Rows(NamedTuple):
    """vectors: (m, d). metadata: what is said of each."""

    vectors: Floats
    metadata: list[Fields]


class Store(Protocol):
    """A table of vectors under ids, with metadata."""

    shape: Shape

    def upsert(
        self, ids: Sequence[Any], vectors: Any, metadata: Sequence[Mapping[str, Any] | None] | None = None
    ) -> None:
        """Put rows there, or in the place of those that have their ids."""

    def delete(self, ids: Sequence[Any]) -> None:
        """Take rows away; an id that is not there is no mistake, so that this can be repeated."""

    def search(self, vectors: Any, k: int, where: str | None = None) -> Ranking:
        """The k best rows for each vector, by cosine or by negative distance.

        Equal scores stand in the order of their ids; which of them are found, where only some can be, is up to the
        database.
        where: a condition on metadata. Where fewer than k rows satisfy it, all of those are found.
        """

    def count(self, where: str | None = None) -> int:
        """How many rows there are, or satisfy a condition."""

    def rows(self, ids: Sequence[Any]) -> Rows:
        """Some rows by their ids, in this order."""

    def ids(self) -> list[Any]:
        """Of all rows, in no particular order."""

    def build_index(self, kind: IndexKind) -> str:
        """Make the table quick to search, once it is filled; which kind was made, "exact" for none."""


class Database(Protocol):
    """An open connection to tables of vectors."""

    def create(self, name: str, shape: Shape) -> Store:
        """The table of this name, made where there is none, and anew where it has another shape."""

    def open(self, name: str, metric: Metric) -> Store | None:
        """The table of this name, None where there is none; one that manifind did not make is refused."""

    def together(self) -> AbstractContextManager[None]:
        """What is done inside is done at once, or not at all, where the database can do that."""

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


def checked_ids(ids: Sequence[Any], shape: Shape) -> list[Any]:
    """Ids as plain values of the kind that the table has."""
    plain = list(check_ids(ids, len(ids)))
    if plain and isinstance(plain[0], str) != (shape.ids == "text"):
        raise InputError(f"the id {plain[0]!r} is no {shape.ids}, as the ids of this table are")
    return plain


def checked_vectors(vectors: Any, shape: Shape) -> Floats:
    """(m, d) float32, finite, and with a direction where directions are compared."""
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != shape.width:
        raise InputError(f"the vectors have the shape {rows.shape}; expected (any, {shape.width})")
    if not np.isfinite(rows).all():
        raise InputError(f"the vector in row {int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])} holds NaN")
    if shape.metric == "cosine" and not rows.any(axis=1).all():
        row = int(np.flatnonzero(~rows.any(axis=1))[0])
        raise InputError(f"the vector in row {row} is zero, and has no direction to compare")
    return rows


def checked_metadata(metadata: Sequence[Mapping[str, Any] | None] | None, n: int) -> list[Fields]:
    """Plain fields for each row, as a collection would keep them."""
    return [{} if text is None else json.loads(text) for text in metadata_texts(metadata, n)]


def checked_k(k: int) -> int:
    """k as a plain number."""
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise InputError(f"k = {k!r}; expected a whole number of at least 1")
    return int(k)


def condition_of(where: str | None) -> Condition | None:
    """The tree of a condition; None where none is set."""
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
