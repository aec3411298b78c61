"""Names and numbers of the format on disk, version 2.

Version 2 has two more entries in the manifest: `collection`, which names the collection through all its fits, and
`sequence`, which counts commits (see `last_commit`). Version 1 is read as it is, and becomes version 2 with its next
commit.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

VERSION = 2
READABLE = (1, 2)
DATABASE = "collection.sqlite"
SEGMENTS = "segments"
APPLICATION_ID = 0x67726164  # "grad", in SQLite's header, so that no other database is taken for ours

ROLES = {
    "descriptors": "npy",
    "lengths": "npy",
    "features": "npy",
    "graph": "npz",
    "model": "safetensors",
    "descriptor_index": "npz",
    "feature_index": "npz",
}
"""What a segment may hold, and how it ends."""

FULL = {"descriptors", "lengths", "features", "graph", "model"}
"""Roles without which nothing can be added or refitted. Indexes beside them are a cache."""

COMPRESSED = {"graph", "descriptor_index", "feature_index"}
"""Roles of a collection that only answers."""

SEGMENT_NAME = re.compile(
    rf"({'|'.join(ROLES)})-[0-9a-f]{{16}}\.(npy|npz|safetensors)"  # the regular expression of our own names
)

SCHEMA = """
CREATE TABLE IF NOT EXISTS manifest (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS segments (
    role TEXT PRIMARY KEY, name TEXT NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS items (position INTEGER PRIMARY KEY, id NOT NULL UNIQUE, metadata TEXT);
CREATE TABLE IF NOT EXISTS additions (
    position INTEGER PRIMARY KEY, length REAL NOT NULL, descriptor BLOB NOT NULL, feature BLOB NOT NULL,
    neighbours BLOB NOT NULL, distances BLOB NOT NULL
);
"""
TABLES = ("manifest", "segments", "items", "additions")

_MODULUS = 1 << 256


class RowSum:
    """One digest of any number of rows, in any order, that follows as rows come and go.

    The sum of the rows' digests: SQLite does not notice a changed byte, and reading every row for every commit
    would make a small one cost as much as a large collection. It finds accidents; whoever means harm can compute
    it too.
    """

    def __init__(self, text: str = "") -> None:
        self._sum = int(text, 16) if text else 0

    def add_items(self, rows: Iterable[Sequence[Any]], sign: int = 1) -> None:
        """rows: (position, id, metadata)."""
        digest, read = hashlib.sha256, int.from_bytes
        total = 0
        for position, id_, metadata in rows:
            kind = "s" if type(id_) is str else "i"
            total += read(digest(f"{position}\0{kind}{id_}\0{metadata or ''}".encode()).digest())
        self._sum = (self._sum + sign * total) % _MODULUS

    def add_additions(self, rows: Iterable[Sequence[Any]], sign: int = 1) -> None:
        """rows: (position, length, and blobs)."""
        total = 0
        for position, length, *blobs in rows:
            hashed = hashlib.sha256(f"{position}\0{length!r}".encode())
            for blob in blobs:
                hashed.update(f"\0{len(blob)}\0".encode())
                hashed.update(blob)
            total += int.from_bytes(hashed.digest())
        self._sum = (self._sum + sign * total) % _MODULUS

    def __str__(self) -> str:
        return f"{self._sum:064x}"


def tables_digest(manifest: Iterable[Sequence[Any]], segments: Iterable[Sequence[Any]], rows: RowSum) -> str:
    """One digest of everything in the tables.

    It stands in the manifest under "digest", and that row is left out.
    """
    parts = (
        sorted(list(row) for row in manifest if row[0] != "digest"),
        sorted(map(list, segments)),
        str(rows),
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
