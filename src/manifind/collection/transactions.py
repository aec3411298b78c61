"""Small commits: items come, go and change in one transaction whose cost does not depend on how many there are."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

from manifind.collection.database import unwritten, writing
from manifind.collection.format import DAMAGED, DATABASE, RowSum, checked_rows, entry, write_checksum
from manifind.collection.items import SELECT_ADDITIONS, SELECT_ITEMS, Committed, addition_rows
from manifind.collection.manifest import Manifest
from manifind.collection.metadata import merged_metadata
from manifind.errors import CollectionError, InputError
from manifind.search.live_index import AddedItems

Item: TypeAlias = tuple[int, Any, str | None]
"""Position, id and metadata."""

_BEYOND = 1 << 63  # the largest number that an item can have is one less


@dataclass(frozen=True)
class Change:
    """What is to happen, in this order: ids that go, items that come, ids that get other metadata.

    ids, metadata: of the items in `placed`. ids: None for the next free numbers. metadata: fields to set, beside those
    of the item that goes under the same id. new_metadata: fields to set, by id. protected: fields that nobody may set.
    """

    removed: Sequence[Any] = ()
    placed: AddedItems | None = None
    ids: Sequence[Any] | None = None
    metadata: Sequence[Mapping[str, Any] | None] | None = None
    new_metadata: Mapping[Any, Mapping[str, Any] | None] = field(default_factory=dict)
    protected: Collection[str] = ()


class RefittedMeanwhileError(CollectionError):
    """The features that a change brings belong to a fit that is no longer there."""


def replaced(directory: Path) -> CollectionError:
    """What to say where another collection has taken the place of the one that was opened."""
    return CollectionError(
        f"{directory} holds another collection than when it was opened; nothing was changed",
        "open it again, and see whether it is the one to change",
    )


def commit_change(directory: Path, manifest: Manifest, change: Change) -> Committed:
    """Let a change happen, or nothing. manifest: of the version that the features in it belong to."""
    try:
        with writing(directory) as database:
            is_same_fit = entry(database, "fit") == manifest.fit
            # One of format 1 has no name of its own before its first commit.
            if entry(database, "collection") != manifest.collection and not (
                is_same_fit and manifest.collection is None
            ):
                raise replaced(directory)
            if not is_same_fit:
                raise RefittedMeanwhileError(f"{directory} was refitted meanwhile", "open it again")
            return _commit(database, change, directory)
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise CollectionError(f"{directory / DATABASE} is damaged: {repr(error)[:200]}", DAMAGED) from error
    except OSError as error:
        raise unwritten(directory, error) from error


def _commit(database: sqlite3.Connection, change: Change, directory: Path) -> Committed:
    rows, before = checked_rows(database, directory / DATABASE), entry(database, "commit")
    went = _remove(database, rows, change.removed, directory)
    gone = [row[0] for row in went]
    came = _add(database, rows, change, {row[1]: row[2] for row in went}, directory)
    described = _describe(database, rows, change, directory)
    positions, ids = [position for position, _, _ in came], [id_ for _, id_, _ in came]
    new: dict[str, Any] = {"commit": secrets.token_hex(8), "changes": _counted(database, len(positions), gone)}
    if positions:
        new |= {"next_position": positions[-1] + 1, "next_id": _next_id(database, ids)}
    entries = write_checksum(database, directory, rows, new)
    return Committed(before, entries, positions, ids, [text for _, _, text in came], gone, described)


def _counted(database: sqlite3.Connection, n_added: int, gone: list[int]) -> dict[str, int]:
    """How many there are now that were not fitted, and how many of the fitted have gone."""
    counts, n_fitted = entry(database, "changes"), entry(database, "shape")["items"]
    later = sum(position >= n_fitted for position in gone)
    return {"added": counts["added"] + n_added - later, "removed": counts["removed"] + len(gone) - later}


def _remove(database: sqlite3.Connection, rows: RowSum, ids: Iterable[Any], directory: Path) -> list[Item]:
    """The rows of those who went."""
    went = []
    for id_ in ids:
        row = _item(database, id_, directory)
        rows.add_items([row], -1)
        rows.add_additions(database.execute(SELECT_ADDITIONS + " WHERE position = ?", row[:1]), -1)
        database.execute("DELETE FROM items WHERE position = ?", row[:1])
        database.execute("DELETE FROM additions WHERE position = ?", row[:1])
        went.append(row)
    return went


def _add(
    database: sqlite3.Connection, rows: RowSum, change: Change, old: dict[Any, str | None], directory: Path
) -> list[Item]:
    """The rows of the items that were added. old: metadata of those that were removed, by id."""
    if change.placed is None:
        return []
    count, start = len(change.placed), _next_position(database)
    positions = list(range(start, start + count))
    ids = _numbers(database, count) if change.ids is None else list(change.ids)
    _check_kind(database, ids, directory)
    fields = [None] * count if change.metadata is None else change.metadata
    metadata = [
        merged_metadata(old.get(id_), new, change.protected, f"the item {id_!r}")
        for id_, new in zip(ids, fields, strict=True)
    ]
    items = list(zip(positions, ids, metadata, strict=True))
    for item in items:
        _insert(database, item, directory)
    additions = list(addition_rows(change.placed, positions))
    database.executemany("INSERT INTO additions VALUES (?, ?, ?, ?, ?, ?)", additions)
    rows.add_items(items)
    rows.add_additions(additions)
    return items


def _check_kind(database: sqlite3.Connection, ids: Sequence[Any], directory: Path) -> None:
    """Refuse texts among numbers, and numbers among texts: another handle may have added the first since."""
    found = database.execute("SELECT id FROM items LIMIT 1").fetchone()
    if found is not None and ids and type(found[0]) is not type(ids[0]):
        raise InputError(
            f"the id {ids[0]!r} is of another kind than {found[0]!r} in {directory}",
            "ids are either all texts or all whole numbers",
        )


def _insert(database: sqlite3.Connection, item: Item, directory: Path) -> None:
    try:
        database.execute("INSERT INTO items VALUES (?, ?, ?)", item)
    except sqlite3.IntegrityError as error:
        raise InputError(
            f"there is an item with the id {item[1]!r} in {directory} already",
            "give another id, or change that item with `update`",
        ) from error


def _describe(database: sqlite3.Connection, rows: RowSum, change: Change, directory: Path) -> dict[Any, str | None]:
    """Set fields of some items; the texts of all their fields, by id."""
    described = {}
    for id_, fields in change.new_metadata.items():
        row = _item(database, id_, directory)
        text = merged_metadata(row[2], fields, change.protected, f"the item {id_!r}")
        rows.add_items([row], -1)
        rows.add_items([(row[0], row[1], text)])
        database.execute("UPDATE items SET metadata = ? WHERE position = ?", (text, row[0]))
        described[id_] = text
    return described


def _item(database: sqlite3.Connection, id_: Any, directory: Path) -> Item:
    found = database.execute(SELECT_ITEMS + " WHERE id = ?", (id_,)).fetchone()
    if found is None or type(found[1]) is not type(id_):
        raise unknown_id(id_, directory)
    return cast("Item", found)


def unknown_id(id_: Any, directory: Path, example: Any = None) -> InputError:
    """What to say of an id that nobody has."""
    hint = "give an id of one of its items" + ("" if example is None else f", such as {example!r}")
    return InputError(f"there is no item with the id {id_!r} in {directory}", hint)


def _next_position(database: sqlite3.Connection) -> int:
    """The first position that nobody has or had."""
    start, n_fitted = entry(database, "next_position"), entry(database, "shape")["items"]
    last = database.execute("SELECT max(position) FROM items").fetchone()[0]
    if start < n_fitted or (last is not None and start <= last):
        raise ValueError(f"the next position is said to be {start}")
    return int(start)


def _numbers(database: sqlite3.Connection, count: int) -> list[int]:
    """The next free numbers."""
    first = entry(database, "next_id")
    if first + count > _BEYOND:
        raise InputError(f"there are not {count} free numbers behind {first - 1}", "give ids")
    return list(range(first, first + count))


def _next_id(database: sqlite3.Connection, ids: Iterable[Any]) -> int:
    numbers = [id_ for id_ in ids if isinstance(id_, int)]
    return int(max([entry(database, "next_id"), *(number + 1 for number in numbers)]))
