"""Milvus as a store: FLAT where tables are small, HNSW beyond, filters as expressions.

Metadata is stored as it was given, under "said", and once more by kind, for filters:

    {"said": {"year": 1990, "tags": ["red", 3]},
     "number": {"year": 1990}, "texts": {"tags": ["red"]}, "numbers": {"tags": [3]}}

A filter is an expression with literals of our own making: names in letters that need no escape, texts with every quote
and backslash escaped, numbers as Python writes doubles. Milvus knows a third truth for what is missing,
which `not` would keep; so every comparison also asks whether the value is there.
"""

import json
import logging
import math
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import grpc
import numpy as np
from pymilvus import DataType, MilvusClient
from pymilvus.exceptions import MilvusException

from manifind.arrays import Floats, row_blocks
from manifind.collection.filters import Condition, Contains, FieldComparison, kind
from manifind.collection.metadata import Fields
from manifind.errors import InputError, StoreError
from manifind.index.exact import nearest
from manifind.ranking import best_first
from manifind.stores.address import Address
from manifind.stores.store import CHANGED, Database, Hits, Inspected, Shape, Store, checked_text, translated, unaskable

_FIELDS = "said"  # where the fields stand as they were given; other groups serve filters
_MOST_BYTES = 65_536  # of a JSON value of Milvus
_LARGEST_WHOLE = 1 << 53  # beyond, Milvus compares as doubles, and would take different numbers for the same
_NEVER = 'exists metadata["never"]["%"]'
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_MARK_PROPERTY = "gradnet.mark"
_METRICS = {"cosine": "COSINE", "euclidean": "L2"}
_MOST_RESULTS = 16_384
_LONGEST_ID = 16_384  # bytes: as many letters as a collection allows, of four bytes each
_BYTES_AT_ONCE = 1 << 24  # of the 64 MB that a message may have
_MOST_AT_ONCE = 4096  # rows of a message
_QUERIES_AT_ONCE = 256
_LARGE = 1_000_000  # rows from which a graph needs more edges for the same recall


def stored_metadata(fields: Fields, id_: Any) -> dict[str, Any]:
    stored: dict[str, Any] = {_FIELDS: fields}
    whose = f"of {str(id_)[:60]!r}"
    for name, value in fields.items():
        key, is_list = key_of(name), isinstance(value, list)
        for one in value if is_list else [value]:
            if isinstance(one, int) and abs(one) > _LARGEST_WHOLE:
                raise InputError(
                    f"the metadata {name!r} {whose} is {str(one)[:40]}, a number that Milvus would round",
                    "give it as text",
                )
            if is_list and one is not None:
                stored.setdefault(f"{kind(one)}s", {}).setdefault(key, []).append(one)
            elif one is not None:
                stored.setdefault(kind(one), {})[key] = one
    if len(json.dumps(stored, ensure_ascii=False).encode()) > _MOST_BYTES:
        raise InputError(
            f"the metadata {whose} takes more than the {_MOST_BYTES} bytes that Milvus stores, half of"
            " them for filters",
            "give it less metadata",
        )
    return stored


def key_of(name: str) -> str:
    """A name in letters that stand for themselves everywhere; different for different names."""
    coded = name.encode("utf-8", "surrogatepass").decode("latin-1")  # a letter a byte
    return re.sub("[^A-Za-z0-9_]", lambda found: f"%{ord(found[0]):02x}", coded) or "%"


def expression_of(condition: Condition | None) -> str:
    """What Milvus takes for a filter; empty where there is no condition."""
    return "" if condition is None else translated(condition, _compared)


def among(ids: list[Any]) -> str:
    return f"id in [{', '.join(literal(id_) if isinstance(id_, str) else str(id_) for id_ in ids)}]"


def literal(text: str) -> str:
    return f'"{checked_text(text, "Milvus").translate(_ESCAPES)}"'


def _compared(part: FieldComparison | Contains) -> str:
    own, key, value = kind(part.value), key_of(part.name), part.value
    one, several = f'metadata["{own}"]["{key}"]', f'metadata["{own}s"]["{key}"]'
    if isinstance(part, Contains):
        return _contains(one, several, value)
    sign = "==" if part.sign == "=" else part.sign
    if own == "number":
        compared = _number_compared(one, sign, value)
    elif own == "truth":  # by equality alone: truths have no order in Milvus, and false before true here
        satisfying = [truth for truth in (False, True) if part({part.name: truth})]
        equal = f"{one} == {json.dumps(satisfying[0])}" if satisfying else _NEVER
        compared = f"exists {one}" if len(satisfying) == 2 else equal
    else:
        compared = f"{one} {sign} {literal(value)}"
    return f"(exists {one} and {compared})"


