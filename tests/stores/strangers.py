"""Tables and collections made without manifind, with exactly the columns that it would give them."""

from __future__ import annotations

import numpy as np

from stores.servers import PostgresServer

ROLES = ("features", "descriptors", "node_features", "model")


def make_stranger(server, name, width, has_texts=False, description=None):
    """A table with two rows, under ids that manifind's own table of this name might have."""
    ids = ["cat 00", "mine"] if has_texts else [0, 12345]
    rows = [(id_, [float(i + 1)] * width, {"said": "precious", "n": i}) for i, id_ in enumerate(ids)]
    make = _make_in_postgres if isinstance(server, PostgresServer) else _make_in_milvus
    make(server.address, name, width, rows, description)


def everything(server, prefix):
    """All that a database holds under names with a prefix: what each table is, and its rows."""
    return (_in_postgres if isinstance(server, PostgresServer) else _in_milvus)(server.address, prefix)


def _make_in_postgres(address, name, width, rows, description):
    import json

    import psycopg

    key = (
        'text COLLATE "C" NOT NULL, EXCLUDE USING hash (id WITH =)'
        if isinstance(rows[0][0], str)
        else "bigint PRIMARY KEY"
    )
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(f"CREATE TABLE {name} (id {key}, vector vector({width}) NOT NULL, metadata jsonb NOT NULL)")
        if description is not None:
            connection.execute(f"COMMENT ON TABLE {name} IS '{description}'")
        for id_, vector, fields in rows:
            connection.execute(
                f"INSERT INTO {name} VALUES (%s, %s::text::vector, %s)", [id_, str(vector), json.dumps(fields)]
            )


def _in_postgres(address, prefix):
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        relations = connection.execute(
            "SELECT oid::regclass::text, oid, relkind::text, relfilenode, obj_description(oid, 'pg_class')"
            " FROM pg_class WHERE starts_with(relname, %s) AND relkind <> 't' ORDER BY 2",
            [prefix],
        ).fetchall()
        rows = {
            name: connection.execute(f"SELECT ctid::text, xmin::text, t::text FROM {name} t").fetchall()
            for name, _, kind, *_ in relations
            if kind in "rm"
        }
    return relations, rows


def _make_in_milvus(address, name, width, rows, description):
    from pymilvus import DataType, MilvusClient

    client = MilvusClient(address)
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False, description=description or "")
    if isinstance(rows[0][0], str):
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=16_384)
    else:
        schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=width)
    schema.add_field("metadata", DataType.JSON)
    index = MilvusClient.prepare_index_params()
    index.add_index(field_name="vector", metric_type="COSINE", index_type="FLAT")
    properties = {"description": description} if description else {}
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong", properties=properties)
    client.insert(name, [{"id": id_, "vector": vector, "metadata": metadata_of} for id_, vector, metadata_of in rows])
    client.close()


def _in_milvus(address, prefix):
    from pymilvus import MilvusClient

    client = MilvusClient(address)
    found = {}
    for name in sorted(client.list_collections()):
        if name.startswith(prefix):
            client.load_collection(name)
            rows = client.query(name, filter="", limit=1000, output_fields=["*"])
            kept = sorted((str(row["id"]), np.array(row["vector"]).tobytes(), str(row["metadata"])) for row in rows)
            found[name] = (str(client.describe_collection(name)), client.list_indexes(name), kept)
    client.close()
    return found
