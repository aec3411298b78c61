"""PostgreSQL with pgvector as a store: COPY, one transaction, exact or HNSW search, filters as SQL."""

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, LiteralString, TypeAlias

import numpy as np
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from manifind.arrays import Floats, row_blocks
from manifind.collection.filters import Condition, Contains, FieldComparison, kind
from manifind.collection.metadata import Fields
from manifind.errors import StoreError
from manifind.stores.address import Address
from manifind.stores.store import CHANGED, Database, Hits, IdKind, Inspected, Shape, Store, checked_text, translated

Connection: TypeAlias = psycopg.Connection[Any]
Clause: TypeAlias = tuple[sql.SQL, list[Any]]
"""A part of a statement that is true or false and never null, and its parameters."""

_OLDEST = (0, 8)  # the first that goes on scanning its index until a filter is satisfied
_WIDEST_INDEX = 2_000
_QUERIES_AT_ONCE = 64
_EXACT_DOUBLES = 1 << 53  # below it every whole number is a double; from it on every double is a whole number
_ID_TYPES: dict[IdKind, str] = {"text": "text", "number": "bigint"}
_OPERATORS = {"cosine": ("<=>", "cosine_ops"), "euclidean": ("<->", "l2_ops")}
# By the kind of a value: what jsonb calls it, and its type. Texts by code point, whatever the server's locale.
_TYPES = {"number": ("number", "numeric"), "text": ("string", 'text COLLATE "C"'), "truth": ("boolean", "boolean")}
_REACH = "see that it runs and can be reached, then repeat the same: nothing was lost"
_TAKEN = "choose another name, or drop what is there under this one"
_RIGHTS = "see that this user may create and change tables there"


def clause_of(condition: Condition | None) -> Clause:
    """What stands behind WHERE."""
    parameters: list[Any] = []
    text = "TRUE" if condition is None else translated(condition, lambda part: _compared(part, parameters))
    return sql.SQL(text), parameters


def _compared(part: FieldComparison | Contains, parameters: list[Any]) -> str:
    """By CASE, since SQL may evaluate the sides of AND in any order, and a cast of another kind would be an error.

    Of a list, whether an element is of the same kind and equal; of a text, whether another one is inside.
    """
    name, value = checked_text(part.name, "PostgreSQL"), part.value
    value = checked_text(value, "PostgreSQL") if isinstance(value, str) else value
    type_, cast = _TYPES[kind(value)]
    if isinstance(part, FieldComparison):
        cases = {type_: f"(metadata ->> %s)::{cast} {part.sign} %s::{cast}"}
    else:
        equal = f"CASE WHEN jsonb_typeof(e) = '{type_}' THEN (e #>> '{{}}')::{cast} = %s::{cast} ELSE FALSE END"
        cases = {"array": f"EXISTS (SELECT 1 FROM jsonb_array_elements(metadata -> %s) e WHERE {equal})"}  # noqa: S608
        if isinstance(value, str):
            cases["string"] = 'strpos((metadata ->> %s) COLLATE "C", %s::text) > 0'
    parameters += [name, name, value if isinstance(value, str | bool) else exact_decimal(value)] * len(cases)
    tests = " ".join(f"WHEN jsonb_typeof(metadata -> %s) = '{found}' THEN {test}" for found, test in cases.items())
    return f"(CASE {tests} ELSE FALSE END)"


def exact_decimal(value: float) -> Decimal:
    """A number as jsonb keeps it, so that two are equal or in order exactly when Python says so.

    A double of 2^53 or more is the whole number that it is, and not its shortest decimals.
    """
    return Decimal(repr(value) if isinstance(value, float) and abs(value) < _EXACT_DOUBLES else value)


