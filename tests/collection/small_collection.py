"""A small collection, and ways to look at it and to tamper with it."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing

import numpy as np

import manifind
from manifind.collection.format import DATABASE, SEGMENTS, RowSum, tables_digest

N, D = 120, 6  # enough items for faiss to propose candidates
NAMES = [f"pictures/{i:03}.jpg" for i in range(N)]


def random_rows(n, seed):
    return np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32)


def fit(seed=0, **settings):
    quick = {"n_neighbors": 3, "layers": (8, 4), "n_anchors": 4, "max_steps": 2, "batch_size": 8}
    narrow = {"n_components": 30, "random_state": 0}
    return manifind.GradNet(**{**quick, **narrow, **settings}).fit(random_rows(N, seed))


def tidy(path):
    """Take away what SQLite leaves beside the database after reading."""
    for suffix in ("-wal", "-shm"):
        (path / f"{DATABASE}{suffix}").unlink(missing_ok=True)


def files_of(path):
    """Name and content of every file that belongs to the collection."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and not file.name.endswith(("-wal", "-shm"))
    }


def segment(path, role):
    return next((path / SEGMENTS).glob(f"{role}-*"))


def edit(path, statement, *values, sign=True):
    """Change the tables; `sign` makes their digest fit again, as someone who means harm would."""
    with closing(sqlite3.connect(path / DATABASE, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")  # it is to be quick, and need not last
        database.execute(statement, values)
        if sign:
            manifest = database.execute("SELECT key, value FROM manifest").fetchall()
            segments = database.execute("SELECT role, name, size, sha256 FROM segments").fetchall()
            rows = RowSum()
            rows.add_items(database.execute("SELECT * FROM items"))
            rows.add_additions(database.execute("SELECT * FROM additions"))
            values = dict(manifest) | {"rows": f'"{rows}"'}
            digest = f'"{tables_digest(values.items(), segments, rows)}"'
            database.execute("UPDATE manifest SET value = ? WHERE key = 'rows'", (values["rows"],))
            database.execute("UPDATE manifest SET value = ? WHERE key = 'digest'", (digest,))


def put_segment(path, role, content):
    """Give a segment another content, with size and digests to match."""
    segment(path, role).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    edit(path, "UPDATE segments SET size = ?, sha256 = ? WHERE role = ?", len(content), digest, role)
