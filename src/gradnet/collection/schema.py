"""The tables of a collection: made, and told from whatever else a database may hold."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from gradnet.collection.layout import APPLICATION_ID, SCHEMA
from gradnet.errors import CollectionError


def make_tables(database: sqlite3.Connection) -> None:
    """The tables, where they are not there yet."""
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in SCHEMA.split(";"):
        database.execute(statement)


def check_schema(database: sqlite3.Connection, file: Path, only: str | None = None) -> None:
    """Refuse tables that are not as ours, and whatever could run what another wrote: views, triggers, indexes.

    only: one name to look at. A table that is missing is found missing by whoever asks for it.
    """
    for kind, name, sql in sorted(_schema(database) - _own_schema()):
        if only is None or name.lower() == only:  # SQLite does not mind the case of a name
            raise CollectionError(
                f"{file} holds the {kind} {name[:60]!r}, which is none of a collection: {sql[:200]!r}",
                "nothing of it was run; take the collection from somebody whom you trust",
            )


def _schema(database: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """Kind, name and text of everything in a database, with single spaces."""
    rows = database.execute("SELECT type, name, sql FROM sqlite_master")
    return {(str(kind), str(name), " ".join(str(sql or "").split())) for kind, name, sql in rows}


@lru_cache(maxsize=1)
def _own_schema() -> frozenset[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as database:
        make_tables(database)
        return frozenset(_schema(database))
