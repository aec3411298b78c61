"""Reads .h5 files in a child process: no link is followed, nothing outside the file is read, nothing explodes."""

import math
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from manifind.errors import FileFormatError, needing
from manifind.io.checks import DAMAGED, check_expansion, check_ids_shape, check_shape, named_vectors, strings
from manifind.worker import Reply

_DEFLATE, _SHUFFLE, _FLETCHER32 = 1, 2, 3
_FILTERS = (_SHUFFLE, _DEFLATE, _FLETCHER32)  # in the order in which they are applied
_CHECKSUM_BYTES = 4


def _unwritten(where: str, what: str) -> FileFormatError:
    problem = f"{where} claims to be larger than what was written: {what} there"
    return FileFormatError(problem, "write all of it, or make it smaller")


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
            problem = f"{where} has a chunk at {offset} that does not unpack to its {expected:,} bytes"
            raise FileFormatError(problem, DAMAGED)


def _filters(creation: Any, entry_bytes: int, where: str) -> list[int]:
    """The numbers of the filters that the chunks went through, in their order."""
    found = [creation.get_filter(position) for position in range(creation.get_nfilters())]
    filters = [code for code, *_ in found]
    if filters != [code for code in _FILTERS if code in filters]:
        expected = "expected at most shuffle (2), then gzip (1), then fletcher32 (3)"
        problem = f"{where} is stored through the filters {filters}; {expected}"
        raise FileFormatError(problem, "store it again with compression='gzip' or with none")
    if any(code == _SHUFFLE and values[:1] != (entry_bytes,) for code, _, values, _ in found):
        raise FileFormatError(f"{where} was shuffled by another width than {entry_bytes} bytes", DAMAGED)
    return filters


def _unpacks_to(expected: int, packed: bytes, skipped: int, filters: list[int]) -> bool:
    """Whether a chunk has that many bytes. skipped: the bit of each filter that it did not go through."""
    applied = [code for bit, code in enumerate(filters) if not skipped >> bit & 1]
    size = len(packed) - (_CHECKSUM_BYTES if _FLETCHER32 in applied else 0)
    if size < 0 or _DEFLATE not in applied:
        return size == expected
    inflate = zlib.decompressobj()
    return len(inflate.decompress(packed[:size], expected + 1)) == expected and inflate.eof


_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_STARTS = (0, *(512 << doubling for doubling in range(12)))  # where the signature may stand: behind a block of the user
_IDS_AT_A_TIME = 1024


def is_hdf5(path: Path) -> bool:
    """Whether the file starts as HDF5 does, with or without a block of the user in front."""
    with path.open("rb") as stream:
        return any(stream.seek(start) == start and stream.read(len(_SIGNATURE)) == _SIGNATURE for start in _STARTS)


