"""What is PostgreSQL's own: one transaction, indexes by width, versions of pgvector, rights."""

import numpy as np
import psycopg
import pytest
from psycopg import sql

from manifind.errors import InputError, StoreError
from manifind.graph.preprocess import unit_rows
from manifind.index.exact import nearest
from manifind.stores.address import parse_address
from manifind.stores.postgres import PostgresDatabase
from manifind.stores.store import Shape
from stores.servers import PASSWORD, QUOTED, PostgresServer
from stores.strangers import everything, make_stranger


@pytest.fixture(scope="module")
def database(postgres):
    opened = PostgresDatabase(parse_address(postgres.address))
    yield opened
    opened.close()


def random_unit(n, width, seed=0):
    return unit_rows(np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32))


def filled(database, name, width, metric="cosine", n=300):
    store = database.create(name, Shape(width, metric, "number"))
    store.upsert(range(n), random_unit(n, width), [{"n": i} for i in range(n)])
    return store


def plan(database, store):
    """How the server would search, as it says itself."""
    with database.session() as connection, pytest.MonkeyPatch.context() as patch:
        connection.execute("SET LOCAL enable_seqscan = off")
        execute, seen = connection.execute, []

        def explaining(statement, parameters=None):
            if not isinstance(statement, str) and "LATERAL" in statement.as_string(connection):
                seen.extend(execute(sql.SQL("EXPLAIN {}").format(statement), parameters).fetchall())
            return execute(statement, parameters)

        patch.setattr(connection, "execute", explaining)
        store.search(random_unit(1, store.shape.width, 5), 5, "n >= 0")
    return "\n".join(row[0] for row in seen)


@pytest.mark.parametrize(("width", "kind"), [(2000, "vector"), (2001, "halfvec"), (4000, "halfvec")])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_wide_vectors_are_indexed_in_half_precision_and_compared_in_full(database, name, width, kind, metric):
    store = filled(database, name, width, metric)
    assert store.build_index("hnsw") == "hnsw"
    with database.session() as connection:
        assert store._index_type(connection) == kind
    assert f"Index Scan using {name}_vector" in plan(database, store)
    queries, rows = random_unit(5, width, 1), random_unit(300, width)
    found, exact = store.search(queries, 10), nearest(queries, rows, 10, metric)
    np.testing.assert_allclose(found.scores, exact.scores, atol=2e-6)
    assert found.ids.tolist() == exact.ids.tolist()
    assert store.search(queries, 10, "n < 4").ids.shape == (5, 4)


def test_vectors_too_wide_for_any_index_are_searched_exactly(database, name):
    store = filled(database, name, 4001, n=30)
    with pytest.raises(InputError, match="4001 wide, and pgvector's HNSW takes at most 4000") as refused:
        store.build_index("hnsw")
    assert "n_components" in refused.value.hint
    assert store.build_index("auto") == "exact"
    rows = random_unit(30, 4001)
    assert store.search(rows, 1).ids[:, 0].tolist() == list(range(30))


def test_an_index_that_lost_rows_is_not_believed(database, name, monkeypatch):
    store = filled(database, name, 8)
    store.build_index("hnsw")
    ask = type(store)._ask

    def losing(self, connection, queries, k, clause, index):
        found = ask(self, connection, queries, k, clause, index)
        return found if index is None else [row[:2] for row in found]

    monkeypatch.setattr(type(store), "_ask", losing)
    assert store.search(random_unit(2, 8, 3), 10).ids.shape == (2, 10)


def test_what_is_done_together_is_done_at_once_or_not_at_all(database, postgres, name):
    store = filled(database, name, 8)
    other = PostgresDatabase(parse_address(postgres.address))
    seen = other.open(name, "cosine")

    def fail_halfway():
        with database.together():
            store.delete(range(100))
            store.upsert([1000], random_unit(1, 8))
            assert store.count() == 201
            assert seen.count() == 300
            raise KeyError

    with pytest.raises(KeyError):
        fail_halfway()
    assert store.count() == seen.count() == 300
    other.close()


def test_rows_that_are_the_same_are_not_written_again(database, name):
    store = filled(database, name, 8)

    def written():
        statement = sql.SQL("SELECT id, xmin::text FROM {}").format(sql.Identifier(name))
        with database.session() as connection:
            return dict(connection.execute(statement).fetchall())

    before = written()
    store.upsert(range(300), random_unit(300, 8), [{"n": i if i != 7 else 70} for i in range(300)])
    assert [id_ for id_, version in written().items() if version != before[id_]] == [7]


def test_an_old_pgvector_is_refused_with_the_way_out(postgres, database):
    with database.session() as connection:
        connection.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    try:
        with pytest.raises(StoreError, match=r"has pgvector 0\.7\.4; expected 0\.8") as refused:
            PostgresDatabase(parse_address(postgres.address))  # and leaves no connection behind
        assert "ALTER EXTENSION vector UPDATE" in refused.value.hint
    finally:
        with database.session() as connection:
            connection.execute("UPDATE pg_extension SET extversion = '0.8.5' WHERE extname = 'vector'")


def test_who_may_not_create_tables_is_told_so(postgres, database, name):
    with database.session() as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'guest-s3cret'")
    guest = PostgresDatabase(parse_address(postgres.address.replace(f"postgres:{QUOTED}", f"{name}:guest-s3cret")))
    with pytest.raises(StoreError, match="permission denied") as refused:
        guest.create(name, Shape(3, "cosine", "number"))
    assert "may create and change tables" in refused.value.hint
    assert "guest-s3cret" not in str(refused.value)
    guest.close()


