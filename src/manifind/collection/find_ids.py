"""Ids as people type them, on a command line or in the address of a page: exactly, or by the path of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from manifind.collection.version import Version
from manifind.errors import InputError
from manifind.text import closest_places, did_you_mean, listed

_WHOLE = re.compile(r"-?0*[0-9]{1,19}")  # ASCII digits only, and not many more than 64 bits have room for


def parse_id(version: Version, text: str) -> Any:
    """The id that a text stands for: itself, or a whole number of 64 bits where the ids of the collection are such."""
    if version.holdings.has_texts:
        return text
    number = int(text) if _WHOLE.fullmatch(text) else None
    if number is None or not -(2**63) <= number < 2**63:
        raise InputError(
            f"there is no item {text[:200]!r} in {version.directory}, whose ids are whole numbers of 64 bits",
            "give a number",
        )
    return number


def find_id(version: Version, text: str) -> Any:
    """The id of the one item that a text stands for: its id, its current path, or the name of its file."""
    rows = exact_rows(version, text) or _rows_of_file(version, text)
    ids = version.holdings.ids_of(np.array(rows, dtype=np.int64)).tolist()
    if not ids:
        raise unknown_item(version, parse_id(version, text))
    if len(ids) > 1:
        raise InputError(
            f"{len(ids)} items of {version.directory} have a file called {text[:200]!r}: {listed(map(repr, ids), 5)}",
            "give the id of one of them",
        )
    return ids[0]


def exact_rows(version: Version, text: str) -> list[int]:
    """The row of the item with this id; else of those whose file is at this path now, usually one or none."""
    try:
        row = version.holdings.row_of(parse_id(version, text))
    except InputError:
        row = None
    if row is not None:
        return [row]
    paths = version.holdings.paths
    return [row for row in version.shelf.rows.tolist() if paths[row] == text]


def suggested_ids(version: Version, id_: Any) -> list[str]:
    """Ids and paths that may have been meant; a name without a folder may have been meant in any."""
    if not isinstance(id_, str) or not version.holdings.has_texts:
        return []
    rows, paths = version.shelf.rows, version.holdings.paths
    known: list[str] = version.holdings.ids_of(rows).tolist()
    now = (paths[row] for row in rows.tolist())
    known += [path for id_, path in zip(known, now, strict=True) if path is not None and path != id_]
    names = known if "/" in id_ else [_last(name) for name in known]
    return [known[place] for place in closest_places(id_, names)]


def unknown_item(version: Version, id_: Any) -> InputError:
    """What to say of an id that no item has."""
    meant, first = suggested_ids(version, id_), version.holdings.ids[:1].tolist()
    example = f", such as {first[0]!r}" if first else ""
    return InputError(
        f"there is no item with the id {repr(id_)[:200]} in {version.directory}",
        did_you_mean(meant) if meant else f"give an id of one of its items{example}",
    )


def moved_to(id_: Any, fields: Mapping[str, Any]) -> str | None:
    """Where the file of an item is now, by its metadata; None where that is what its id says already."""
    path = fields.get("path")
    return path if isinstance(path, str) and path != str(id_) else None


def _rows_of_file(version: Version, name: str) -> list[int]:
    """The rows of items whose file, now or when it was added, has this name in whatever folder."""
    rows, paths = version.shelf.rows, version.holdings.paths
    ids = version.holdings.ids_of(rows).tolist()
    return [
        row
        for row, id_ in zip(rows.tolist(), ids, strict=True)
        if name and name in (_last(paths[row] or ""), _last(str(id_)))
    ]


def _last(path: str) -> str:
    return path.rpartition("/")[2]
