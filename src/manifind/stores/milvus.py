"""Milvus as a store: FLAT where tables are small, HNSW beyond, filters as expressions.

Metadata is stored as it was given, under "said", and once more by kind, for filters:

    {"said": {"year": 1990, "tags": ["red", 3]},
     "number": {"year": 1990}, "texts": {"tags": ["red"]}, "numbers": {"tags": [3]}}

A filter is an expression with literals of our own making: names in letters that need no escape, texts with every quote
and backslash escaped, numbers as Python writes doubles. Milvus knows a third truth for what is missing,
which `not` would keep; so every comparison also asks whether the value is there.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import grpc
import numpy as np
from pymilvus import DataType, MilvusClient
from pymilvus.exceptions import MilvusException

from manifind.arrays import Floats, row_blocks
from manifind.collection.filters import All, Condition, Contains, FieldComparison, Not, kind
from manifind.collection.ids import is_text
from manifind.collection.metadata import Fields
from manifind.errors import InputError, StoreError
from manifind.index.exact import Metric, nearest
from manifind.ranking import best_first
from manifind.stores.address import Address
from manifind.stores.store import (
    LONGEST_TABLE,
    Database,
    IdKind,
    IndexKind,
    Shape,
    Store,
    changed,
    check_index,
    check_name,
    mark_of,
    not_ours,
    untranslatable,
)

_FIELDS = "said"  # where the fields stand as they were given; other groups serve filters
_MOST_BYTES = 65_536  # of a JSON value of Milvus
_LARGEST_WHOLE = 1 << 53  # beyond, Milvus compares as doubles, and would take different numbers for the same


def stored_metadata(fields: Fields, id_: Any) -> dict[str, Any]:
    """The JSON value for one row."""
    stored: dict[str, Any] = {_FIELDS: fields}
    for name, value in fields.items():
        plural = "s" if isinstance(value, list) else ""
        for one in value if plural else [value]:
            if one is None:
                continue
            _refuse_large(name, one, id_)
            group = stored.setdefault(f"{kind(one)}{plural}", {})
            if plural:
                group.setdefault(key_of(name), []).append(one)
            else:
                group[key_of(name)] = one
    if len(json.dumps(stored, ensure_ascii=False).encode()) > _MOST_BYTES:
        raise InputError(
            f"the metadata of {str(id_)[:60]!r} takes more than the {_MOST_BYTES} bytes that Milvus stores, half of"
            " them for filters",
            "give it less metadata",
        )
    return stored


def key_of(name: str) -> str:
    """A name in letters that stand for themselves everywhere; different for different names."""
    return re.sub("[^A-Za-z0-9_]", _escaped, name) or "%"


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02x}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _refuse_large(name: str, value: Any, id_: Any) -> None:
    if isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
        raise InputError(
            f"the metadata {name!r} of {str(id_)[:60]!r} is {str(value)[:40]}, a number that Milvus would round",
            "give it as text",
        )


_NEVER = 'exists metadata["never"]["%"]'
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_LARGEST = math.nextafter(math.inf, 0)


def expression_of(condition: Condition | None) -> str:
    """What Milvus takes for a filter; empty where there is no condition."""
    if condition is None:
        return ""
    if isinstance(condition, FieldComparison):
        return _compared(condition)
    if isinstance(condition, Contains):
        return _contains(condition)
    if isinstance(condition, Not):
        return f"(not {expression_of(condition.part)})"
    word = " and " if isinstance(condition, All) else " or "
    return f"({word.join(expression_of(part) for part in condition.parts)})"


def among(ids: list[Any]) -> str:
    """The rows of some ids."""
    listed = ", ".join(literal(id_) if isinstance(id_, str) else str(id_) for id_ in ids)
    return f"id in [{listed}]"


def literal(text: str) -> str:
    """A text in an expression."""
    if not is_text(text):
        raise untranslatable(f"{text[:60]!r}, no valid text", "Milvus")
    return f'"{text.translate(_ESCAPES)}"'


def _compared(part: FieldComparison) -> str:
    own = f'metadata["{kind(part.value)}"]["{key_of(part.name)}"]'
    if kind(part.value) == "number":
        compared = _number_compared(own, part.sign, part.value)
    elif kind(part.value) == "truth":
        compared = _truth_compared(own, part.sign, part.value)
    else:
        compared = f"{own} {_sign(part.sign)} {literal(part.value)}"
    return f"(exists {own} and {compared})"


def _number_compared(own: str, sign: str, value: float) -> str:
    """Against a double, which is all that Milvus knows; what lies between two doubles is left and right of them."""
    nearest = _double(value)
    if nearest == value and math.isfinite(nearest):
        return f"{own} {_sign(sign)} {nearest!r}"
    if sign in ("=", "!="):
        return _NEVER if sign == "=" else f"exists {own}"
    below = min(nearest if nearest < value else math.nextafter(nearest, -math.inf), _LARGEST)
    above = max(nearest if nearest > value else math.nextafter(nearest, math.inf), -_LARGEST)
    if sign in ("<", "<="):
        return f"{own} <= {below!r}" if below >= -_LARGEST else _NEVER
    return f"{own} >= {above!r}" if above <= _LARGEST else _NEVER


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _truth_compared(own: str, sign: str, value: bool) -> str:
    """By equality alone: truths have no order in Milvus, and false before true here."""
    satisfying = [one for one in (False, True) if FieldComparison("", sign, value)({"": one})]
    if len(satisfying) == 2:
        return f"exists {own}"
    return f"{own} == {'true' if satisfying[0] else 'false'}" if satisfying else _NEVER


def _contains(part: Contains) -> str:
    own, key = kind(part.value), key_of(part.name)
    listed = f'metadata["{own}s"]["{key}"]'
    if own == "number":
        nearest = _double(part.value)
        equal = nearest == part.value and math.isfinite(nearest)
        return f"(exists {listed} and json_contains_any({listed}, [{_whole(nearest)}]))" if equal else f"({_NEVER})"
    if own == "truth":
        return f"(exists {listed} and json_contains({listed}, {'true' if part.value else 'false'}))"
    inside = f'metadata["text"]["{key}"]'
    if set(part.value) & set("%_\\"):
        raise untranslatable(f"contains {part.value[:60]!r}, with one of the letters % _ \\", "Milvus")
    pattern = literal(f"%{part.value}%")
    return (
        f"((exists {listed} and json_contains({listed}, {literal(part.value)}))"
        f" or (exists {inside} and {inside} like {pattern}))"
    )


def _whole(value: float) -> str:
    """In a list, Milvus tells 3 from 3.0: as JSON has it for a whole number."""
    return repr(int(value)) if value.is_integer() and abs(value) <= 1 << 53 else repr(value)


def _sign(sign: str) -> str:
    return "==" if sign == "=" else sign


_MARK_PROPERTY = "gradnet.mark"
_METRICS = {"cosine": "COSINE", "euclidean": "L2"}
_MOST_RESULTS = 16_384
_LONGEST_ID = 16_384  # bytes: as many letters as a collection allows, of four bytes each
_BYTES_AT_ONCE = 1 << 24  # of the 64 MB that a message may have
_MOST_AT_ONCE = 4096  # rows of a message
_QUERIES_AT_ONCE = 256
_LARGE = 1_000_000  # rows from which a graph needs more edges for the same recall
_AGAIN = "see that it runs and can be reached, then repeat the same: nothing is done twice"


class MilvusDatabase(Database):
    """A client. Milvus has no transactions: `together` only groups, and readers may see a part of what is done."""

    product, widest = "Milvus", 32_768

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        # Its own handler would print every error, with a traceback, beside ours.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)
        self._client: Any = None
        with self.asking():
            self._client = self._connect()

    @property
    def client(self) -> Any:
        """The connection, made anew where the last thing asked of it failed; used inside `asking`."""
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _connect(self) -> Any:
        """A client; whatever it raises on the way becomes an error that `asking` translates.

        It is asked for twice: a server may close a connection that was idle for minutes when it is asked again, and
        clients of one process share theirs, also those that were closed.
        """
        for _ in range(2):
            try:
                return MilvusClient(**self.address.parameters)
            except Exception as error:
                problem = self.address.scrubbed(getattr(error, "message", None) or error)
        raise ConnectionError(problem)

    def _create(self, name: str, shape: Shape, is_there: bool) -> MilvusStore:
        with self.asking():
            if is_there:
                self.client.drop_collection(name)
            schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False, description=mark_of(name))
            if shape.ids == "text":
                schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=_LONGEST_ID)
            else:
                schema.add_field("id", DataType.INT64, is_primary=True)
            schema.add_field("vector", DataType.FLOAT_VECTOR, dim=shape.width)
            schema.add_field("metadata", DataType.JSON)
            self.client.create_collection(
                name,
                schema=schema,
                index_params=index_parameters(shape, None),
                consistency_level="Strong",
                properties={_MARK_PROPERTY: mark_of(name)},  # Milvus Lite keeps no description
            )
        return MilvusStore(self, name, shape)

    def open(self, name: str, metric: Metric) -> MilvusStore | None:
        """The table of this name, None where there is none; one that manifind did not make is refused."""
        with self.asking():
            if not self.client.has_collection(check_name(name, LONGEST_TABLE)):
                return None
            found = self.client.describe_collection(name)
        if mark_of(name) not in (found.get("description"), found.get("properties", {}).get(_MARK_PROPERTY)):
            raise not_ours(f"collection {name}", self.address)
        fields = {field["name"]: field for field in found["fields"]}
        if set(fields) != {"id", "vector", "metadata"} or fields["metadata"]["type"] != DataType.JSON:
            raise changed(f"collection {name}", self.address)
        ids: IdKind = "text" if fields["id"]["type"] == DataType.VARCHAR else "number"
        return MilvusStore(self, name, Shape(int(fields["vector"]["params"]["dim"]), metric, ids))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Nothing but what is inside: Milvus cannot do several things at once."""
        yield

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Errors of the driver become ours, without secrets."""
        try:
            yield
        except (MilvusException, grpc.RpcError, grpc.FutureTimeoutError, OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            self.close()  # a connection that broke does not mend
            problem = self.address.scrubbed(getattr(error, "message", None) or error)
            raise StoreError(f"the Milvus database {self.address} cannot be asked: {problem}", _AGAIN) from None

    def close(self) -> None:
        """Let go of the connection."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(MilvusException, grpc.RpcError):
                client.close()