def test_a_database_without_the_extension_gets_it(postgres, database, name):
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    address = parse_address(postgres.address.replace("/postgres?", f"/{name}?"))
    fresh = PostgresDatabase(address)
    assert fresh.create("first", Shape(3, "cosine", "text")).count() == 0
    fresh.close()


def test_a_secret_in_the_words_of_the_server_is_not_repeated(database):
    with pytest.raises(StoreError) as failed, database.session() as connection:
        connection.execute("SELECT %s::int", [PASSWORD])
    assert "s3cret" not in str(failed.value)
    assert "***" in str(failed.value)


@pytest.mark.parametrize("kind", ["VIEW {} AS", "MATERIALIZED VIEW {} AS", "TABLE {} AS", "UNLOGGED TABLE {} AS"])
def test_whatever_else_has_the_name_and_the_columns_is_left_as_it_is(postgres, database, name, kind):
    filled(database, f"{name}_source", 8)
    with database.session() as connection:
        connection.execute(f"CREATE {kind.format(name)} SELECT id, vector, metadata FROM {name}_source")
    before = everything(postgres, name)
    for shape in (Shape(8, "cosine", "number"), Shape(3, "cosine", "text")):
        with pytest.raises(StoreError, match=f"{name} in .* was not made by manifind"):
            database.create(name, shape)
    assert everything(postgres, name) == before


def test_a_copy_of_a_published_table_under_another_name_is_left_as_it_is(postgres, database, name):
    filled(database, name, 8)
    with database.session() as connection:
        connection.execute(f"CREATE TABLE {name}_copy (LIKE {name} INCLUDING ALL)")
        connection.execute(f"INSERT INTO {name}_copy SELECT * FROM {name}")
        (mark,) = connection.execute("SELECT obj_description(%s::regclass)", [name]).fetchone()
        connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(sql.Identifier(f"{name}_copy"), mark))
    before = everything(postgres, name)
    with pytest.raises(StoreError, match="was not made by manifind"):
        database.create(f"{name}_copy", Shape(3, "cosine", "number"))
    assert everything(postgres, name) == before


def test_a_published_table_with_another_column_is_left_as_it_is(database, name):
    filled(database, name, 8)
    with database.session() as connection:
        connection.execute(f"ALTER TABLE {name} ADD mine text")
    with pytest.raises(StoreError, match="its columns have been changed since") as refused:
        database.create(name, Shape(8, "cosine", "number"))
    assert "drop it and publish again" in refused.value.hint


def test_rows_of_a_table_that_inherits_from_a_published_one_are_left_as_they_are(postgres, database, name):
    filled(database, name, 8)
    with database.session() as connection:
        connection.execute(f"CREATE TABLE {name}_heir () INHERITS ({name})")
        connection.execute(f"INSERT INTO {name}_heir SELECT id + 1000, vector, metadata FROM {name}")
    before = everything(postgres, name)
    with pytest.raises(StoreError, match="other tables inherit from it"):
        database.create(name, Shape(8, "cosine", "number"))
    assert everything(postgres, name) == before


def test_a_table_that_cannot_be_marked_is_not_made(database, name, monkeypatch):
    monkeypatch.setattr("manifind.stores.store.mark_of", lambda name: object())  # no value that PostgreSQL takes
    with pytest.raises(StoreError, match="refused"):
        database.create(name, Shape(8, "cosine", "number"))
    monkeypatch.undo()
    assert database.open(name, "cosine") is None


def test_an_index_of_another_table_under_the_name_of_ours_is_left_as_it_is(postgres, database, name):
    store = filled(database, name, 8)
    with database.session() as connection:
        connection.execute(f"CREATE TABLE {name}_other (n int)")
        connection.execute(f"CREATE INDEX {name}_vector ON {name}_other (n)")
    before = everything(postgres, name)
    assert store.build_index("exact") == "exact"
    with pytest.raises(StoreError, match=f"{name}_vector.* already exists") as refused:
        store.build_index("hnsw")
    assert "choose another name" in refused.value.hint
    assert store.search(random_unit(2, 8), 3).ids[:, 0].tolist() == [0, 1]
    assert everything(postgres, name) == before


def test_a_table_in_a_schema_that_is_searched_first_is_left_as_it_is(postgres, database, name):
    filled(database, name, 8)
    with database.session() as connection:
        connection.execute(f"CREATE SCHEMA {name}_first")
    path = f"{postgres.address}&options=-csearch_path%3D{name}_first,public,pg_temp"
    make_stranger(PlainAddress(path), name, 8)
    make_stranger(PlainAddress(path), "arriving", 8)
    before = everything(postgres, name), everything(postgres, "arriving")
    other = PostgresDatabase(parse_address(path))
    with pytest.raises(StoreError, match="was not made by manifind"):
        other.create(name, Shape(3, "cosine", "number"))
    filled(other, f"{name}_own", 8).delete([3])
    assert everything(postgres, "arriving") == before[1]
    assert everything(postgres, name)[0][: len(before[0][0])] == before[0][0]
    other.close()


class PlainAddress(PostgresServer):
    """The same server under another address."""

    address = None

    def __init__(self, address):
        self.address = address
