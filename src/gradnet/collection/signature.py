"""The manifest, and the digest in it that all tables fit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import Any

from gradnet.collection.database import DAMAGED
from gradnet.collection.layout import RowSum, tables_digest
from gradnet.errors import CollectionError


def sign(database: sqlite3.Connection, rows: RowSum, entries: dict[str, Any]) -> None:
    """Put entries into the manifest, and the digest of all tables beside them. rows: items and additions."""
    changed = {**entries, "rows": str(rows)}
    database.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?)", _as_json(changed))
    digest = tables_digest(
        database.execute("SELECT key, value FROM manifest"),
        database.execute("SELECT role, name, size, sha256 FROM segments"),
        rows,
    )
    database.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?)", _as_json({"digest": digest}))


def check_digest(file: Path, entries: Iterable[Any], segments: Iterable[Any], rows: RowSum) -> None:
    """Compare everything in the tables with the digest that was recorded. entries: (key, value) of the manifest."""
    entries = list(entries)
    try:
        said, digest = dict(entries), tables_digest(entries, segments, rows)
    except TypeError as error:
        raise CollectionError(f"{file} is damaged: {error}", DAMAGED) from error
    if said.get("digest") != f'"{digest}"' or said.get("rows") != f'"{rows}"':
        raise CollectionError(
            f"{file} is damaged: its tables differ from the digest that was recorded", DAMAGED
        )


def signed_rows(database: sqlite3.Connection, file: Path, rows: RowSum | None = None) -> RowSum:
    """The sum of items and additions, once all tables fit their digest. rows: the sum; None takes it as recorded."""
    found = RowSum(entry(database, "rows")) if rows is None else rows
    check_digest(
        file,
        database.execute("SELECT key, value FROM manifest"),
        database.execute("SELECT role, name, size, sha256 FROM segments"),
        found,
    )
    return found


def entry(database: sqlite3.Connection, key: str) -> Any:
    """One value of the manifest, None where there is none."""
    found = database.execute("SELECT value FROM manifest WHERE key = ?", (key,)).fetchone()
    return None if found is None else json.loads(found[0])


def _as_json(entries: dict[str, Any]) -> Iterable[tuple[str, str]]:
    return [(key, json.dumps(value, default=_plain_number)) for key, value in entries.items()]


def _plain_number(value: Any) -> int | float:
    """Settings may be numbers of any make, such as numpy's."""
    return int(value) if isinstance(value, Integral) else float(value)
