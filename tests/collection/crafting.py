"""Collections as somebody who means harm would make them: every table signed anew, every size and digest right."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing

import numpy as np

from collection.small_collection import edit, segment
from manifind.collection.format import DATABASE


def set_manifest(path, key, value, sign=True):
    """Put a text, or bytes, where the manifest has a value."""
    edit(path, "UPDATE manifest SET value = ? WHERE key = ?", value, key, sign=sign)


def manifest_of(path, key):
    with closing(sqlite3.connect(path / DATABASE)) as database:
        return json.loads(database.execute("SELECT value FROM manifest WHERE key = ?", (key,)).fetchone()[0])


def change_manifest(path, key, **entries):
    """Put some entries into a table of the manifest, and sign it."""
    set_manifest(path, key, json.dumps({**manifest_of(path, key), **entries}))


def rows_of(path, statement):
    with closing(sqlite3.connect(path / DATABASE)) as database:
        return database.execute(statement).fetchall()


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def npy_claiming(shape, dtype="<f4", data=b""):
    """A header that claims a shape, and whatever data."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue() + data


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def arrays_of(path, role):
    with np.load(segment(path, role)) as arrays:
        return dict(arrays)


def changed_arrays(path, role, **changes):
    """The content of an npz segment with some arrays changed; None takes one away."""
    arrays = {**arrays_of(path, role), **changes}
    return npz(**{name: array for name, array in arrays.items() if array is not None})
