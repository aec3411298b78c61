"""From an address to an open database; drivers are imported when one is asked for."""

from __future__ import annotations

from collections.abc import Callable

from gradnet.errors import MissingExtraError
from gradnet.stores.address import Address
from gradnet.stores.store import Database


def connect(address: Address) -> Database:
    """The database at an address."""
    return _database_class(address)(address)


def _database_class(address: Address) -> Callable[[Address], Database]:
    try:
        if address.kind == "postgres":
            from gradnet.stores.postgres import PostgresDatabase

            return PostgresDatabase
        from gradnet.stores.milvus import MilvusDatabase

        return MilvusDatabase
    except ImportError as error:
        raise MissingExtraError(
            f"the database {address} needs {error.name}, which is not installed",
            f'pip install "gradnet[{address.kind}]"',
        ) from error
