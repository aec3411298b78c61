"""MATLAB's files of version 7.3, which are HDF5: cell arrays as references, text as numbers, empty arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.checks import check_expansion
from gradnet.formats.hdf5_file import Hdf5
from gradnet.formats.hdf5_storage import check_storage

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
            raise FileFormatError(
                f"{where} leads to no array; expected one inside the file", "copy or save it again"
            )
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
