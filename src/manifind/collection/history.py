"""The last changes of a collection, with what was there before each of them, so that they can be undone.

Only the last change can be undone, then the one before it. A new fit ends that: its features belong to other items.
"""

import sqlite3
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from manifind.collection.database import reading
from manifind.collection.format import DATABASE, NOTES, SELECT_MANIFEST, Manifest, RowSum, damaged, entry
from manifind.errors import InputError
from manifind.text import count

_MOST_STEPS = 100
_MOST_BYTES = 64 << 20  # of all that is remembered; older changes are forgotten first
_ROW_BYTES = 64  # of a row beside its texts and blobs
_LONGEST_LABEL = 500

_SELECT_STEPS = "SELECT number, label, made, n_items, first_added, n_added, n_bytes FROM steps ORDER BY number DESC"
_SELECT_ITEM = (
    "SELECT items.position, id, metadata, length, descriptor, feature, neighbours, distances "
    "FROM items LEFT JOIN additions USING (position) WHERE id = ?"
)


class UndoStep(NamedTuple):
    """A change that can be undone.

    Attributes
    ----------
    number : int
        What names it.
    label : str
        What it did, in words.
    made : str
        When, in UTC.
    items : int
        How many items it touched.
    """

    number: int
    label: str
    made: str
    items: int


def rows_before(
    database: sqlite3.Connection, removed: Collection[Any], described: Collection[Any]
) -> list[tuple[Any, ...]]:
    """The rows of items as they are before a change: whole ones of those that go, without blobs of the others."""
    rows, gone = {}, set(removed)
    for id_ in (*removed, *described):
        row = database.execute(_SELECT_ITEM, (id_,)).fetchone()
        if row is not None:
            rows[row[0]] = row if id_ in gone else (*row[:3], *[None] * 5)
    return [rows[position] for position in sorted(rows)]


def record_step(
    database: sqlite3.Connection, notes: RowSum, label: str, before: Sequence[Sequence[Any]], added: Sequence[int]
) -> None:
    """Remember a change that is part of this transaction, and forget the oldest where they become too many.

    notes: the sum that follows. before: rows of `rows_before`. added: positions of the new items, one after the other.
    """
    (last,) = database.execute("SELECT max(number) FROM steps").fetchone()
    number, made = (last or 0) + 1, datetime.now(UTC).isoformat(timespec="seconds")
    former = [(number, *row) for row in before]
    n_bytes = sum(_ROW_BYTES + sum(len(value) for value in row if isinstance(value, str | bytes)) for row in before)
    n_items = len(before) + len(added)
    step = (number, label[:_LONGEST_LABEL], made, n_items, added[0] if added else None, len(added), n_bytes)
    database.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?)", step)
    database.executemany("INSERT INTO former VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", former)
    notes.add_notes("steps", [step])
    notes.add_notes("former", former)
    total = 0
    for place, one in enumerate(database.execute(_SELECT_STEPS).fetchall()):
        total += one[-1]
        if place >= _MOST_STEPS or total > _MOST_BYTES:
            _forget(database, notes, one)


def undo_last(database: sqlite3.Connection, rows: RowSum, notes: RowSum, number: int | None, directory: Path) -> str:
    """Put back what was there before the last change; its label. rows: the sum of items and additions."""
    step = database.execute(_SELECT_STEPS).fetchone()
    if step is None:
        hint = "changes before the last fit, and very large ones, cannot be undone"
        raise InputError(f"there is no change of {directory} to undo", hint)
    if number is not None and number != step[0]:
        raise InputError(f"change {number} is not the last one, which is {step[1]!r}", "undo that one first")
    _, label, _, _, first, n_added, _ = step
    if n_added:
        _remove_added(database, rows, first, first + n_added - 1)
    for row in database.execute("SELECT * FROM former WHERE step = ?", step[:1]).fetchall():
        _put_back(database, rows, row[1:])
    _forget(database, notes, step)
    return str(label)


def read_steps(directory: Path) -> list[UndoStep]:
    """The changes that can be undone, the newest first."""
    with reading(directory) as database:
        if not has_notes(database, directory):
            return []
        steps = [UndoStep(*row[:4]) for row in database.execute(_SELECT_STEPS)]
    if not all(list(map(type, step)) == [int, str, str, int] for step in steps):
        raise damaged(f"{directory / DATABASE} is damaged: what it says of its last changes cannot be read")
    return steps


def has_notes(database: sqlite3.Connection, directory: Path) -> bool:
    """Whether the collection is of a format that has these tables."""
    manifest = Manifest.read(database.execute(SELECT_MANIFEST), directory / DATABASE)
    return int(manifest.entries["format"]) >= 3


def verify_notes(directory: Path) -> None:
    """Compare all changes and judgements with the sum that was recorded."""
    with reading(directory) as database:
        if has_notes(database, directory):
            check_notes(database, directory / DATABASE)


def check_notes(database: sqlite3.Connection, file: Path) -> RowSum:
    """The sum of all rows of these tables, which must be the one that was recorded."""
    total = RowSum()
    try:
        for table in NOTES:
            total.add_notes(table, database.execute(f"SELECT * FROM {table}"))  # noqa: S608 - fixed names
    except UnicodeEncodeError as error:
        raise damaged(f"{file} is damaged: {error}") from error
    if entry(database, "notes") != str(total):
        raise damaged(f"{file} is damaged: its changes and judgements differ from the sum that was recorded")
    return total


def label_of_change(n_removed: int, n_added: int, n_described: int) -> str:
    """What a change does, for people, where nobody has said it better."""
    done = (("removed", n_removed), ("added", n_added), ("described", n_described))
    return ", ".join(f"{what} {count(n, 'item')}" for what, n in done if n) or "nothing"


def _remove_added(database: sqlite3.Connection, rows: RowSum, first: int, last: int) -> None:
    for table, add in (("items", rows.add_items), ("additions", rows.add_additions)):
        where = f"FROM {table} WHERE position BETWEEN ? AND ?"
        add(database.execute(f"SELECT * {where}", (first, last)).fetchall(), -1)
        database.execute(f"DELETE {where}", (first, last))


def _put_back(database: sqlite3.Connection, rows: RowSum, row: Sequence[Any]) -> None:
    """row: as `rows_before` has it."""
    item, blobs = tuple(row[:3]), tuple(row[3:])
    now = database.execute("SELECT position, id, metadata FROM items WHERE position = ?", item[:1]).fetchall()
    rows.add_items(now, -1)
    rows.add_items([item])
    database.execute("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", item)
    if blobs[0] is not None:
        rows.add_additions([(item[0], *blobs)])
        database.execute("INSERT INTO additions VALUES (?, ?, ?, ?, ?, ?)", (item[0], *blobs))


def _forget(database: sqlite3.Connection, notes: RowSum, step: Sequence[Any]) -> None:
    number = tuple(step[:1])
    notes.add_notes("former", database.execute("SELECT * FROM former WHERE step = ?", number), -1)
    notes.add_notes("steps", [step], -1)
    database.execute("DELETE FROM former WHERE step = ?", number)
    database.execute("DELETE FROM steps WHERE number = ?", number)
