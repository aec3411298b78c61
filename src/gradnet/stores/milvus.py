"""Tables of vectors in Milvus: FLAT where they are small, HNSW with parameters for their size beyond."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import grpc
import numpy as np
from pymilvus import DataType, MilvusClient
from pymilvus.exceptions import MilvusException

from gradnet.arrays import Floats, row_blocks
from gradnet.errors import InputError, StoreError
from gradnet.graph.neighbours import Metric, nearest
from gradnet.ranking import Ranking, best_first
from gradnet.stores.address import Address
from gradnet.stores.milvus_rows import kept_metadata
from gradnet.stores.milvus_where import among, expression_of
from gradnet.stores.store import (
    LONGEST_TABLE,
    IdKind,
    IndexKind,
    Rows,
    Shape,
    as_ranking,
    changed,
    check_index,
    check_name,
    checked_ids,
    checked_k,
    checked_metadata,
    checked_vectors,
    condition_of,
    mark_of,
    not_ours,
)

_MARK_PROPERTY = "gradnet.mark"
_METRICS = {"cosine": "COSINE", "euclidean": "L2"}
_MOST_RESULTS = 16_384
_WIDEST = 32_768
_LONGEST_ID = 16_384  # bytes: as many letters as a collection allows, of four bytes each
_BYTES_AT_ONCE = 1 << 24  # of the 64 MB that a message may have
_MOST_AT_ONCE = 4096  # rows of a message
_QUERIES_AT_ONCE = 256
_LARGE = 1_000_000  # rows from which a graph needs more edges for the same recall
_AGAIN = "see that it runs and can be reached, then repeat the same: nothing is done twice"


class MilvusDatabase:
    """A client. Milvus has no transactions: `together` only groups, and readers may see a part of what is done."""

    def __init__(self, address: Address) -> None:
        self.address = address
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
                told = self.address.scrubbed(getattr(error, "message", None) or error)
        raise ConnectionError(told)

    def create(self, name: str, shape: Shape) -> MilvusStore:
        """The table of this name, made where there is none, and anew where it has another shape."""
        if shape.width > _WIDEST:
            raise InputError(f"the vectors are {shape.width} wide; Milvus takes at most {_WIDEST}")
        present = self.open(name, shape.metric)
        if present is not None and present.shape == shape:
            return present
        with self.asking():
            if present is not None:
                self.client.drop_collection(name)
            schema = MilvusClient.create_schema(
                auto_id=False, enable_dynamic_field=False, description=mark_of(name)
            )
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
        """The table of this name, None where there is none; one that gradnet did not make is refused."""
        with self.asking():
            if not self.client.has_collection(check_name(name, LONGEST_TABLE)):
                return None
            told = self.client.describe_collection(name)
        if mark_of(name) not in (told.get("description"), told.get("properties", {}).get(_MARK_PROPERTY)):
            raise not_ours(f"collection {name}", self.address)
        fields = {field["name"]: field for field in told["fields"]}
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
            told = self.address.scrubbed(getattr(error, "message", None) or error)
            raise StoreError(f"the Milvus database {self.address} cannot be asked: {told}", _AGAIN) from None

    def close(self) -> None:
        """Let go of the connection."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(MilvusException, grpc.RpcError):
                client.close()


