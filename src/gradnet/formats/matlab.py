"""Vectors in MATLAB's .mat files, in the two layouts that are published; their content tells which it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.checks import Vectors, check_shape
from gradnet.formats.hdf5_file import Hdf5, is_hdf5, opened
from gradnet.formats.matlab5 import load_variables
from gradnet.formats.naming import check_queries
from gradnet.formats.regions import read_global


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