def _number_compared(own: str, sign: str, value: float) -> str:
    """Against a double, which is all that Milvus knows; what lies between two doubles is left and right of them."""
    double = _double(value)
    if double == value and math.isfinite(double):
        return f"{own} {sign} {double!r}"
    if sign in ("==", "!="):
        return _NEVER if sign == "==" else f"exists {own}"
    is_below = sign[0] == "<"
    if not (double < value if is_below else double > value):
        double = math.nextafter(double, -math.inf if is_below else math.inf)
    return f"{own} {sign[0]}= {double!r}" if math.isfinite(double) else _NEVER


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _contains(text: str, several: str, value: Any) -> str:
    """text, several: where a text and where the elements of a list are stored."""
    if isinstance(value, str):
        if set(value) & set("%_\\"):
            raise unaskable(f"contains {value[:60]!r}, with one of the letters % _ \\", "Milvus")
        inside = f"(exists {text} and {text} like {literal(f'%{value}%')})"
        return f"((exists {several} and json_contains({several}, {literal(value)})) or {inside})"
    if isinstance(value, bool):
        return f"(exists {several} and json_contains({several}, {json.dumps(value)}))"
    double = _double(value)
    if double != value or not math.isfinite(double):
        return f"({_NEVER})"
    # In a list, Milvus tells 3 from 3.0: as JSON has it for a whole number.
    written = int(double) if double.is_integer() and abs(double) <= _LARGEST_WHOLE else double
    return f"(exists {several} and json_contains_any({several}, [{written!r}]))"


