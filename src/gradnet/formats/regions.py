"""Descriptors of whole images and of their regions, as Iscen et al. publish them (MATLAB 7.3)."""

from __future__ import annotations

import os
import reprlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradnet.arrays import Ints
from gradnet.errors import FileFormatError
from gradnet.formats.checks import Vectors
from gradnet.formats.hdf5_file import Hdf5, is_hdf5, opened
from gradnet.formats.matlab73 import is_empty, references, targets
from gradnet.formats.naming import check_queries
from gradnet.formats.regular_file import check_regular_file, readable

_HINT = "take the file as its authors publish it: cell arrays V and Q in the groups glob and reg"
_GROWTH = 1.25


class Regions(NamedTuple):
    """Descriptors of regions, those of one image side by side, images in the order of the file.

    rows: (regions, d). image_of: (regions,) the position of the image that each row belongs to, from 0.
    queries: (regions of queries, d). query_of: the position of the query that each of them belongs to.
    """

    rows: np.ndarray[Any, Any]
    image_of: Ints
    queries: np.ndarray[Any, Any]
    query_of: Ints


def read_regions(path: str | os.PathLike[str]) -> Regions:
    """Regional descriptors of a .mat file with cell arrays reg.V and reg.Q, one cell of regions an image."""
    file = Path(path)
    with readable(file):
        check_regular_file(file, "expected regional descriptors in a .mat file")
        if not is_hdf5(file):
            raise FileFormatError(
                f"{file} is not HDF5; expected MATLAB 7.3 with the groups glob and reg", _HINT
            )
        with opened(file) as hdf5:
            return Regions(*_group(hdf5, "reg"))


def read_global(file: Hdf5) -> Vectors:
    """Vectors of whole images from the cell arrays glob.V and glob.Q, one vector a cell."""
    found = Regions(*_group(file, "glob"))
    for name, owners in (("V", found.image_of), ("Q", found.query_of)):
        if owners[-1] + 1 != len(owners):
            raise FileFormatError(
                f"'glob/{name}' in {file.path} has {len(owners)} vectors in {owners[-1] + 1} cells; "
                "expected one in each, for the whole image",
                "read regions with read_regions",
            )
    return Vectors(found.rows, None, found.queries)


def _group(file: Hdf5, group: str) -> tuple[np.ndarray[Any, Any], Ints, np.ndarray[Any, Any], Ints]:
    names = file.names(group) if group in file.names() else []
    if not {"V", "Q"} <= set(names):
        raise FileFormatError(
            f"{file.where(group)} has the members {reprlib.repr(names)}; "
            "expected V for the images and Q for the queries",
            _HINT,
        )
    rows, image_of = _stacked(file, f"{group}/V")
    queries, query_of = _stacked(file, f"{group}/Q")
    check_queries(file.where(f"{group}/Q"), queries.shape, rows.shape[1])
    return rows, image_of, queries, query_of


def _stacked(file: Hdf5, name: str) -> tuple[np.ndarray[Any, Any], Ints]:
    """The rows of all cells under one another, and the position of the cell that each comes from."""
    from h5py import h5s

    cells = references(file, name)
    if cells is None:
        raise FileFormatError(f"{file.where(name)} holds no references; expected a cell array", _HINT)
    rows, counts, end = np.empty((0, 0)), np.zeros(len(cells), np.int64), 0
    for position, target in enumerate(targets(file, cells, name)):
        r, d = _checked(target, rows, position, file.where(name))
        if position == 0:
            rows = _space(file, len(cells), r, d, target.dtype)
        start, end = end, end + r
        if end > len(rows):  # in place where the system can, so that a large file needs no second copy
            rows.resize((int(end * _GROWTH), d), refcheck=False)
        target.read(h5s.ALL, h5s.ALL, rows[start:end])
        counts[position] = r
    rows.resize((end, rows.shape[1]), refcheck=False)
    return rows, np.repeat(np.arange(len(cells)), counts)


def _space(file: Hdf5, cells: int, r: int, d: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Room for as many regions in every cell as in the first, but not for more than the file can hold."""
    return np.empty((min(cells * r, cells + file.size // (d * dtype.itemsize)), d), dtype)


def _checked(target: Any, rows: np.ndarray[Any, Any], position: int, where: str) -> tuple[int, int]:
    """The shape of a cell's array, if it has a row and agrees with the rows so far."""
    shape: tuple[int, ...] = target.shape or ()
    kind = target.dtype
    if is_empty(target) or len(shape) != 2 or 0 in shape or kind.kind not in "fiub":
        raise FileFormatError(
            f"cell {position} (counted from 0) of {where} holds {kind}, shape {shape}; "
            "expected a matrix of numbers with at least one region",
            "give every image at least one vector",
        )
    if position and (shape[1], kind) != (rows.shape[1], rows.dtype):
        raise FileFormatError(
            f"cell {position} (counted from 0) of {where} has {shape[1]} dimensions of {kind}; "
            f"expected {rows.shape[1]} of {rows.dtype}, as cell 0 has",
            "describe all images in the same way",
        )
    return shape[0], shape[1]
