"""Files as MATLAB and the authors of published sets write them, small enough to be made in a test."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

MI_INT8, MI_UINT8, MI_INT32, MI_UINT32, MI_DOUBLE, MI_MATRIX, MI_COMPRESSED = 1, 2, 5, 6, 9, 14, 15
CELL, DOUBLE = 1, 6


class Mat73:
    """A MATLAB 7.3 file being written: HDF5 with axes swapped, cells as references into the group #refs#."""

    def __init__(self, file: Any) -> None:
        self.file, self.refs = file, file.create_group("#refs#")

    def _mark(self, target: Any, kind: str) -> Any:
        target.attrs["MATLAB_class"] = np.bytes_(kind)
        return target

    def numbers(self, name: str, matrix: Any, group: Any = None) -> Any:
        matrix = np.atleast_2d(matrix)
        owner = self.file if group is None else group
        kind = {"f4": "single", "f8": "double"}.get(matrix.dtype.str[1:], matrix.dtype.name)
        if matrix.size:
            return self._mark(owner.create_dataset(name, data=matrix.T), kind)
        empty = self._mark(owner.create_dataset(name, data=np.array(matrix.shape, np.uint64)), kind)
        empty.attrs["MATLAB_empty"] = np.uint8(1)
        return empty

    def hidden(self, value: Any) -> Any:
        """A reference to a value in #refs#."""
        name = f"r{len(self.refs)}"
        if not isinstance(value, str):
            return self.numbers(name, value, self.refs).ref
        if not value:
            return self._mark(self.numbers(name, np.empty((0, 0)), self.refs), "char").ref
        codes = np.frombuffer(value.encode("utf-16-le"), np.uint16)[None]
        return self._mark(self.numbers(name, codes, self.refs), "char").ref

    def references(self, name: str, targets: Sequence[Any], group: Any = None, column: bool = True) -> Any:
        import h5py

        cells = np.empty((len(targets), 1) if column else (1, len(targets)), h5py.ref_dtype)
        cells.flat = targets
        return (self.file if group is None else group).create_dataset(name, data=cells, dtype=h5py.ref_dtype)

    def cells(self, name: str, values: Sequence[Any], group: Any = None, column: bool = True) -> Any:
        targets = [self.hidden(value) for value in values]
        return self._mark(self.references(name, targets, group, column), "cell")

    def structs(self, name: str, structs: Sequence[dict[str, Any]]) -> Any:
        group = self._mark(self.file.create_group(name), "struct")
        for field in structs[0]:
            if len(structs) == 1:
                self.numbers(field, structs[0][field], group)
            else:
                self.references(field, [self.hidden(one[field]) for one in structs], group)
        return group


@contextmanager
def mat73(path: Path) -> Iterator[Mat73]:
    """A MATLAB 7.3 file, open for writing."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        yield Mat73(file)
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def published_by_iscen(path: Path, images: Sequence[np.ndarray], queries: Sequence[np.ndarray], **options: Any) -> Path:
    """Cell arrays of regions in `reg`, and in `glob` the mean of each image's; every matrix (regions, d)."""
    with mat73(path) as mat:
        for group, of in (("glob", lambda regions: regions.mean(0, keepdims=True)), ("reg", lambda regions: regions)):
            owner = mat.file.create_group(group)
            mat.cells("V", [of(one).T for one in images], owner, **options)
            mat.cells("Q", [of(one).T for one in queries], owner, **options)
    return path


def cell_array(texts: Sequence[str]) -> np.ndarray:
    """What SciPy writes as a cell array of one row."""
    cells = np.empty((1, len(texts)), object)
    cells[0] = texts
    return cells


def struct_array(structs: Sequence[dict[str, Any]]) -> np.ndarray:
    """What SciPy writes as a struct array of one column."""
    array = np.empty((len(structs), 1), [(field, object) for field in structs[0]])
    for row, one in enumerate(structs):
        array[row, 0] = tuple(one.values())
    return array


def mat5(path: Path, compressed: bool = True, **variables: Any) -> Path:
    """A MATLAB 5 file with these variables, named as they are even where SciPy would append a suffix."""
    with path.open("wb") as stream:
        scipy.io.savemat(stream, variables, do_compression=compressed)
    return path


def element(kind: int, data: bytes, order: str = "<") -> bytes:
    """One element of a MATLAB 5 file."""
    return struct.pack(order + "II", kind, len(data)) + data + bytes(-len(data) % 8)


def array(name: str, kind: int, shape: Sequence[int], data: bytes, order: str = "<", flags: int = 0) -> bytes:
    """An array of a MATLAB 5 file, `data` the elements behind its head."""
    head = element(MI_UINT32, struct.pack(order + "II", kind | flags, 0), order)
    head += element(MI_INT32, struct.pack(f"{order}{len(shape)}i", *shape), order)
    return element(MI_MATRIX, head + element(MI_INT8, name.encode(), order) + data, order)


def by_hand(*arrays: bytes, order: str = "<") -> bytes:
    """A MATLAB 5 file of these arrays, stored."""
    mark = {"<": b"\x00\x01IM", ">": b"\x01\x00MI"}[order]
    return b"MATLAB 5.0 MAT-file".ljust(124) + mark + b"".join(arrays)


def deflated(content: bytes) -> bytes:
    """An array of a MATLAB 5 file, compressed."""
    packed = zlib.compress(content)
    return struct.pack("<II", MI_COMPRESSED, len(packed)) + packed
