"""PostgreSQL with pgvector as a store: COPY, one transaction, exact or HNSW search, filters as SQL."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, LiteralString, NamedTuple

import numpy as np
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from manifind.arrays import Floats, row_blocks
from manifind.collection.filters import All, Condition, Contains, FieldComparison, Not, Some, kind
from manifind.collection.ids import is_text
from manifind.collection.metadata import Fields
from manifind.errors import InputError, StoreError
from manifind.index.exact import Metric
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

EXACT_DOUBLES = 1 << 53
"""Below it every whole number is a double; from it on every double is a whole number."""

# By the kind of the value: what jsonb calls it, and the value taken out of it. CASE, since SQL may evaluate the sides
# of AND in any order, and a cast of another kind would be an error. Texts by code point, whatever the server's locale.
_VALUES: dict[str, tuple[LiteralString, LiteralString]] = {
    "number": ("'number'", "(metadata ->> %s)::numeric"),
    "text": ("'string'", '(metadata ->> %s) COLLATE "C"'),
    "truth": ("'boolean'", "(metadata ->> %s)::boolean"),
}
_ELEMENTS: dict[str, LiteralString] = {
    "number": "(e #>> '{}')::numeric",
    "text": "(e #>> '{}')",
    "truth": "(e #>> '{}')::boolean",
}
_PLACES: dict[str, LiteralString] = {"number": "%s::numeric", "text": "%s::text", "truth": "%s::boolean"}
_SIGNS: dict[str, LiteralString] = {"=": "=", "!=": "<>", "<=": "<=", ">=": ">=", "<": "<", ">": ">"}


class Clause(NamedTuple):
    """A part of a statement that is true or false and never null, and its parameters."""

    text: sql.Composable
    parameters: list[Any]


def clause_of(condition: Condition | None) -> Clause:
    """What stands behind WHERE."""
    if condition is None:
        return Clause(sql.SQL("TRUE"), [])
    if isinstance(condition, FieldComparison):
        return _compared(condition)
    if isinstance(condition, Contains):
        return _contains(condition)
    if isinstance(condition, Not):
        inner = clause_of(condition.part)
        return Clause(sql.SQL("(NOT {})").format(inner.text), inner.parameters)
    return _joined(condition)


def _joined(condition: All | Some) -> Clause:
    parts = [clause_of(part) for part in condition.parts]
    word: LiteralString = " AND " if isinstance(condition, All) else " OR "
    text = sql.SQL("({})").format(sql.SQL(word).join(part.text for part in parts))
    return Clause(text, [value for part in parts for value in part.parameters])


def _compared(part: FieldComparison) -> Clause:
    own = kind(part.value)
    typed, taken = _VALUES[own]
    text = sql.SQL("(CASE WHEN jsonb_typeof(metadata -> %s) = {} THEN {} {} {} ELSE FALSE END)").format(
        sql.SQL(typed), sql.SQL(taken), sql.SQL(_SIGNS[part.sign]), sql.SQL(_PLACES[own])
    )
    name = _text(part.name)
    return Clause(text, [name, name, _parameter(part.value)])


def _contains(part: Contains) -> Clause:
    """Of a list, whether an element is of the same kind and equal; of a text, whether another one is inside."""
    own, name, value = kind(part.value), _text(part.name), _parameter(part.value)
    listed = sql.SQL(
        "WHEN jsonb_typeof(metadata -> %s) = 'array' THEN EXISTS (SELECT 1 FROM jsonb_array_elements(metadata -> %s) e"
        " WHERE CASE WHEN jsonb_typeof(e) = {} THEN {} = {} ELSE FALSE END)"
    ).format(sql.SQL(_VALUES[own][0]), sql.SQL(_ELEMENTS[own]), sql.SQL(_PLACES[own]))
    if own != "text":
        return Clause(sql.SQL("(CASE {} ELSE FALSE END)").format(listed), [name, name, value])
    inside = sql.SQL(
        "WHEN jsonb_typeof(metadata -> %s) = 'string' THEN strpos((metadata ->> %s) COLLATE \"C\", %s::text) > 0"
    )
    text = sql.SQL("(CASE {} {} ELSE FALSE END)").format(listed, inside)
    return Clause(text, [name, name, value, name, name, value])


def _parameter(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    return value if isinstance(value, bool) else exact_decimal(value)


def exact_decimal(value: float) -> Decimal:
    """A number as jsonb keeps it, so that two are equal or in order exactly when Python says so.

    A double of 2^53 or more is the whole number that it is, and not its shortest decimals.
    """
    if isinstance(value, float) and abs(value) < EXACT_DOUBLES:
        return Decimal(repr(value))
    return Decimal(value)


def _text(value: str) -> str:
    if not is_text(value):
        raise untranslatable(f"{value[:60]!r}, no valid text", "PostgreSQL")
    return value


_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)  # flags, length of an extension
_END = struct.pack(">h", -1)
_FIELDS = struct.pack(">h", 3)
_JSONB_VERSION = b"\x01"
_ROWS_PER_BLOCK = 1024


def copy_blocks(ids: Sequence[Any], vectors: Floats, metadata: Sequence[Fields]) -> Iterator[bytes]:
    """The bytes to send, some rows at a time. ids: all texts or all whole numbers."""
    yield _SIGNATURE
    head = struct.pack(">hh", vectors.shape[1], 0)
    for rows in row_blocks(len(ids), _ROWS_PER_BLOCK):
        numbers = vectors[rows].astype(">f4")
        yield b"".join(
            _FIELDS + _sized(_id_bytes(id_)) + _sized(head + vector.tobytes()) + _sized(_jsonb(fields))
            for id_, vector, fields in zip(ids[rows], numbers, metadata[rows], strict=True)
        )
    yield _END


def vector_from(sent: bytes) -> Floats:
    """A vector as the server sends it."""
    return np.frombuffer(sent, dtype=">f4", offset=4).astype(np.float32)


def vector_text(vector: Floats) -> str:
    """A vector as a parameter; every float32 comes back as it was."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def _sized(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def _id_bytes(id_: str | int) -> bytes:
    return id_.encode() if isinstance(id_, str) else struct.pack(">q", id_)


