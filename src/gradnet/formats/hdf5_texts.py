"""Texts of any length in HDF5 files, found in the file by hand: HDF5 never comes back from a damaged heap."""

from __future__ import annotations

import mmap
import struct
from typing import Any

from gradnet.errors import FileFormatError
from gradnet.formats.checks import check_expansion
from gradnet.formats.hdf5_file import Hdf5

_ENTRY = struct.Struct("<IQI")  # length of the text, address of a heap, number of an object in it
_HEAP = struct.Struct("<4sB3xQ")  # mark, version, size with this head
_OBJECT = struct.Struct("<HHIQ")  # number, references, nothing, size; the data follow up to a multiple of 8
_ADDRESS_BYTES = (8, 8)  # of addresses and of sizes, in all files that are written today

_Objects = dict[int, tuple[int, int]]


def is_variable_text(found: Any) -> bool:
    """Whether a member of a file is a dataset of strings of variable length."""
    from h5py import Dataset, check_string_dtype

    text = check_string_dtype(found.dtype) if isinstance(found, Dataset) else None
    return text is not None and text.length is None


def read_texts(file: Hdf5, dataset: Any, where: str) -> list[bytes]:
    """The texts of a dataset of strings of variable length, as bytes. dataset: h5py's DatasetID."""
    start, size = dataset.get_offset(), dataset.get_storage_size()
    is_usual = file.root.id.get_create_plist().get_sizes() == _ADDRESS_BYTES
    if start is None or size != _ENTRY.size * dataset.shape[0] or start + size > file.size or not is_usual:
        raise FileFormatError(
            f"{where} holds strings of variable length in chunks or in an unusual way; "
            "expected them one after the other",
            "store ids without chunks and compression, or with one length: numpy.array(ids, dtype='S')",
        )
    with (
        file.path.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return _texts(content, content[start : start + size], file.root.userblock_size, where)


def _texts(content: mmap.mmap, entries: bytes, base: int, where: str) -> list[bytes]:
    heaps: dict[int, _Objects] = {}
    found: list[bytes] = []
    total = 0
    for length, address, number in _ENTRY.iter_unpack(entries):
        if length and address not in heaps:
            heaps[address] = _objects(content, base + address, where)
        start, size = heaps[address].get(number, (0, 0)) if length else (0, 0)
        if length > size:
            raise _damaged(where)
        total += length
        check_expansion(where, total, len(content))  # all entries may lead to the same text
        found.append(content[start : start + length])
    return found


def _objects(content: mmap.mmap, start: int, where: str) -> _Objects:
    """Where the data of each object in a heap start, and how many they are."""
    if start + _HEAP.size > len(content):
        raise _damaged(where)
    mark, version, heap_size = _HEAP.unpack_from(content, start)
    end = start + heap_size
    if (mark, version) != (b"GCOL", 1) or end > len(content):
        raise _damaged(where)
    objects: _Objects = {}
    position = start + _HEAP.size
    while position + _OBJECT.size <= end:
        number, _, _, size = _OBJECT.unpack_from(content, position)
        position += _OBJECT.size
        if number == 0:  # the rest is free
            break
        if size > end - position:
            raise _damaged(where)
        objects[number] = (position, size)
        position += size + -size % 8
    return objects


def _damaged(where: str) -> FileFormatError:
    return FileFormatError(
        f"{where} has strings that lead nowhere in the file", "copy or save it again: it is damaged"
    )
