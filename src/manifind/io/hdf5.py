"""Reads .h5 files in a child process: no link is followed, nothing outside the file is read, nothing explodes."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from manifind.errors import FileFormatError, MissingExtraError
from manifind.io.checks import (
    DAMAGED,
    IDS_NAMES,
    Vectors,
    check_expansion,
    check_ids,
    check_ids_shape,
    check_queries,
    check_shape,
    first_present,
    parse_in_child,
    queries_name,
    rows_name,
    strings,
)
from manifind.worker import Reply


def read_hdf5(path: Path) -> Vectors:
    """Vectors from the dataset with a name that tells, or else from the only matrix, with ids and queries.

    The names are those of .npz files; only datasets at the top of the file count.
    """
    ids, arrays = parse_in_child(f"{__name__}:parse_vectors", path, "HDF5")
    check_shape(str(path), arrays["rows"].shape)
    return Vectors(arrays["rows"], ids, arrays.get("queries"))


# From here on: what runs in the child.

_DEFLATE, _SHUFFLE, _FLETCHER32 = 1, 2, 3
_FILTERS = (_SHUFFLE, _DEFLATE, _FLETCHER32)  # in the order in which they are applied
_CHECKSUM_BYTES = 4


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
        f"{where} claims to be larger than what was written: {what} there", "write all of it, or make it smaller"
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
                f"{where} has a chunk at {offset} that does not unpack to its {expected:,} bytes", DAMAGED
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
        raise FileFormatError(f"{where} was shuffled by another width than {entry_bytes} bytes", DAMAGED)
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


_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_FIRST_BLOCK = 512  # the signature stands at 0, or behind a block of 512 bytes or a doubling of it
_LAST_BLOCK = 1 << 20


class Hdf5(NamedTuple):
    """An open file. root: h5py's. size: its bytes on disk, which bound what may come out of it."""

    path: Path
    size: int
    root: Any

    def where(self, name: str) -> str:
        """How messages call a member of the file."""
        return f"{name!r} in {self.path}"

    def names(self, group: str = "") -> list[str]:
        """The names of all members of a group, without a look at what they are; of the file by default."""
        from h5py import Group

        owner = self.member(group) if group else self.root
        return list(owner) if isinstance(owner, Group) else []

    def member(self, name: str) -> Any:
        """The dataset or group at a path such as `glob/V`, refused if a part of it is only a link."""
        from h5py import h5l

        found = self.root
        for part in name.split("/"):
            link = found.id.links.get_info(part.encode("utf-8", "surrogateescape"))
            if link.type != h5l.TYPE_HARD:
                raise FileFormatError(
                    f"{self.where(name)} is a soft or external link; expected the data itself, "
                    "since a link can lead to any file on this machine",
                    "copy what it leads to into the file under this name",
                )
            found = found[part]
        return found

    def dataset(self, name: str) -> Any:
        """The dataset of that name, with all its data inside the file and not too much of them."""
        from h5py import Dataset

        found = self.member(name)
        if not isinstance(found, Dataset):
            raise FileFormatError(
                f"{self.where(name)} is a group or a type; expected a dataset", "store the numbers under it"
            )
        check_storage(found.id, self.where(name), self.size)
        return found

    def numbers(self, name: str, check: Callable[[str, tuple[int, ...]], None]) -> Any:
        """The dataset of that name, if it holds real numbers. check: refuses other shapes."""
        dataset = self.dataset(name)
        check(self.where(name), dataset.shape or ())
        if dataset.dtype.kind not in "fiub":
            raise FileFormatError(
                f"{self.where(name)} has the type {dataset.dtype}; expected real numbers", "convert it before saving"
            )
        return dataset


def is_hdf5(path: Path) -> bool:
    """Whether the file starts as HDF5 does, with or without a block of the user in front."""
    with path.open("rb") as stream:
        position = 0
        while position <= _LAST_BLOCK:
            stream.seek(position)
            if stream.read(len(_SIGNATURE)) == _SIGNATURE:
                return True
            position = position * 2 or _FIRST_BLOCK
    return False


def open_hdf5(path: Path) -> Hdf5:
    """The file, open for reading until nothing refers to it any more: its datasets are read while they are sent."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError(f"{path} needs h5py, which is not installed", 'pip install "manifind[data]"') from error
    return Hdf5(path, path.stat().st_size, h5py.File(path, "r"))


_IDS_AT_A_TIME = 1024


def _variable_texts(file: Hdf5, dataset: Any, where: str) -> list[str]:
    """The ids in a dataset of strings of variable length, which may all lead to one long text."""
    texts: list[str] = []
    total = 0
    for start in range(0, len(dataset), _IDS_AT_A_TIME):
        block = dataset[start : start + _IDS_AT_A_TIME]
        total += sum(map(len, block))
        check_expansion(where, total, file.size)
        texts += strings(block, where)
    return texts


def parse_vectors(path: str) -> Reply:
    """The ids, and the arrays `rows` and `queries`."""
    file = open_hdf5(Path(path))
    present = file.names()
    hint = 'save it again as file.create_dataset("vectors", data=X)'
    name = rows_name(file.path, present, lambda name: _is_matrix(file, name), hint)
    arrays = {"rows": file.numbers(name, check_shape)}
    n, d = arrays["rows"].shape
    others = queries_name(present, name)
    if others is not None:
        arrays["queries"] = file.numbers(others, lambda where, shape: check_queries(where, shape, d))
    return Reply(_ids(file, present, n), arrays)


def _is_matrix(file: Hdf5, name: str) -> bool:
    from h5py import Dataset

    found = file.member(name)
    try:
        return isinstance(found, Dataset) and found.dtype.kind in "fiub" and len(found.shape or ()) == 2
    except TypeError:  # of entries that NumPy has no type for
        return False


def _ids(file: Hdf5, present: list[str], n: int) -> list[str] | list[int] | None:
    name = first_present(IDS_NAMES, present)
    if name is None:
        return None
    from h5py import check_string_dtype

    where, found = file.where(name), file.member(name)
    check_ids_shape(where, getattr(found, "shape", None) or (), n)
    text = check_string_dtype(found.dtype)
    is_variable_text = text is not None and text.length is None
    if is_variable_text and found.chunks is not None:
        raise FileFormatError(
            f"{where} holds strings of variable length in chunks; expected them one after the other",
            "store ids without chunks and compression, or with one length: numpy.array(ids, dtype='S')",
        )
    entries, ids = file.dataset(name), []
    if is_variable_text:
        ids = _variable_texts(file, entries, where)
    elif entries.dtype.kind in "iuS":
        ids = strings(entries[()], where) if entries.dtype.kind == "S" else entries[()].tolist()
    else:
        raise FileFormatError(f"{where} has the type {entries.dtype}; expected strings or integers", "convert the ids")
    check_ids(where, ids)
    return ids
