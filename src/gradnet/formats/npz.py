"""Vectors, ids and queries in NumPy's .npz format: a zip of named arrays, none of them pickled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gradnet.formats.checks import Vectors, check_ids, check_shape
from gradnet.formats.naming import (
    IDS_NAMES,
    check_ids_shape,
    check_queries,
    first_present,
    queries_name,
    rows_name,
    strings,
)
from gradnet.formats.npz_archive import Archive, opened_npz

_HINT = "save it again as numpy.savez(path, vectors=X, ids=names)"

_ShapeCheck = Callable[[str, tuple[int, ...]], None]


def read_npz(path: Path) -> Vectors:
    """Vectors from the array with a name that tells, or else from the only matrix; ids where there are any.

    Names that tell: `vectors`, `descriptors`, `X`, `features`, `embeddings`, in this order; for the ids
    `ids`, `names`; for the queries `queries`, `Q`.
    """
    with opened_npz(path) as archive:
        return _read(archive)


def _read(archive: Archive) -> Vectors:
    name = rows_name(archive.path, archive.members, lambda name: _is_matrix(archive, name), _HINT)
    rows = _matrix(archive, name, check_shape)
    others = queries_name(archive.members, name)
    queries = None
    if others is not None:
        d = rows.shape[1]
        queries = _matrix(archive, others, lambda where, shape: check_queries(where, shape, d))
    return Vectors(rows, _ids(archive, len(rows)), queries)


def _is_matrix(archive: Archive, name: str) -> bool:
    header = archive.header(name)
    return header.kind in "fiub" and len(header.shape) == 2


def _matrix(archive: Archive, name: str, check: _ShapeCheck) -> np.ndarray[Any, Any]:
    where, header = archive.where(name), archive.header(name)
    check(where, header.shape)
    return archive.data(name, header, header.dtype(where, "fiub", "real numbers"))


def _ids(archive: Archive, n: int) -> list[str] | list[int] | None:
    name = first_present(IDS_NAMES, archive.members)
    if name is None:
        return None
    where, header = archive.where(name), archive.header(name)
    check_ids_shape(where, header.shape, n)
    entries = archive.data(name, header, header.dtype(where, "iuUS", "strings or integers"))
    ids = strings(entries, where) if entries.dtype.kind in "US" else entries.tolist()
    check_ids(where, ids)
    return ids