class MilvusStore(Store):
    """One collection of Milvus: id, vector, metadata."""

    kind = "collection"

    def __init__(self, database: MilvusDatabase, name: str, shape: Shape) -> None:
        super().__init__(database.address, name, shape)
        self._database, self._loaded = database, None

    def _upsert(self, names: list[Any], rows: Floats, fields: list[Fields]) -> None:
        """Some rows at a time."""
        stored = [stored_metadata(one, id_) for one, id_ in zip(fields, names, strict=True)]
        with self._database.asking():
            for part in row_blocks(len(names), self._at_once()):
                listed = zip(names[part], rows[part], stored[part], strict=True)
                data = [{"id": id_, "vector": vector, "metadata": one} for id_, vector, one in listed]
                self._client.upsert(self.name, data)

    def _delete(self, names: list[Any]) -> None:
        with self._database.asking():
            for part in row_blocks(len(names), _MOST_AT_ONCE):
                self._client.delete(self.name, filter=among(names[part]))

    def _count(self, condition: Condition | None) -> int:
        with self._database.asking():
            (row,) = self._client.query(self.name, filter=expression_of(condition), output_fields=["count(*)"])
        return int(row["count(*)"])

    def ids(self) -> list[Any]:
        """Of all rows."""
        return self._ids(None)

    def _fetch(self, names: list[Any]) -> dict[Any, tuple[Any, Fields]]:
        found: dict[Any, tuple[Any, Fields]] = {}
        with self._database.asking():
            for part in row_blocks(len(names), self._at_once()):
                listed = self._client.query(
                    self.name, filter=among(names[part]), output_fields=["id", "vector", "metadata"]
                )
                found |= {row["id"]: (row["vector"], row["metadata"][_FIELDS]) for row in listed}
        return found

    def _search(self, queries: Floats, k: int, condition: Condition | None) -> list[list[tuple[Any, float]]]:
        if k > _MOST_RESULTS:
            k = min(k, self._count(None))
        if k > _MOST_RESULTS:
            raise InputError(f"k = {k}; Milvus answers with at most {_MOST_RESULTS} rows", "ask for fewer")
        found: list[list[tuple[Any, float]]] = []
        for part in row_blocks(len(queries), _QUERIES_AT_ONCE):
            found += self._ask(queries[part], k, expression_of(condition))
        fewest = min(map(len, found), default=k)
        if fewest < k and fewest < min(k, self._count(condition)):
            return self._search_all(queries, k, condition)  # the graph of an index lost some
        return found

    def build_index(self, kind: IndexKind) -> str:
        """FLAT or HNSW, as wanted for the rows that are there."""
        n = self.count()
        wanted = check_index(kind, n)
        with self._database.asking():
            client, name = self._client, self.name
            client.flush(name)  # only what was written out is indexed
            made = client.describe_index(name, "vector")["index_type"]
            if made != ("HNSW" if wanted else "FLAT"):
                client.release_collection(name)
                client.drop_index(name, "vector")
                client.create_index(name, index_parameters(self.shape, n if wanted else None))
                client.load_collection(name)
        return "hnsw" if wanted else "exact"

    @property
    def _client(self) -> Any:
        """The connection, over which this collection was loaded: a server that was away may have let go of it."""
        client = self._database.client
        if client is not self._loaded:
            client.load_collection(self.name)
            self._loaded = client
        return client

    def _at_once(self) -> int:
        return max(1, min(_MOST_AT_ONCE, _BYTES_AT_ONCE // (4 * self.shape.width)))

    def _ids(self, condition: Condition | None) -> list[Any]:
        with self._database.asking():
            pages = self._client.query_iterator(
                self.name, batch_size=_MOST_AT_ONCE, filter=expression_of(condition), output_fields=["id"]
            )
            found: list[Any] = []
            while page := pages.next():
                found += [row["id"] for row in page]
            pages.close()
        return found

    def _ask(self, queries: Floats, k: int, expression: str) -> list[list[tuple[Any, float]]]:
        """(id, score) of the best for each query."""
        with self._database.asking():
            answers = self._client.search(
                self.name,
                data=list(queries),
                limit=k,
                filter=expression,
                output_fields=["id"],
                search_params={"params": {"ef": max(64, 4 * k)}},
            )
        return [[(hit["id"], self._score(hit["distance"])) for hit in hits] for hits in answers]

    def _score(self, value: float) -> float:
        """Milvus gives cosines as they are, and distances squared."""
        return value if self.shape.metric == "cosine" else -math.sqrt(max(value, 0.0))

    def _search_all(self, queries: Floats, k: int, condition: Condition | None) -> list[list[tuple[Any, float]]]:
        """The k best of the rows that satisfy a filter, fetched and compared here: slow, and sure."""
        names = sorted(self._ids(condition))
        positions = np.empty((len(queries), 0), dtype=np.int64)
        scores = np.empty((len(queries), 0), dtype=np.float32)
        for part in row_blocks(len(names), self._at_once()):
            rows = self.rows(names[part]).vectors
            found = nearest(queries, rows, min(k, len(rows)), self.shape.metric)
            positions = np.hstack([positions, found.ids + part.start])
            scores = np.hstack([scores, found.scores])
            positions, scores = best_first(scores, positions, min(k, positions.shape[1]))
        return [[(names[i], s) for i, s in zip(*row, strict=True)] for row in zip(positions, scores, strict=True)]


def index_parameters(shape: Shape, n_rows: int | None) -> Any:
    """How vectors are searched. n_rows: for which HNSW is made; None for FLAT, which compares every row.

    Milvus's own choice is made for any size. Few rows need no graph at all; of a graph, 16 edges a row suffice for
    hundreds of thousands, and 32 for more.
    """
    parameters = MilvusClient.prepare_index_params()
    field: dict[str, Any] = {"field_name": "vector", "metric_type": _METRICS[shape.metric]}
    if n_rows is None:
        parameters.add_index(**field, index_type="FLAT")
    else:
        edges = 16 if n_rows < _LARGE else 32
        parameters.add_index(**field, index_type="HNSW", params={"M": edges, "efConstruction": 8 * edges})
    return parameters