def _jsonb(fields: Fields) -> bytes:
    exact = {name: _exact(value) for name, value in fields.items()}
    return _JSONB_VERSION + json.dumps(exact, ensure_ascii=False).encode()


def _exact(value: Any) -> Any:
    """Large doubles as the whole numbers that they are: jsonb would take their shortest decimals for the number."""
    if isinstance(value, list):
        return [_exact(one) for one in value]
    return int(value) if isinstance(value, float) and abs(value) >= EXACT_DOUBLES else value


_OLDEST = (0, 8)  # the first that goes on scanning its index until a filter is satisfied
_WIDEST_INDEX = 2_000
_WIDEST_HALF_INDEX = 4_000  # of half-precision numbers
_QUERIES_AT_ONCE = 64
# For each result of an index of half-precision numbers, as many candidates are compared in full.
_RERANKED = 4
_OPERATORS = {"cosine": ("<=>", "cosine_ops"), "euclidean": ("<->", "l2_ops")}
_AGAIN = "see that it runs and can be reached, then repeat the same: nothing was lost"


class PostgresDatabase(Database):
    """A connection; opened again where the server had closed it."""

    product, widest = "pgvector", 16_000

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._connection: psycopg.Connection[Any] | None = None
        try:
            with self.session() as connection:
                self._prepare(connection)
        except StoreError:
            self.close()
            raise

    def _create(self, name: str, shape: Shape, is_there: bool) -> PostgresStore:
        table = sql.Identifier(check_name(name, LONGEST_TABLE))
        # A btree takes no id of more than 2,700 bytes; a hash does, and compares whole ids.
        texts = shape.ids == "text"
        key = sql.SQL('text COLLATE "C" NOT NULL, EXCLUDE USING hash (id WITH =)' if texts else "bigint PRIMARY KEY")
        with self.session() as connection:
            if is_there:
                connection.execute(sql.SQL("DROP TABLE {}").format(table))
            connection.execute(
                sql.SQL("CREATE TABLE {} (id {}, vector vector({}) NOT NULL, metadata jsonb NOT NULL)").format(
                    table, key, sql.Literal(shape.width)
                )
            )
            # Vectors that are wide would be compressed, which costs much and gains nothing.
            connection.execute(sql.SQL("ALTER TABLE {} ALTER vector SET STORAGE EXTERNAL").format(table))
            connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, sql.Literal(mark_of(name))))
        return PostgresStore(self, name, shape)

    def open(self, name: str, metric: Metric) -> PostgresStore | None:
        """The table of this name, None where there is none; one that manifind did not make is refused."""
        with self.session() as connection:
            relation = connection.execute(
                "SELECT oid, relkind::text, obj_description(oid, 'pg_class'),"
                " EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = oid) FROM pg_class"
                " WHERE oid = to_regclass(quote_ident(%s))",
                [check_name(name, LONGEST_TABLE)],
            ).fetchone()
            if relation is None:
                return None
            oid, kind, mark, has_heirs = relation
            if kind != "r" or mark != mark_of(name):
                raise not_ours(f"table {name}", self.address)
            if has_heirs:  # whose rows would be deleted with ours
                raise changed(f"table {name}", self.address, "other tables inherit from it")
            columns = connection.execute(
                "SELECT attname, format_type(atttypid, NULL), atttypmod FROM pg_attribute"
                " WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                [oid],
            ).fetchall()
        found = [(column, kind) for column, kind, _ in columns]
        kinds: dict[str, IdKind] = {"text": "text", "bigint": "number"}
        ids = kinds.get(found[0][1]) if found else None
        if ids is None or found != [("id", found[0][1]), ("vector", "vector"), ("metadata", "jsonb")]:
            raise changed(f"table {name}", self.address)
        return PostgresStore(self, name, Shape(columns[1][2], metric, ids))

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is done inside is one transaction."""
        with self.session():
            yield

    @contextmanager
    def session(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction, inside another one a part of it; errors of the driver become ours, without secrets."""
        try:
            if self._connection is None or self._connection.closed:
                self._connection = self._connect()
            with self._connection.transaction():
                yield self._connection
        except psycopg.OperationalError as error:
            raise StoreError(
                f"the PostgreSQL database {self.address} cannot be reached: {self.address.scrubbed(error)}", _AGAIN
            ) from None
        except psycopg.errors.DuplicateTable as error:
            raise StoreError(
                f"the PostgreSQL database {self.address} refused: {self.address.scrubbed(error)}",
                "choose another name, or drop what is there under this one",
            ) from None
        except psycopg.Error as error:
            raise StoreError(
                f"the PostgreSQL database {self.address} refused: {self.address.scrubbed(error)}",
                "see that this user may create and change tables there",
            ) from None

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()

    def _connect(self) -> psycopg.Connection[Any]:
        usual = {"connect_timeout": "10", "application_name": "manifind"}
        parameters = {**usual, **self.address.parameters, "client_encoding": "utf8"}
        try:
            return psycopg.connect(make_conninfo(**parameters), autocommit=True)
        except (OSError, ValueError) as error:  # of the name of a host
            raise psycopg.OperationalError(self.address.scrubbed(error)) from None

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        """See that pgvector is there, and new enough."""
        query = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        row = connection.execute(query).fetchone()
        if row is None:
            connection.execute("CREATE EXTENSION vector")
            row = connection.execute(query).fetchone()
        version = str(row[0]) if row else "none"
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        if numbers < _OLDEST:
            raise StoreError(
                f"{self.address} has pgvector {version}; expected 0.8 or newer, before which filters lose results",
                "ask whoever runs it to update the extension: ALTER EXTENSION vector UPDATE",
            )