class MilvusStore(Store):
    """One collection of Milvus: id, vector, metadata."""

    kind = "collection"

    def __init__(self, database: Database, name: str, shape: Shape) -> None:
        super().__init__(database, name, shape)
        self._rows_at_once = max(1, min(_MOST_AT_ONCE, _BYTES_AT_ONCE // (4 * shape.width)))
        self._loaded: Any = None

    @contextmanager
    def _session(self) -> Iterator[Any]:
        """The connection, over which this collection was loaded: a server that was away may have let go of it."""
        with self._database.session() as client:
            if client is not self._loaded:
                client.load_collection(self.name)
                self._loaded = client
            yield client

    def _upsert(self, names: list[Any], rows: Floats, fields: list[Fields]) -> None:
        stored = [stored_metadata(one, id_) for one, id_ in zip(fields, names, strict=True)]
        with self._session() as client:
            for part in row_blocks(len(names), self._rows_at_once):
                listed = zip(names[part], rows[part], stored[part], strict=True)
                data = [{"id": id_, "vector": vector, "metadata": one} for id_, vector, one in listed]
                client.upsert(self.name, data)

    def _delete(self, names: list[Any]) -> None:
        with self._session() as client:
            for part in row_blocks(len(names), _MOST_AT_ONCE):
                client.delete(self.name, filter=among(names[part]))

    def _count(self, condition: Condition | None) -> int:
        with self._session() as client:
            (row,) = client.query(self.name, filter=expression_of(condition), output_fields=["count(*)"])
        return int(row["count(*)"])

    def ids(self, condition: Condition | None = None) -> list[Any]:
        with self._session() as client:
            pages = client.query_iterator(
                self.name, batch_size=_MOST_AT_ONCE, filter=expression_of(condition), output_fields=["id"]
            )
            found: list[Any] = []
            while page := pages.next():
                found += [row["id"] for row in page]
            pages.close()
        return found

    def _fetch(self, names: list[Any]) -> dict[Any, tuple[Any, Fields]]:
        found: dict[Any, tuple[Any, Fields]] = {}
        wanted = ["id", "vector", "metadata"]
        with self._session() as client:
            for part in row_blocks(len(names), self._rows_at_once):
                for row in client.query(self.name, filter=among(names[part]), output_fields=wanted):
                    found[row["id"]] = row["vector"], row["metadata"][_FIELDS]
        return found

    def _search(self, queries: Floats, k: int, condition: Condition | None) -> Hits:
        if k > _MOST_RESULTS:
            k = min(k, self._count(None))
        if k > _MOST_RESULTS:
            raise InputError(f"k = {k}; Milvus answers with at most {_MOST_RESULTS} rows", "ask for fewer")
        found = self._ask(queries, k, expression_of(condition))
        fewest = min(map(len, found), default=k)
        if fewest < k and fewest < min(k, self._count(condition)):
            return self._search_all(queries, k, condition)  # the graph of an index lost some
        return found

    def _build_index(self, n_rows: int | None) -> None:
        with self._session() as client:
            client.flush(self.name)  # only what was written out is indexed
            made = client.describe_index(self.name, "vector")["index_type"]
            if made != ("FLAT" if n_rows is None else "HNSW"):
                client.release_collection(self.name)
                client.drop_index(self.name, "vector")
                client.create_index(self.name, index_parameters(self.shape, n_rows))
                client.load_collection(self.name)

    def _ask(self, queries: Floats, k: int, expression: str) -> Hits:
        wanted = {"limit": k, "filter": expression, "search_params": {"params": {"ef": max(64, 4 * k)}}}
        answers: list[Any] = []
        with self._session() as client:
            for part in row_blocks(len(queries), _QUERIES_AT_ONCE):
                answers += client.search(self.name, data=list(queries[part]), output_fields=["id"], **wanted)
        if self.shape.metric == "cosine":
            return [[(hit["id"], hit["distance"]) for hit in hits] for hits in answers]
        # Distances come squared.
        return [[(hit["id"], -math.sqrt(max(hit["distance"], 0.0))) for hit in hits] for hits in answers]

    def _search_all(self, queries: Floats, k: int, condition: Condition | None) -> Hits:
        """The k best of the rows that satisfy a filter, fetched and compared here: slow, and sure."""
        names = sorted(self.ids(condition))
        positions = np.empty((len(queries), 0), dtype=np.int64)
        scores = np.empty((len(queries), 0), dtype=np.float32)
        for part in row_blocks(len(names), self._rows_at_once):
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
    edges = 16 if (n_rows or 0) < _LARGE else 32
    graph = {"index_type": "HNSW", "params": {"M": edges, "efConstruction": 8 * edges}}
    index = {"index_type": "FLAT"} if n_rows is None else graph
    parameters.add_index("vector", metric_type=_METRICS[shape.metric], **index)
    return parameters


class MilvusDatabase(Database):
    """A client. Milvus has no transactions: `together` only groups, and readers may see a part of what is done."""

    product, widest, store = "Milvus", 32_768, MilvusStore

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        # Its own handler would print every error, with a traceback, beside ours.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)
        self.client: Any = None
        with self.session():
            pass

    def _connect(self) -> Any:
        """A client; whatever it raises on the way becomes an error that `session` translates.

        It is asked for twice: a server may close a connection that was idle for minutes when it is asked again, and
        clients of one process share theirs, also those that were closed.
        """
        for _ in range(2):
            try:
                return MilvusClient(**self.address.parameters)
            except Exception as error:
                problem = self.address.scrubbed(getattr(error, "message", None) or error)
        raise ConnectionError(problem)

    def _create(self, name: str, shape: Shape, mark: str, is_there: bool) -> None:
        with self.session() as client:
            if is_there:
                client.drop_collection(name)
            schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False, description=mark)
            ids = (DataType.INT64, {}) if shape.ids == "number" else (DataType.VARCHAR, {"max_length": _LONGEST_ID})
            schema.add_field("id", ids[0], is_primary=True, **ids[1])
            schema.add_field("vector", DataType.FLOAT_VECTOR, dim=shape.width)
            schema.add_field("metadata", DataType.JSON)
            client.create_collection(
                name,
                schema=schema,
                index_params=index_parameters(shape, None),
                consistency_level="Strong",
                properties={_MARK_PROPERTY: mark},  # Milvus Lite keeps no description
            )

    def _inspect(self, name: str) -> Inspected:
        with self.session() as client:
            if not client.has_collection(name):
                return None
            found = client.describe_collection(name)
        marks = [found.get("description"), found.get("properties", {}).get(_MARK_PROPERTY)]
        fields = {field["name"]: field for field in found["fields"]}
        if set(fields) != {"id", "vector", "metadata"} or fields["metadata"]["type"] != DataType.JSON:
            return marks, CHANGED
        is_text = fields["id"]["type"] == DataType.VARCHAR
        return marks, (int(fields["vector"]["params"]["dim"]), "text" if is_text else "number")

    def together(self) -> AbstractContextManager[Any]:
        """Nothing but what is inside: Milvus cannot do several things at once."""
        return nullcontext()

    @contextmanager
    def session(self) -> Iterator[Any]:
        """The client, made anew where the last thing asked of it failed; errors become ours, without secrets."""
        try:
            if self.client is None:
                self.client = self._connect()
            yield self.client
        except (MilvusException, grpc.RpcError, grpc.FutureTimeoutError, OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            self.close()  # a connection that broke does not mend
            problem = self.address.scrubbed(getattr(error, "message", None) or error)
            raise StoreError(
                f"the Milvus database {self.address} cannot be asked: {problem}",
                "see that it runs and can be reached, then repeat the same: nothing is done twice",
            ) from None

    def close(self) -> None:
        client, self.client = self.client, None
        if client is not None:
            with suppress(MilvusException, grpc.RpcError):
                client.close()
