"""The manifest, and the digest in it that all tables fit."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

from gradnet.collection.database import DAMAGED
from gradnet.collection.last_commit import LAST_COMMIT, LastCommit, usable_last_commit
from gradnet.collection.layout import VERSION, RowSum, tables_digest
from gradnet.collection.strict_json import parse_json
from gradnet.errors import CollectionError, InputError

_T = TypeVar("_T")


def sign(
    database: sqlite3.Connection, directory: Path, rows: RowSum, entries: dict[str, Any]
) -> dict[str, Any]:
    """Put entries into the manifest, with the number of the commit and the digest of all tables beside them.

    rows: items and additions. A collection of version 1 gets here what it lacks. Returns all new entries.
    """
    named = {"collection": _sound_entry(database, "collection", str) or secrets.token_hex(16)}
    numbered = {"format": VERSION, "sequence": _last_sequence(database, directory) + 1}
    changed = {**named, **entries, **numbered, "rows": str(rows)}
    database.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?)", _as_json(changed))
    digest = tables_digest(
        database.execute("SELECT key, value FROM manifest"),
        database.execute("SELECT role, name, size, sha256 FROM segments"),
        rows,
    )
    database.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?)", _as_json({"digest": digest}))
    return {**changed, "digest": digest}


def _last_sequence(database: sqlite3.Connection, directory: Path) -> int:
    """The number of the last commit, also of one that was lost."""
    recorded = usable_last_commit(directory)
    found = _sound_entry(database, "sequence", int) or 0
    return max(found, 0 if recorded is None else recorded.sequence)


def check_digest(
    file: Path, entries: Iterable[Any], segments: Iterable[Any], rows: RowSum, last: LastCommit | None
) -> None:
    """Compare everything in the tables with the digest that was recorded, and with the last commit.

    entries: (key, value) of the manifest. last: as it was recorded before the tables were read; somebody may have
    committed since.
    """
    entries = list(entries)
    try:
        said, digest = dict(entries), tables_digest(entries, segments, rows)
    except TypeError as error:
        raise CollectionError(f"{file} is damaged: {error}", DAMAGED) from error
    if said.get("digest") != f'"{digest}"' or said.get("rows") != f'"{rows}"':
        raise CollectionError(
            f"{file} is damaged: its tables differ from the digest that was recorded", DAMAGED
        )
    found = parse_json(said.get("sequence", "0"))
    if last is not None and not (
        type(found) is int and (found > last.sequence or (found, digest) == (last.sequence, last.digest))
    ):
        raise CollectionError(
            f"{file} has lost commits: the last one was number {last.sequence}, and the newest that can be read is "
            f"{str(found)[:60]}; the write-ahead log is damaged or missing",
            f"restore it from a backup, or delete {file.parent / LAST_COMMIT} to go on with the older version",
        )


def signed_rows(database: sqlite3.Connection, file: Path, rows: RowSum | None = None) -> RowSum:
    """The sum of items and additions, once all tables fit their digest. rows: the sum; None takes it as recorded."""
    found = RowSum(entry(database, "rows")) if rows is None else rows
    check_digest(
        file,
        database.execute("SELECT key, value FROM manifest"),
        database.execute("SELECT role, name, size, sha256 FROM segments"),
        found,
        usable_last_commit(file.parent),
    )
    return found


def entry(database: sqlite3.Connection, key: str) -> Any:
    """One value of the manifest, None where there is none."""
    found = database.execute("SELECT value FROM manifest WHERE key = ?", (key,)).fetchone()
    return None if found is None else parse_json(found[0])


def _sound_entry(database: sqlite3.Connection, key: str, kind: type[_T]) -> _T | None:
    """The same, None where it is damaged: whoever replaces a collection need not understand it."""
    with suppress(ValueError):
        found = entry(database, key)
        return found if type(found) is kind else None
    return None


def _as_json(entries: dict[str, Any]) -> list[tuple[str, str]]:
    return [(key, _json_of(key, value)) for key, value in entries.items()]


def _json_of(key: str, value: Any) -> str:
    try:
        text = json.dumps(value, default=_plain_number)
        parse_json(text)  # what could not be read again must not be written
    except ValueError as error:
        raise InputError(
            f"the {key} of this collection cannot be kept: {error}", "choose other settings"
        ) from error
    return text


def _plain_number(value: Any) -> int | float:
    """Settings may be numbers of any make, such as numpy's."""
    return int(value) if isinstance(value, Integral) else float(value)