class MilvusStore:
    """One collection of Milvus: id, vector, metadata."""

    def __init__(self, database: MilvusDatabase, name: str, shape: Shape) -> None:
        self.shape, self._database, self._name = shape, database, name
        self._loaded: Any = None

    def upsert(
        self,
        ids: Sequence[Any],
        vectors: Any,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
    ) -> None:
        """Put rows there, or in the place of those that have their ids, some at a time."""
        names, rows = checked_ids(ids, self.shape), checked_vectors(vectors, self.shape)
        said = checked_metadata(metadata, len(names))
        kept = [kept_metadata(fields, id_) for fields, id_ in zip(said, names, strict=True)]
        with self._database.asking():
            for part in row_blocks(len(names), self._at_once()):
                listed = zip(names[part], rows[part], kept[part], strict=True)
                data = [{"id": id_, "vector": vector, "metadata": fields} for id_, vector, fields in listed]
                self._client.upsert(self._name, data)

    def delete(self, ids: Sequence[Any]) -> None:
        """Take rows away."""
        names = checked_ids(ids, self.shape)
        with self._database.asking():
            for part in row_blocks(len(names), _MOST_AT_ONCE):
                self._client.delete(self._name, filter=among(names[part]))

    def count(self, where: str | None = None) -> int:
        """How many rows there are, or satisfy a condition."""
        return self._count(expression_of(condition_of(where)))

    def ids(self) -> list[Any]:
        """Of all rows."""
        return self._ids("")

    def rows(self, ids: Sequence[Any]) -> Rows:
        """Some rows by their ids, in this order."""
        names = checked_ids(ids, self.shape)
        found: dict[Any, tuple[Any, Any]] = {}
        with self._database.asking():
            for part in row_blocks(len(names), self._at_once()):
                listed = self._client.query(
                    self._name, filter=among(names[part]), output_fields=["id", "vector", "metadata"]
                )
                found |= {row["id"]: (row["vector"], row["metadata"]["said"]) for row in listed}
        missing = next((name for name in names if name not in found), None)
        if missing is not None:
            raise StoreError(
                f"the collection {self._name} of {self._database.address} has no row {missing!r}",
                "publish again",
            )
        vectors = np.array([found[name][0] for name in names], dtype=np.float32)
        return Rows(vectors.reshape(-1, self.shape.width), [found[name][1] for name in names])

    def search(self, vectors: Any, k: int, where: str | None = None) -> Ranking:
        """The k best rows for each vector, by cosine or by negative distance."""
        queries, k = checked_vectors(vectors, self.shape), checked_k(k)
        if k > _MOST_RESULTS:
            raise InputError(f"k = {k}; Milvus answers with at most {_MOST_RESULTS} rows", "ask for fewer")
        expression = expression_of(condition_of(where))
        found: list[list[tuple[Any, float]]] = []
        for part in row_blocks(len(queries), _QUERIES_AT_ONCE):
            found += self._ask(queries[part], k, expression)
        fewest = min(map(len, found), default=k)
        if fewest < k and fewest < min(k, self._count(expression)):
            return self._search_all(queries, k, expression)  # the graph of an index lost some
        return as_ranking(found, self.shape.ids)

    def build_index(self, kind: IndexKind) -> str:
        """FLAT or HNSW, as wanted for the rows that are there."""
        n = self.count()
        wanted = check_index(kind, n)
        with self._database.asking():
            client, name = self._client, self._name
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
            client.load_collection(self._name)
            self._loaded = client
        return client

    def _at_once(self) -> int:
        return max(1, min(_MOST_AT_ONCE, _BYTES_AT_ONCE // (4 * self.shape.width)))

    def _count(self, expression: str) -> int:
        with self._database.asking():
            (row,) = self._client.query(self._name, filter=expression, output_fields=["count(*)"])
        return int(row["count(*)"])

    def _ids(self, expression: str) -> list[Any]:
        with self._database.asking():
            pages = self._client.query_iterator(
                self._name, batch_size=_MOST_AT_ONCE, filter=expression, output_fields=["id"]
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
                self._name,
                data=list(queries),
                limit=k,
                filter=expression,
                output_fields=["id"],
                search_params={"params": {"ef": max(64, 4 * k)}},
            )
        return [[(hit["id"], self._score(hit["distance"])) for hit in hits] for hits in answers]

    def _score(self, told: float) -> float:
        """Milvus tells cosines as they are, and distances squared."""
        return told if self.shape.metric == "cosine" else -math.sqrt(max(told, 0.0))

    def _search_all(self, queries: Floats, k: int, expression: str) -> Ranking:
        """The k best of the rows that satisfy a condition, fetched and compared here: slow, and sure."""
        names = sorted(self._ids(expression))
        positions = np.empty((len(queries), 0), dtype=np.int64)
        scores = np.empty((len(queries), 0), dtype=np.float32)
        for part in row_blocks(len(names), self._at_once()):
            rows = self.rows(names[part]).vectors
            found = nearest(queries, rows, min(k, len(rows)), self.shape.metric)
            positions = np.hstack([positions, found.ids + part.start])
            scores = np.hstack([scores, found.scores])
            positions, scores = best_first(scores, positions, min(k, positions.shape[1]))
        listed = [
            [(names[i], s) for i, s in zip(*row, strict=True)] for row in zip(positions, scores, strict=True)
        ]
        return as_ranking(listed, self.shape.ids)


def index_parameters(shape: Shape, n_rows: int | None) -> Any:
    """How vectors are searched. n_rows: for which HNSW is made; None for FLAT, which compares every row.

    Milvus's own choice is made for any size. Few rows need no graph at all; of a graph, 16 edges a row suffice for
    hundreds of thousands, and 32 for more.
    """
    parameters = MilvusClient.prepare_index_params()
    told: dict[str, Any] = {"field_name": "vector", "metric_type": _METRICS[shape.metric]}
    if n_rows is None:
        parameters.add_index(**told, index_type="FLAT")
    else:
        edges = 16 if n_rows < _LARGE else 32
        parameters.add_index(**told, index_type="HNSW", params={"M": edges, "efConstruction": 8 * edges})
    return parameters
