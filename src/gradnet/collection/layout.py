"""Names and numbers of the format on disk, version 1."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

VERSION = 1
DATABASE = "collection.sqlite"
SEGMENTS = "segments"
APPLICATION_ID = 0x67726164  # "grad", in SQLite's header, so that no other database is taken for ours

ROLES = {"descriptors": "npy", "lengths": "npy", "features": "npy", "graph": "npz", "model": "safetensors"}
SEGMENT_NAME = re.compile(r"(descriptors|lengths|features|graph|model)-[0-9a-f]{16}\.(npy|npz|safetensors)")

SCHEMA = """
CREATE TABLE IF NOT EXISTS manifest (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS segments (
    role TEXT PRIMARY KEY, name TEXT NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS items (position INTEGER PRIMARY KEY, id NOT NULL UNIQUE);
"""


def tables_digest(
    manifest: Iterable[Sequence[Any]], segments: Iterable[Sequence[Any]], ids: Sequence[Any]
) -> str:
    """One digest of all rows of the tables, since SQLite does not notice a changed byte.

    It stands in the manifest under "digest", and that row is left out.
    """
    rows = sorted(list(row) for row in manifest if row[0] != "digest"), sorted(map(list, segments)), ids
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
