"""HDF5 files opened with suspicion: no link is followed, nothing outside the file is read, nothing explodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradnet.errors import FileFormatError, GradNetError, MissingExtraError
from gradnet.formats.hdf5_storage import check_storage

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

    def numbers(self, name: str, check: Callable[[str, tuple[int, ...]], None]) -> np.ndarray[Any, Any]:
        """All entries of the dataset of that name, if they are real numbers. check: refuses other shapes."""
        dataset = self.dataset(name)
        check(self.where(name), dataset.shape or ())
        if dataset.dtype.kind not in "fiub":
            raise FileFormatError(
                f"{self.where(name)} has the type {dataset.dtype}; expected real numbers",
                "convert it before saving",
            )
        entries: np.ndarray[Any, Any] = dataset[()]
        return entries


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


@contextmanager
def opened(path: Path) -> Iterator[Hdf5]:
    """The file, open for reading; whatever h5py raises on the way comes out as a FileFormatError."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError(
            f"{path} needs h5py, which is not installed", 'pip install "gradnet[data]"'
        ) from error
    try:
        with h5py.File(path, "r") as root:
            yield Hdf5(path, path.stat().st_size, root)
    except GradNetError:
        raise
    except Exception as error:  # what h5py raises on damage is not documented and is of many kinds
        raise FileFormatError(
            f"{path} cannot be read as HDF5: {str(error)[:200] or type(error).__name__}",
            "copy or save it again: it is cut short, damaged or in another format",
        ) from error
