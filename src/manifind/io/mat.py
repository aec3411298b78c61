"""Reads vectors and regional descriptors from MATLAB's .mat files, version 5 to 7.3."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Ints
from manifind.errors import FileFormatError
from manifind.files import check_regular_file, readable
from manifind.io.checks import Vectors, check_expansion, check_queries, check_shape
from manifind.io.hdf5 import Hdf5, check_storage, is_hdf5, opened
from manifind.io.matlab5 import load_variables

_SMALLEST_OBJECT = 64  # bytes that the header of any HDF5 object takes, and more


def references(file: Hdf5, name: str) -> np.ndarray[Any, Any] | None:
    """The references of a cell array (n,), or None where the dataset of that name holds something else."""
    from h5py import Reference, check_ref_dtype

    dataset, where = file.dataset(name), file.where(name)
    if check_ref_dtype(dataset.dtype) is not Reference:
        return None
    shape = dataset.shape or ()
    if len(shape) != 2 or min(shape) != 1:
        raise FileFormatError(
            f"{where} is a cell array of shape {shape}; expected one row or one column of cells",
            "save it again with one cell for each image",
        )
    if dataset.size * _SMALLEST_OBJECT > file.size:
        raise FileFormatError(
            f"{where} has {dataset.size:,} cells, for which {file.size:,} bytes of file have no room",
            "copy or save it again: it is damaged",
        )
    cells: np.ndarray[Any, Any] = dataset[()].ravel()
    return cells


def targets(file: Hdf5, cells: np.ndarray[Any, Any], name: str) -> Iterator[Any]:
    """What each reference leads to, as h5py's DatasetID, checked for where and how it is stored."""
    from h5py import h5d, h5r

    unpacked = 0
    for position, reference in enumerate(cells):
        where = f"cell {position} (counted from 0) of {file.where(name)}"
        target = h5r.dereference(reference, file.root.id) if reference else None
        if not isinstance(target, h5d.DatasetID):
            raise FileFormatError(f"{where} leads to no array; expected one inside the file", "copy or save it again")
        unpacked += check_storage(target, where, file.size)
        check_expansion(file.where(name), unpacked, file.size)  # many may lead to the same array
        yield target


def is_empty(target: Any) -> bool:
    """Whether MATLAB meant an array without entries, of which the file holds the size instead."""
    from h5py import h5a

    if not h5a.exists(target, b"MATLAB_empty"):
        return False
    mark = h5a.open(target, b"MATLAB_empty")
    if mark.shape != () or mark.dtype.kind not in "iu":
        return False
    value = np.zeros((), mark.dtype)
    mark.read(value)
    return bool(value)


def values(target: Any) -> np.ndarray[Any, Any]:
    """All entries of an array, in a row as MATLAB counts them; none where it is marked as empty."""
    from h5py import h5s

    if is_empty(target):
        return np.empty(0)
    entries = np.empty(target.shape, target.dtype)
    if entries.dtype.kind not in "fiub":
        raise ValueError(f"an array has the type {entries.dtype} where numbers were expected")
    if entries.size:
        target.read(h5s.ALL, h5s.ALL, entries)
    return entries.ravel()


def text(target: Any) -> str:
    """The text of one row of characters."""
    codes = values(target)
    if not codes.size:
        return ""
    if codes.dtype.kind != "u" or codes.dtype.itemsize != 2 or len(target.shape) != 2 or target.shape[1] != 1:
        raise ValueError(f"an array of {codes.dtype}, {target.shape}, stands where one line of text should")
    return codes.astype("<u2").tobytes().decode("utf-16-le")


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
            raise FileFormatError(f"{file} is not HDF5; expected MATLAB 7.3 with the groups glob and reg", _HINT)
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


def read_mat(path: Path) -> Vectors:
    """Vectors and queries of the revisited benchmark's features, or the global ones of Iscen et al.

    The former have matrices X (d, n) and, with the queries, Q (d, m): items are columns, in files of MATLAB 5
    to 7.3. The latter have groups glob and reg in MATLAB 7.3; `read_regions` reads the regional ones.
    """
    if not is_hdf5(path):
        return _from_columns(path, load_variables(path, ("X", "Q")))
    with opened(path) as file:
        names = file.names()
        if "glob" in names:
            return read_global(file)
        return _from_columns(path, {name: _columns(file, name) for name in ("X", "Q") if name in names})


def _columns(file: Hdf5, name: str) -> np.ndarray[Any, Any]:
    return file.numbers(name, check_shape).T  # HDF5 shows MATLAB's matrices with their axes swapped


def _from_columns(path: Path, found: dict[str, Any]) -> Vectors:
    if "X" not in found:
        raise FileFormatError(
            f"{path} has no matrix X; expected X (d x n) and Q (d x m) with one column an image, "
            "or the groups glob and reg in MATLAB 7.3",
            "save the vectors as columns of X, or with numpy.save as .npy, where they are rows",
        )
    for name, matrix in found.items():
        if not isinstance(matrix, np.ndarray):
            raise FileFormatError(
                f"{name!r} in {path} is a {type(matrix).__name__}; expected a matrix of real numbers",
                "save the vectors as columns of one matrix",
            )
        check_shape(f"{name!r} in {path}", matrix.shape)
    rows = found["X"].T
    if "Q" not in found:
        return Vectors(rows, None)
    queries = found["Q"].T
    check_queries(f"'Q' in {path}", queries.shape, rows.shape[1])
    return Vectors(rows, None, queries)
