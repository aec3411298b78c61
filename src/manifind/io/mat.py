"""Reads vectors and regional descriptors from MATLAB's .mat files, version 5 to 7.3; parsed in a child process."""

import math
import os
import reprlib
import struct
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Ints
from manifind.errors import FileFormatError
from manifind.io.checks import DAMAGED, check_expansion, check_shape, parse_in_child, regular_file
from manifind.io.hdf5 import Hdf5, is_hdf5, open_hdf5
from manifind.text import are, count
from manifind.worker import Reply


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
    with regular_file(path, "expected regional descriptors in a .mat file") as file:
        arrays = parse_in_child(f"{__name__}:parse_regions", file, "a MATLAB file").arrays
    return Regions(*(arrays[name] for name in Regions._fields))


# From here on: what runs in the child.

_HEADER_BYTES = 128
_ORDER = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}  # by version and mark of endianness
_VARIABLE, _COMPRESSED = 14, 15
_TYPES = {"double": "f8", "single": "f4", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4"}
_TYPES |= {"uint32": "u4", "int64": "i8", "uint64": "u8", "logical": "u1"}  # by MATLAB's class
_POINTER = 8  # bytes that an entry of other classes takes at least
_DEEPEST = 4  # lists inside structs and texts inside cells need 1


def parse_vectors(path: str) -> Reply:
    """Rows and queries of the revisited benchmark's features, or the global ones of Iscen et al.

    The former have matrices X (d, n) and, with the queries, Q (d, m): items are columns, in files of MATLAB 5
    to 7.3. The latter have groups glob and reg in MATLAB 7.3; `read_regions` reads the regional ones.
    """
    file, found = Path(path), dict[str, Any]()
    if is_hdf5(file):
        hdf5 = open_hdf5(file)
        if "glob" in hdf5.names():
            return _global_vectors(hdf5)
        # HDF5 shows MATLAB's matrices with their axes swapped.
        found = {name: hdf5.numbers(name) for name in ("X", "Q") if name in hdf5.names()}
    else:
        found = load_variables(file, ("X", "Q"))
        for name, matrix in found.items():
            if not isinstance(matrix, np.ndarray):
                problem = f"{name!r} in {file} is a {type(matrix).__name__}; expected a matrix of real numbers"
                raise FileFormatError(problem, "save the vectors as columns of one matrix")
            check_shape(f"{name!r} in {file}", matrix.shape)
            found[name] = matrix.T
    if "X" not in found:
        raise FileFormatError(
            f"{file} has no matrix X; expected X (d x n) and Q (d x m) with one column an image, "
            "or the groups glob and reg in MATLAB 7.3",
            "save the vectors as columns of X, or with numpy.save as .npy, where they are rows",
        )
    if "Q" in found:
        check_shape(f"'Q' in {file}", found["Q"].shape, found["X"].shape[1])
    return Reply(None, {{"X": "rows", "Q": "queries"}[name]: matrix for name, matrix in found.items()})


def load_variables(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Those of the variables of a file of version 5 to 7 that it has; the others are passed over.

    Matrices of numbers come as arrays in the type that MATLAB gives them, lines of text as str, cell arrays as
    lists, struct arrays as lists of dicts, both in MATLAB's order, column by column.
    """
    import scipy.io

    try:
        with path.open("rb") as stream:
            _check_variables(stream, path)
            listed = [one for one in scipy.io.whosmat(stream) if one[0] in names]
            for name, shape, kind in listed:
                if len(shape) < (1 if kind == "char" else 2) or min(shape) < 0:  # SciPy leaves out the length of a text
                    raise ValueError(f"{name!r} has the shape {shape}")
                width = np.dtype(_TYPES[kind]).itemsize if kind in _TYPES else _POINTER
                check_expansion(f"{name!r} in {path}", math.prod(shape) * width, path.stat().st_size)
            if len({name for name, *_ in listed}) != len(listed):
                raise ValueError(f"it has two variables of one name among {[name for name, *_ in listed]}")
            found = scipy.io.loadmat(stream, variable_names=list(names))
        return {name: _value(found[name], kind, f"{name!r} in {path}") for name, _, kind in listed}
    except FileFormatError:
        raise
    except Exception as error:  # what SciPy raises on damage is of many kinds
        problem = f"{path} cannot be read as a MATLAB file: {str(error)[:300] or type(error).__name__}"
        hint = "copy or save it again, in MATLAB with save -v7: it is cut short, damaged or in another format"
        raise FileFormatError(problem, hint) from error


def _check_variables(stream: Any, path: Path) -> None:
    """Refuse other versions, and variables that the file does not hold to their end: SciPy reads some of them."""
    size = path.stat().st_size
    order = _ORDER.get(stream.read(_HEADER_BYTES)[-4:])
    if order is None:
        raise ValueError("it does not start with the header of version 5, nor is it of version 7.3")
    position = _HEADER_BYTES
    while position < size:
        stream.seek(position)
        kind, length = struct.unpack(f"{order}II", stream.read(8).ljust(8, b"\0"))
        position += 8 + length
        if position > size:
            missing = position - size
            raise ValueError(f"{count(missing, 'byte')} {are(missing)} missing at its end")
        if kind not in (_VARIABLE, _COMPRESSED):
            raise ValueError(f"it has an element of type {kind} where a variable should be")


def _value(value: Any, kind: str, where: str) -> Any:
    plain = _plain(value, where, 0)
    is_number = kind in _TYPES and isinstance(plain, np.ndarray)
    return plain.astype(_TYPES[kind], copy=False) if is_number else plain  # MATLAB stores small numbers in few bytes


def _plain(value: Any, where: str, depth: int) -> Any:
    """Numbers as they are, and what SciPy makes of text, cells and structs as str, list and dict."""
    if depth > _DEEPEST:
        raise ValueError(f"{where} has arrays inside arrays, more than {_DEEPEST} deep")
    kind = value.dtype.kind if type(value) is np.ndarray else ""
    if kind == "V" and value.dtype.names:
        fields = value.dtype.names
        return [{name: _plain(one[name], where, depth + 1) for name in fields} for one in value.ravel("F")]
    if kind == "O":
        return [_plain(one, where, depth + 1) for one in value.ravel("F")]
    if kind == "U":
        if value.size > 1:
            raise ValueError(f"{where} has text of {value.size} lines; expected one line")
        return str(value.item()) if value.size else ""
    if kind and kind in "fiub":
        return value
    held = value.dtype if kind else type(value).__name__
    raise ValueError(f"{where} holds {held}; expected real numbers, text, cells or structs")


_SMALLEST_OBJECT = 64  # bytes that the header of any HDF5 object takes, and more


def cells(file: Hdf5, name: str, read: Callable[[Any], Any]) -> list[Any] | None:
    """What `read` makes of the dataset in each cell, or None where the dataset of that name is no cell array."""
    dataset, where, h5py = file.dataset(name), file.where(name), file.h5py
    shape = dataset.shape or ()
    if h5py.check_ref_dtype(dataset.dtype) is not h5py.Reference:
        return None
    if len(shape) != 2 or min(shape) != 1:
        problem = f"{where} is a cell array of shape {shape}; expected one row or one column of cells"
        raise FileFormatError(problem, "save it again with one cell for each image")
    if dataset.size * _SMALLEST_OBJECT > file.size:
        problem = f"{where} has {dataset.size:,} cells, for which {file.size:,} bytes of file have no room"
        raise FileFormatError(problem, DAMAGED)
    unpacked, found = 0, []
    for position, reference in enumerate(dataset[()].ravel()):
        cell = f"cell {position} (counted from 0) of {where}"
        target = file.root[reference] if reference else None
        if not isinstance(target, h5py.Dataset):
            raise FileFormatError(f"{cell} leads to no array; expected one inside the file", DAMAGED)
        unpacked += file.check_storage(target.id, cell)
        check_expansion(where, unpacked, file.size)  # many may lead to the same array
        found.append(read(target))
    return found


def _is_empty(target: Any) -> bool:
    """Whether MATLAB meant an array without entries, of which the file holds the size instead."""
    if "MATLAB_empty" not in target.attrs:
        return False
    mark = target.attrs.get_id("MATLAB_empty")
    return mark.shape == () and mark.dtype.kind in "iu" and bool(target.attrs["MATLAB_empty"])


def values(target: Any) -> np.ndarray[Any, Any]:
    """All entries of an array, in a row as MATLAB counts them; none where it is marked as empty."""
    if _is_empty(target):
        return np.empty(0)
    if target.dtype.kind not in "fiub":
        raise ValueError(f"an array has the type {target.dtype} where numbers were expected")
    return target[()].ravel()  # type: ignore[no-any-return]


def text(target: Any) -> str:
    """The text of one row of characters."""
    codes = values(target)
    if not codes.size:
        return ""
    if codes.dtype.kind != "u" or codes.dtype.itemsize != 2 or len(target.shape) != 2 or target.shape[1] != 1:
        raise ValueError(f"an array of {codes.dtype}, {target.shape}, stands where one line of text should")
    return codes.astype("<u2").tobytes().decode("utf-16-le")


_HINT = "take the file as its authors publish it: cell arrays V and Q in the groups glob and reg"


class _CellRows:
    """The matrices of a cell array under one another, read when a slice is wanted. ends: of each cell's rows."""

    def __init__(self, file: Hdf5, name: str) -> None:
        found = cells(file, name, lambda target: target)
        if found is None:
            raise FileFormatError(f"{file.where(name)} holds no references; expected a cell array", _HINT)
        self._cells, first = found, found[0]
        for position, target in enumerate(found):
            _check_regions(target, first, f"cell {position} (counted from 0) of {file.where(name)}")
        self.ends = np.cumsum([target.shape[0] for target in found])
        self.cell_of = np.repeat(np.arange(len(found)), np.diff(self.ends, prepend=0))
        self.shape, self.dtype = (int(self.ends[-1]), first.shape[1]), first.dtype

    def __getitem__(self, rows: slice) -> np.ndarray[Any, Any]:
        stop = min(rows.stop, self.shape[0])
        first, last = int(self.cell_of[rows.start]), int(self.cell_of[stop - 1])
        start = rows.start - (int(self.ends[first - 1]) if first else 0)
        joined = np.concatenate([one[()] for one in self._cells[first : last + 1]])
        return joined[start : start + stop - rows.start]


def _check_regions(target: Any, first: Any, cell: str) -> None:
    """Refuse a cell without rows, or of others than the first cell has."""
    shape: tuple[int, ...] = target.shape or ()
    if _is_empty(target) or len(shape) != 2 or 0 in shape or target.dtype.kind not in "fiub":
        problem = f"{cell} holds {target.dtype}, shape {shape}; expected a matrix of numbers with at least one region"
        raise FileFormatError(problem, "give every image at least one vector")
    if (shape[1], target.dtype) != (first.shape[1], first.dtype):
        expected = f"expected {first.shape[1]} of {first.dtype}, as cell 0 has"
        problem = f"{cell} has {shape[1]} dimensions of {target.dtype}; {expected}"
        raise FileFormatError(problem, "describe all images in the same way")


def parse_regions(path: str) -> Reply:
    """The arrays of `Regions` by their names."""
    file = Path(path)
    if not is_hdf5(file):
        raise FileFormatError(f"{file} is not HDF5; expected MATLAB 7.3 with the groups glob and reg", _HINT)
    images, queries = _cell_arrays(open_hdf5(file), "reg")
    parts = (images, images.cell_of, queries, queries.cell_of)
    return Reply(None, dict(zip(Regions._fields, parts, strict=True)))


def _cell_arrays(file: Hdf5, group: str) -> tuple[_CellRows, _CellRows]:
    names = file.names(group) if group in file.names() else []
    if not {"V", "Q"} <= set(names):
        problem = f"{file.where(group)} has the members {reprlib.repr(names)}"
        raise FileFormatError(f"{problem}; expected V for the images and Q for the queries", _HINT)
    images, queries = _CellRows(file, f"{group}/V"), _CellRows(file, f"{group}/Q")
    check_shape(file.where(f"{group}/Q"), queries.shape, images.shape[1])
    return images, queries


def _global_vectors(file: Hdf5) -> Reply:
    """Vectors of whole images from the cell arrays glob.V and glob.Q, one vector a cell."""
    images, queries = _cell_arrays(file, "glob")
    for name, rows in (("V", images), ("Q", queries)):
        if len(rows.ends) != rows.shape[0]:
            problem = f"'glob/{name}' in {file.path} has {rows.shape[0]} vectors in {len(rows.ends)} cells"
            expected = "expected one in each, for the whole image"
            raise FileFormatError(f"{problem}; {expected}", "read regions with read_regions")
    return Reply(None, {"rows": images, "queries": queries})