class PostgresStore(Store):
    """One table: id, vector, metadata."""

    def __init__(self, database: PostgresDatabase, name: str, shape: Shape) -> None:
        super().__init__(database.address, name, shape)
        self._database, self._table, self._index = database, sql.Identifier(name), f"{name}_vector"
        self._operator = sql.SQL(_OPERATORS[shape.metric][0])
        self._id_type = sql.SQL("text" if shape.ids == "text" else "bigint")

    def _upsert(self, names: list[Any], rows: Floats, fields: list[Fields]) -> None:
        """In one transaction; equal rows stay as they are."""
        # By its whole name: the search path of a server may put a table of somebody else before temporary ones.
        with self._database.session() as connection:
            connection.execute(
                sql.SQL("CREATE TEMPORARY TABLE pg_temp.arriving ON COMMIT DROP AS TABLE {} WITH NO DATA").format(
                    self._table
                )
            )
            with connection.cursor().copy("COPY pg_temp.arriving FROM STDIN (FORMAT BINARY)") as copy:
                for block in copy_blocks(names, rows, fields):
                    copy.write(block)
            for statement in (
                "UPDATE {table} t SET vector = a.vector, metadata = a.metadata FROM pg_temp.arriving a"
                " WHERE t.id = a.id AND (t.vector <> a.vector OR t.metadata <> a.metadata)",
                "INSERT INTO {table} SELECT * FROM pg_temp.arriving a"
                " WHERE NOT EXISTS (SELECT 1 FROM {table} t WHERE t.id = a.id)",
                "DROP TABLE pg_temp.arriving",
            ):
                connection.execute(sql.SQL(statement).format(table=self._table))

    def _delete(self, names: list[Any]) -> None:
        with self._database.session() as connection:
            statement = sql.SQL("DELETE FROM {} WHERE id = ANY(%s::{}[])").format(self._table, self._id_type)
            connection.execute(statement, [names])

    def _count(self, condition: Condition | None) -> int:
        clause = clause_of(condition)
        with self._database.session() as connection:
            statement = sql.SQL("SELECT count(*) FROM {} WHERE {}").format(self._table, clause.text)
            row = connection.execute(statement, clause.parameters).fetchone()
        return int(row[0]) if row else 0

    def ids(self) -> list[Any]:
        """Of all rows."""
        with self._database.session() as connection:
            return [row[0] for row in connection.execute(sql.SQL("SELECT id FROM {}").format(self._table))]

    def _fetch(self, names: list[Any]) -> dict[Any, tuple[Any, Fields]]:
        statement = sql.SQL("SELECT id, vector, metadata FROM {} WHERE id = ANY(%s::{}[])")
        with self._database.session() as connection, connection.cursor(binary=True) as cursor:
            cursor.execute(statement.format(self._table, self._id_type), [names])
            return {id_: (vector_from(vector), fields) for id_, vector, fields in cursor}

    def _search(self, queries: Floats, k: int, condition: Condition | None) -> list[list[tuple[Any, float]]]:
        clause = clause_of(condition)
        found: list[list[tuple[Any, float]]] = []
        with self._database.session() as connection:
            index = self._index_type(connection)
            if index is not None:
                self._look_everywhere(connection, k * (_RERANKED if index == "halfvec" else 1))
                found = self._ask_all(connection, queries, k, clause, index)
            if index is None or any(len(row) < k for row in found):  # there are no more, or an index lost some
                connection.execute("SELECT set_config('enable_indexscan', 'off', TRUE)")
                found = self._ask_all(connection, queries, k, clause, None)
        return found

    def build_index(self, kind: IndexKind) -> str:
        """HNSW where it is wanted; built once the rows are there, which takes a fraction of what growing it does."""
        wanted = check_index(kind, self.count())
        wide = self.shape.width > _WIDEST_HALF_INDEX
        if wanted and wide and kind == "hnsw":
            raise InputError(
                f"the vectors are {self.shape.width} wide, and pgvector's HNSW takes at most {_WIDEST_HALF_INDEX}",
                "fit with fewer n_components, or leave the index at 'auto', which searches such vectors exactly",
            )
        with self._database.session() as connection:
            made = self._index_type(connection)
            if wanted and not wide and made is None:
                connection.execute(self._index_statement())
            elif made is not None and not wanted:
                connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(self._index)))
        return "hnsw" if wanted and not wide else "exact"

    def _index_statement(self) -> sql.Composed:
        half = self.shape.width > _WIDEST_INDEX
        kind, operators = "halfvec" if half else "vector", _OPERATORS[self.shape.metric][1]
        return sql.SQL("CREATE INDEX {} ON {} USING hnsw ({} {}) WITH (m = 16, ef_construction = 100)").format(
            sql.Identifier(self._index),
            self._table,
            self._as_half(sql.SQL("vector")) if half else sql.SQL("vector"),
            sql.Identifier(f"{kind}_{operators}"),
        )

    def _as_half(self, value: sql.Composable) -> sql.Composed:
        return sql.SQL("({}::halfvec({}))").format(value, sql.Literal(self.shape.width))

    def _index_type(self, connection: psycopg.Connection[Any]) -> str | None:
        """Of the numbers in this table's index, None where it has none; another table may have one of this name."""
        row = connection.execute(
            "SELECT format_type(atttypid, NULL) FROM pg_attribute JOIN pg_index ON indexrelid = attrelid"
            " WHERE attrelid = to_regclass(quote_ident(%s)) AND indrelid = to_regclass(quote_ident(%s))",
            [self._index, self.name],
        ).fetchone()
        return str(row[0]) if row else None

    def _look_everywhere(self, connection: psycopg.Connection[Any], k: int) -> None:
        """An index goes on until k rows satisfy the condition, nearest first, however many it has to look at."""
        for name, value in (
            ("hnsw.ef_search", str(min(1000, max(100, 2 * k)))),
            ("hnsw.iterative_scan", "strict_order"),
            ("hnsw.max_scan_tuples", "2147483647"),
            ("hnsw.scan_mem_multiplier", "1000"),
        ):
            connection.execute("SELECT set_config(%s, %s, TRUE)", [name, value])

    def _ask_all(
        self, connection: psycopg.Connection[Any], queries: Floats, k: int, clause: Clause, index: str | None
    ) -> list[list[tuple[Any, float]]]:
        """(id, score) of the best for each query; index: of which numbers, None to compare every row."""
        blocks = row_blocks(len(queries), _QUERIES_AT_ONCE)
        return [row for part in blocks for row in self._ask(connection, queries[part], k, clause, index)]

    def _ask(
        self, connection: psycopg.Connection[Any], queries: Floats, k: int, clause: Clause, index: str | None
    ) -> list[list[tuple[Any, float]]]:
        texts = [vector_text(query) for query in queries]
        half, query = index == "halfvec", sql.SQL("q.v")
        candidates = sql.SQL("SELECT id, vector FROM {} WHERE {} ORDER BY {} {} {}{} LIMIT %s").format(
            self._table,
            clause.text,
            self._as_half(sql.SQL("vector")) if half else sql.SQL("vector"),
            self._operator,
            self._as_half(query) if half else query,
            sql.SQL(", id" if index is None else ""),  # an index knows nearest first, and no ids
        )
        statement = sql.SQL(
            "WITH q AS MATERIALIZED (SELECT t::vector AS v, n FROM unnest(%s::text[]) WITH ORDINALITY u(t, n))"
            " SELECT q.n, r.id, r.distance FROM q CROSS JOIN LATERAL"
            " (SELECT id, vector {} {} AS distance FROM ({}) c ORDER BY distance, id LIMIT %s) r"
        ).format(self._operator, query, candidates)
        limit = k * (_RERANKED if half else 1)
        found: list[list[tuple[Any, float]]] = [[] for _ in texts]
        cursor = connection.execute(statement, [texts, *clause.parameters, limit, k])
        for number, id_, distance in cursor:
            score = 1 - distance if self.shape.metric == "cosine" else -distance
            found[number - 1].append((id_, score))
        return found