def _exact(value: Any) -> Any:
    """Large doubles as the whole numbers that they are: jsonb would take their shortest decimals for the number."""
    if isinstance(value, dict):
        return {name: _exact(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_exact(one) for one in value]
    return int(value) if isinstance(value, float) and abs(value) >= _EXACT_DOUBLES else value


class PostgresStore(Store):
    """One table: id, vector, metadata."""

    widest_index = 4_000  # of half-precision numbers

    def __init__(self, database: Database, name: str, shape: Shape) -> None:
        super().__init__(database, name, shape)
        self._index, self._id_type = f"{name}_vector", _ID_TYPES[shape.ids]
        self._words: dict[str, sql.Composable] = {
            "table": sql.Identifier(name),
            "index": sql.Identifier(self._index),
            "ids": sql.SQL(f"{self._id_type}[]"),
            "operator": sql.SQL(_OPERATORS[shape.metric][0]),
        }

    def _sql(self, text: LiteralString, **further: sql.Composable) -> sql.Composed:
        return sql.SQL(text).format(**self._words, **further)

    def _upsert(self, names: list[Any], rows: Floats, fields: list[Fields]) -> None:
        """In one transaction; equal rows stay as they are."""
        head, vectors = struct.pack(">hh", self.shape.width, 0), rows.astype(">f4")
        with self._database.session() as connection:
            # By its whole name: the search path of a server may put a table of somebody else before temporary ones.
            arriving = "CREATE TEMPORARY TABLE pg_temp.arriving ON COMMIT DROP AS TABLE {table} WITH NO DATA"
            connection.execute(self._sql(arriving))
            with connection.cursor().copy("COPY pg_temp.arriving FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types([self._id_type, "bytea", "bytea"])  # what follows the ids goes as it is
                for id_, vector, one in zip(names, vectors, fields, strict=True):
                    jsonb = b"\x01" + json.dumps(_exact(one), ensure_ascii=False).encode()  # 1: of its format
                    copy.write_row((id_, head + vector.tobytes(), jsonb))
            for statement in (
                "UPDATE {table} t SET vector = a.vector, metadata = a.metadata FROM pg_temp.arriving a"
                " WHERE t.id = a.id AND (t.vector <> a.vector OR t.metadata <> a.metadata)",
                "INSERT INTO {table} SELECT * FROM pg_temp.arriving a"
                " WHERE NOT EXISTS (SELECT 1 FROM {table} t WHERE t.id = a.id)",
                "DROP TABLE pg_temp.arriving",
            ):
                connection.execute(self._sql(statement))

    def _delete(self, names: list[Any]) -> None:
        with self._database.session() as connection:
            connection.execute(self._sql("DELETE FROM {table} WHERE id = ANY(%s::{ids})"), [names])

    def _count(self, condition: Condition | None) -> int:
        text, parameters = clause_of(condition)
        with self._database.session() as connection:
            statement = self._sql("SELECT count(*) FROM {table} WHERE {clause}", clause=text)
            return int(connection.execute(statement, parameters).fetchone()[0])

    def ids(self) -> list[Any]:
        with self._database.session() as connection:
            return [row[0] for row in connection.execute(self._sql("SELECT id FROM {table}"))]

    def _fetch(self, names: list[Any]) -> dict[Any, tuple[Any, Fields]]:
        statement = self._sql("SELECT id, vector, metadata FROM {table} WHERE id = ANY(%s::{ids})")
        with self._database.session() as connection, connection.cursor(binary=True) as cursor:
            cursor.execute(statement, [names])
            return {id_: (np.frombuffer(sent, ">f4", offset=4), fields) for id_, sent, fields in cursor}

    def _search(self, queries: Floats, k: int, condition: Condition | None) -> Hits:
        clause = clause_of(condition)
        with self._database.session() as connection:
            index = self._index_type(connection)
            found = self._ask(connection, queries, k, clause, index)
            if index is not None and any(len(row) < k for row in found):  # there are no more, or an index lost some
                found = self._ask(connection, queries, k, clause, None)
        return found

    def _build_index(self, n_rows: int | None) -> None:
        """Built once the rows are there, which takes a fraction of what growing it does."""
        numbers = "halfvec" if self.shape.width > _WIDEST_INDEX else "vector"
        with self._database.session() as connection:
            has_index = self._index_type(connection) is not None
            if has_index and n_rows is None:
                connection.execute(self._sql("DROP INDEX {index}"))
            elif not has_index and n_rows is not None:
                statement = self._sql(
                    "CREATE INDEX {index} ON {table} USING hnsw ({vector} {operators})"
                    " WITH (m = 16, ef_construction = 100)",
                    vector=self._as(numbers, "vector"),
                    operators=sql.Identifier(f"{numbers}_{_OPERATORS[self.shape.metric][1]}"),
                )
                connection.execute(statement)

    def _as(self, numbers: str | None, vector: LiteralString) -> sql.SQL:
        """A vector in the numbers that an index has."""
        return sql.SQL(f"({vector}::halfvec({self.shape.width}))" if numbers == "halfvec" else vector)

    def _index_type(self, connection: Connection) -> str | None:
        """Of the numbers in this table's index, None where it has none; another table may have one of this name."""
        row = connection.execute(
            "SELECT format_type(atttypid, NULL) FROM pg_attribute JOIN pg_index ON indexrelid = attrelid"
            " WHERE attrelid = to_regclass(quote_ident(%s)) AND indrelid = to_regclass(quote_ident(%s))",
            [self._index, self.name],
        ).fetchone()
        return str(row[0]) if row else None

    def _ask(self, connection: Connection, queries: Floats, k: int, clause: Clause, index: str | None) -> Hits:
        """For each query; index: of which numbers, None to compare every row."""
        condition, parameters = clause
        limit = 4 * k if index == "halfvec" else k  # of half-precision numbers, several are compared in full
        _set_up_search(connection, limit, index is not None)
        statement = self._sql(
            "WITH q AS MATERIALIZED (SELECT t::vector AS v, n FROM unnest(%s::text[]) WITH ORDINALITY u(t, n))"
            " SELECT q.n, r.id, r.distance FROM q CROSS JOIN LATERAL"
            " (SELECT id, vector {operator} q.v AS distance FROM"
            " (SELECT id, vector FROM {table} WHERE {condition} ORDER BY {vector} {operator} {query}{ties} LIMIT %s) c"
            " ORDER BY distance, id LIMIT %s) r",
            condition=condition,
            vector=self._as(index, "vector"),
            query=self._as(index, "q.v"),
            ties=sql.SQL(", id" if index is None else ""),  # an index knows nearest first, and no ids
        )
        texts = [f"[{','.join(map(repr, query.tolist()))}]" for query in queries]  # every float32 arrives as it is
        found: Hits = [[] for _ in texts]
        for part in row_blocks(len(texts), _QUERIES_AT_ONCE):
            for number, id_, distance in connection.execute(statement, [texts[part], *parameters, limit, k]):
                score = 1 - distance if self.shape.metric == "cosine" else -distance
                found[part.start + number - 1].append((id_, score))
        return found


def _set_up_search(connection: Connection, k: int, by_index: bool) -> None:
    """An index goes on until k rows satisfy the condition, nearest first, however many it has to look at."""
    hnsw = {"ef_search": min(1000, max(100, 2 * k)), "iterative_scan": "strict_order"}
    hnsw |= {"max_scan_tuples": 2147483647, "scan_mem_multiplier": 1000}
    settings = {f"hnsw.{name}": value for name, value in hnsw.items()} if by_index else {"enable_indexscan": "off"}
    for name, value in settings.items():
        connection.execute("SELECT set_config(%s, %s, TRUE)", [name, str(value)])


class PostgresDatabase(Database):
    """A connection; opened again where the server had closed it."""

    product, widest, store = "pgvector", 16_000, PostgresStore

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._connection: Connection | None = None
        try:
            with self.session() as connection:
                self._prepare(connection)
        except StoreError:
            self.close()
            raise

    def _create(self, name: str, shape: Shape, mark: str, is_there: bool) -> None:
        # A btree takes no id of more than 2,700 bytes; a hash does, and compares whole ids.
        texts = shape.ids == "text"
        key = 'text COLLATE "C" NOT NULL, EXCLUDE USING hash (id WITH =)' if texts else "bigint PRIMARY KEY"
        statements = (
            "DROP TABLE {table}" if is_there else "",
            f"CREATE TABLE {{table}} (id {key}, vector vector({shape.width}) NOT NULL, metadata jsonb NOT NULL)",
            # Vectors that are wide would be compressed, which costs much and gains nothing.
            "ALTER TABLE {table} ALTER vector SET STORAGE EXTERNAL",
            "COMMENT ON TABLE {table} IS {mark}",
        )
        with self.session() as connection:
            for text in filter(None, statements):
                connection.execute(sql.SQL(text).format(table=sql.Identifier(name), mark=sql.Literal(mark)))

    def _inspect(self, name: str) -> Inspected:
        with self.session() as connection:
            relation = connection.execute(
                "SELECT relkind::text, obj_description(oid, 'pg_class'),"
                " EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = oid),"
                " ARRAY(SELECT attname || ' ' || format_type(atttypid, NULL) FROM pg_attribute"
                " WHERE attrelid = oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum),"
                " (SELECT atttypmod FROM pg_attribute WHERE attrelid = oid AND attname = 'vector')"
                " FROM pg_class WHERE oid = to_regclass(quote_ident(%s))",
                [name],
            ).fetchone()
        if relation is None:
            return None
        kind, mark, has_heirs, columns, width = relation
        marks = [mark] if kind == "r" else []
        if has_heirs:  # whose rows would be deleted with ours
            return marks, "other tables inherit from it"
        for ids, type_ in _ID_TYPES.items():
            if columns == [f"id {type_}", "vector vector", "metadata jsonb"]:
                return marks, (width, ids)
        return marks, CHANGED

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A transaction, inside another one a part of it; errors of the driver become ours, without secrets."""
        try:
            if self._connection is None or self._connection.closed:
                self._connection = self._connect()
            with self._connection.transaction():
                yield self._connection
        except psycopg.Error as error:
            is_away = isinstance(error, psycopg.OperationalError)
            is_taken = isinstance(error, psycopg.errors.DuplicateTable)
            problem = f"{'cannot be reached' if is_away else 'refused'}: {self.address.scrubbed(error)}"
            hint = _REACH if is_away else _TAKEN if is_taken else _RIGHTS
            raise StoreError(f"the PostgreSQL database {self.address} {problem}", hint) from None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _connect(self) -> Connection:
        usual = {"connect_timeout": "10", "application_name": "manifind"}
        parameters = {**usual, **self.address.parameters, "client_encoding": "utf8"}
        try:
            return psycopg.connect(make_conninfo(**parameters), autocommit=True)
        except (OSError, ValueError) as error:  # of the name of a host
            raise psycopg.OperationalError(self.address.scrubbed(error)) from None

    def _prepare(self, connection: Connection) -> None:
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