class Hdf5(NamedTuple):
    """An open file. size: its bytes on disk, which bound what may come out of it. root: h5py's. h5py: the module."""

    path: Path
    size: int
    root: Any
    h5py: Any

    def where(self, name: str) -> str:
        return f"{name!r} in {self.path}"

    def names(self, group: str = "") -> list[str]:
        """The names of all members of a group, without a look at what they are; of the file by default."""
        owner = self.member(group) if group else self.root
        return list(owner) if isinstance(owner, self.h5py.Group) else []

    def member(self, name: str) -> Any:
        """The dataset or group at a path such as `glob/V`, refused if a part of it is only a link."""
        found = self.root
        for part in name.split("/"):
            link = found.id.links.get_info(part.encode("utf-8", "surrogateescape"))
            if link.type != self.h5py.h5l.TYPE_HARD:
                raise FileFormatError(
                    f"{self.where(name)} is a soft or external link; expected the data itself, "
                    "since a link can lead to any file on this machine",
                    "copy what it leads to into the file under this name",
                )
            found = found[part]
        return found

    def dataset(self, name: str) -> Any:
        """The dataset of that name, with all its data inside the file and not too much of them."""
        found = self.member(name)
        if not isinstance(found, self.h5py.Dataset):
            problem = f"{self.where(name)} is a group or a type; expected a dataset"
            raise FileFormatError(problem, "store the numbers under it")
        self.check_storage(found.id, self.where(name))
        return found

    def check_storage(self, dataset: Any, where: str) -> int:
        """The bytes that the data of a DatasetID take; refused if outside the file, not written, or far too many."""
        creation = dataset.get_create_plist()
        layout = creation.get_layout()
        if layout == self.h5py.h5d.VIRTUAL or creation.get_external_count():
            raise FileFormatError(
                f"{where} keeps its data in other files; expected them inside this one, "
                "since they could come from any file on this machine",
                "copy the dataset with all its data into one file",
            )
        entry_bytes, stored = dataset.get_type().get_size(), dataset.get_storage_size()
        claimed: int = 0 if dataset.shape is None else math.prod(dataset.shape) * entry_bytes
        check_expansion(where, claimed, min(stored, self.size))
        if layout == self.h5py.h5d.CHUNKED:
            _check_chunks(dataset, creation, entry_bytes, where, self.size)
        elif stored < claimed:
            raise _unwritten(where, "none of its data are")
        return claimed

    def is_matrix(self, name: str) -> bool:
        found = self.member(name)
        try:
            return isinstance(found, self.h5py.Dataset) and found.dtype.kind in "fiub" and len(found.shape or ()) == 2
        except TypeError:  # of entries that NumPy has no type for
            return False

    def numbers(self, name: str, d: int | None = None) -> Any:
        """The dataset of a matrix of real numbers, with d columns or any number of them."""
        dataset = self.dataset(name)
        check_shape(self.where(name), dataset.shape or (), d)
        if dataset.dtype.kind not in "fiub":
            problem = f"{self.where(name)} has the type {dataset.dtype}; expected real numbers"
            raise FileFormatError(problem, "convert it before saving")
        return dataset

    def ids(self, name: str, n: int) -> list[str] | list[int]:
        where, found = self.where(name), self.member(name)
        check_ids_shape(where, getattr(found, "shape", None) or (), n)
        text = self.h5py.check_string_dtype(found.dtype)
        is_variable_text = text is not None and text.length is None
        if is_variable_text and found.chunks is not None:
            problem = f"{where} holds strings of variable length in chunks; expected them one after the other"
            hint = "store ids without chunks and compression, or with one length: numpy.array(ids, dtype='S')"
            raise FileFormatError(problem, hint)
        entries = self.dataset(name)
        if not is_variable_text and entries.dtype.kind not in "iuS":
            problem = f"{where} has the type {entries.dtype}; expected strings or integers"
            raise FileFormatError(problem, "convert the ids")
        if entries.dtype.kind in "iu":
            return entries[()].tolist()  # type: ignore[no-any-return]
        texts, total = list[str](), 0
        for start in range(0, n, _IDS_AT_A_TIME):
            block = entries[start : start + _IDS_AT_A_TIME]
            total += sum(map(len, block))  # those of variable length may all lead to one long text
            check_expansion(where, total, self.size)
            texts += strings(block, where)
        return texts


def open_hdf5(path: Path) -> Hdf5:
    """The file, open for reading until nothing refers to it any more: its datasets are read while they are sent."""
    with needing("data", f"{path} needs h5py, which is not installed"):
        import h5py
    return Hdf5(path, path.stat().st_size, h5py.File(path, "r"), h5py)


def parse_vectors(path: str) -> Reply:
    """Ids, rows and queries from the datasets at the top of the file whose names are those of .npz files."""
    file = open_hdf5(Path(path))
    rows, ids, queries = named_vectors(file, file.names(), 'save it again as file.create_dataset("vectors", data=X)')
    return Reply(ids, {"rows": rows} if queries is None else {"rows": rows, "queries": queries})
