"""Ground truth in MATLAB's .mat files: a struct array gnd counted from 1, names in cell arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gradnet.errors import FileFormatError
from gradnet.formats.hdf5_file import Hdf5, is_hdf5, opened
from gradnet.formats.matlab5 import load_variables
from gradnet.formats.matlab73 import references, targets, text, values
from gradnet.formats.published import Published, checked
from gradnet.formats.truth import CLASSIC, REVISITED, GroundTruth

_LISTS = {*CLASSIC, *REVISITED}
_HINT = "expected a struct array gnd and cell arrays imlist and qimlist of text, as published"


def read_mat_truth(path: Path) -> GroundTruth:
    """Ground truth of a struct array gnd with easy, hard, junk or ok, junk; MATLAB 5 to 7.3."""
    if is_hdf5(path):
        with opened(path) as file:
            gnd, images, queries = _from_hdf5(file)
    else:
        gnd, images, queries = _from_version_5(path)
    return checked(Published(str(path), gnd, images, queries, first=1, are_floats=True))


def _missing(path: Path) -> FileFormatError:
    return FileFormatError(f"{path} has no struct array gnd with lists of images", _HINT)


def _from_version_5(path: Path) -> tuple[Any, Any, Any]:
    found = load_variables(path, ("gnd", "imlist", "qimlist"))
    if "gnd" not in found:
        raise _missing(path)
    return found["gnd"], found.get("imlist"), found.get("qimlist")


def _from_hdf5(file: Hdf5) -> tuple[Any, Any, Any]:
    fields = [name for name in file.names("gnd") if name in _LISTS] if "gnd" in file.names() else []
    if not fields:
        raise _missing(file.path)
    columns = {name: _field(file, f"gnd/{name}") for name in fields}
    if len({len(column) for column in columns.values()}) != 1:
        raise FileFormatError(
            f"gnd in {file.path} has lists for {[len(column) for column in columns.values()]} queries", _HINT
        )
    lists = [dict(zip(columns, one, strict=True)) for one in zip(*columns.values(), strict=True)]
    return lists, _hdf5_texts(file, "imlist"), _hdf5_texts(file, "qimlist")


def _field(file: Hdf5, name: str) -> list[np.ndarray[Any, Any]]:
    cells = references(file, name)
    if cells is None:  # MATLAB writes the fields of a single struct without references
        return [values(file.dataset(name).id)]
    return [values(target) for target in targets(file, cells, name)]


def _hdf5_texts(file: Hdf5, name: str) -> list[str] | None:
    if name not in file.names():
        return None
    cells = references(file, name)
    if cells is None:
        raise FileFormatError(f"{file.where(name)} is no cell array", _HINT)
    return [text(target) for target in targets(file, cells, name)]
