"""How an HDF5 dataset is stored, looked at before its data are: all inside the file, and as large as claimed."""

from __future__ import annotations

import math
import zlib
from typing import Any

from gradnet.errors import FileFormatError
from gradnet.formats.checks import check_expansion

_DEFLATE, _SHUFFLE, _FLETCHER32 = 1, 2, 3
_FILTERS = (_SHUFFLE, _DEFLATE, _FLETCHER32)  # in the order in which they are applied
_CHECKSUM_BYTES = 4
_DAMAGED = "copy or save it again: it is cut short or damaged"


def check_storage(dataset: Any, where: str, file_size: int) -> int:
    """The bytes that the data take; refused where they are outside the file, not written, or implausibly many.

    dataset: h5py's DatasetID.
    """
    from h5py import h5d

    creation = dataset.get_create_plist()
    layout = creation.get_layout()
    if layout == h5d.VIRTUAL or creation.get_external_count():
        raise FileFormatError(
            f"{where} keeps its data in other files; expected them inside this one, "
            "since they could come from any file on this machine",
            "copy the dataset with all its data into one file",
        )
    entry_bytes, stored = dataset.get_type().get_size(), dataset.get_storage_size()
    claimed: int = 0 if dataset.shape is None else math.prod(dataset.shape) * entry_bytes
    check_expansion(where, claimed, min(stored, file_size))
    if layout == h5d.CHUNKED:
        _check_chunks(dataset, creation, entry_bytes, where, file_size)
    elif stored < claimed:
        raise _unwritten(where, "none of its data are")
    return claimed


def _unwritten(where: str, what: str) -> FileFormatError:
    return FileFormatError(
        f"{where} claims to be larger than what was written: {what} there",
        "write all of it, or make it smaller",
    )


def _check_chunks(dataset: Any, creation: Any, entry_bytes: int, where: str, file_size: int) -> None:
    """Refuse chunks that are missing, or that unpack to more or less than a chunk: HDF5 would crash on some."""
    filters = _filters(creation, entry_bytes, where)
    chunk = creation.get_chunk()
    expected = math.prod(chunk) * entry_bytes
    check_expansion(f"a chunk of {where}", expected, file_size)  # it may be larger than the dataset
    written: list[tuple[tuple[int, ...], int]] = []
    dataset.chunk_iter(lambda info: written.append((info.chunk_offset, info.size)))
    wanted = math.prod(-(-extent // step) for extent, step in zip(dataset.shape, chunk, strict=True))
    if len({offset for offset, _ in written}) != wanted:
        raise _unwritten(where, f"{len(written)} of {wanted} chunks are")
    for offset, size in written:
        is_whole = size == expected
        if filters and size <= file_size:
            skipped, packed = dataset.read_direct_chunk(offset)
            is_whole = _unpacks_to(expected, packed, skipped, filters)
        if not is_whole:
            raise FileFormatError(
                f"{where} has a chunk at {offset} that does not unpack to its {expected:,} bytes", _DAMAGED
            )


def _filters(creation: Any, entry_bytes: int, where: str) -> list[int]:
    """The numbers of the filters that the chunks went through, in their order."""
    found = [creation.get_filter(position) for position in range(creation.get_nfilters())]
    filters = [code for code, *_ in found]
    if filters != [code for code in _FILTERS if code in filters]:
        raise FileFormatError(
            f"{where} is stored through the filters {filters}; "
            "expected at most shuffle (2), then gzip (1), then fletcher32 (3)",
            "store it again with compression='gzip' or with none",
        )
    if any(code == _SHUFFLE and values[:1] != (entry_bytes,) for code, _, values, _ in found):
        raise FileFormatError(f"{where} was shuffled by another width than {entry_bytes} bytes", _DAMAGED)
    return filters


def _unpacks_to(expected: int, packed: bytes, skipped: int, filters: list[int]) -> bool:
    """Whether a chunk has that many bytes. skipped: the bit of each filter that it did not go through."""
    applied = [code for bit, code in enumerate(filters) if not skipped >> bit & 1]
    if _FLETCHER32 in applied:
        if len(packed) < _CHECKSUM_BYTES:
            return False
        packed = packed[:-_CHECKSUM_BYTES]
    if _DEFLATE not in applied:
        return len(packed) == expected
    inflate = zlib.decompressobj()
    return len(inflate.decompress(packed, expected + 1)) == expected and inflate.eof
