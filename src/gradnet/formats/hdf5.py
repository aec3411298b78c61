"""Vectors, ids and queries in .h5 and .hdf5 files: datasets with names that tell, all inside the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.checks import Vectors, check_ids, check_shape
from gradnet.formats.hdf5_file import Hdf5, opened
from gradnet.formats.hdf5_texts import is_variable_text, read_texts
from gradnet.formats.naming import (
    IDS_NAMES,
    check_ids_shape,
    check_queries,
    first_present,
    queries_name,
    rows_name,
    strings,
)


def read_hdf5(path: Path) -> Vectors:
    """Vectors from the dataset with a name that tells, or else from the only matrix, with ids and queries.

    The names are those of .npz files; only datasets at the top of the file count.
    """
    with opened(path) as file:
        present = file.names()
        hint = 'save it again as file.create_dataset("vectors", data=X)'
        name = rows_name(path, present, lambda name: _is_matrix(file, name), hint)
        rows = file.numbers(name, check_shape)
        return Vectors(rows, _ids(file, present, len(rows)), _queries(file, present, name, rows.shape[1]))


def _is_matrix(file: Hdf5, name: str) -> bool:
    from h5py import Dataset

    found = file.member(name)
    try:
        return isinstance(found, Dataset) and found.dtype.kind in "fiub" and len(found.shape or ()) == 2
    except TypeError:  # of entries that NumPy has no type for
        return False


def _queries(file: Hdf5, present: list[str], rows: str, d: int) -> np.ndarray[Any, Any] | None:
    name = queries_name(present, rows)
    if name is None:
        return None
    return file.numbers(name, lambda where, shape: check_queries(where, shape, d))


def _ids(file: Hdf5, present: list[str], n: int) -> list[str] | list[int] | None:
    name = first_present(IDS_NAMES, present)
    if name is None:
        return None
    where = file.where(name)
    found = file.member(name)
    check_ids_shape(where, getattr(found, "shape", None) or (), n)
    ids: list[str] | list[int]
    if is_variable_text(found):
        ids = strings(np.array(read_texts(file, found.id, where), object), where)
    else:
        entries = file.dataset(name)
        if entries.dtype.kind not in "iuS":
            raise FileFormatError(
                f"{where} has the type {entries.dtype}; expected strings or integers", "convert the ids"
            )
        ids = strings(entries[()], where) if entries.dtype.kind == "S" else entries[()].tolist()
    check_ids(where, ids)
    return ids
