"""Archives of data sets: listed and unpacked, hostile until checked."""

import gzip
import secrets
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, BinaryIO, TypeAlias

from manifind.errors import DataError, system_errors_as
from manifind.progress import Listener, Progress, ignore

_BLOCK = 1 << 20  # the most bytes that are read at once
# Pictures and descriptors barely shrink in an archive; texts shrink to about a tenth.
_MOST_GROWTH = 20
_SMALL_BYTES, _SMALL_COUNT = 16 << 20, 1000  # always allowed
_BYTES_PER_MEMBER = 1000
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others unpack without a bound on memory
_GZIP = b"\x1f\x8b"
# A path that stays inside its folder and what opens the file there, for each regular file.
_Members: TypeAlias = Generator[tuple[str, Callable[[], IO[bytes]]], None, None]


class _Bound:
    """How much may still come out of an archive. declared: the bytes that it should have itself."""

    def __init__(self, archive: Path, declared: int | None) -> None:
        size = archive.stat().st_size if declared is None else declared
        self._archive = archive
        self._bytes = max(_SMALL_BYTES, _MOST_GROWTH * size)
        self._members = _SMALL_COUNT + size // _BYTES_PER_MEMBER

    def take(self, members: int = 0, size: int = 0) -> None:
        """Count so many members and bytes; refuse the archive where it is too many."""
        self._members -= members
        self._bytes -= size
        if self._bytes < 0 or self._members < 0:
            what = "members" if self._members < 0 else "bytes"
            raise _refused(self._archive, f"has far more {what} in it than an archive of its size should")


def _refused(archive: Path, problem: str) -> DataError:
    return DataError(f"{archive} {problem}", "it is damaged or not what it should be: remove it and get it again")


def _in_zip(archive: Path, bound: _Bound) -> _Members:
    with zipfile.ZipFile(archive) as file:
        infos = file.infolist()
        bound.take(members=len(infos))
        for info in infos:
            kind = stat.S_IFMT(info.external_attr >> 16)
            _check(archive, info.filename, kind in (0, stat.S_IFREG, stat.S_IFDIR))
            if info.compress_type not in _METHODS:
                raise _refused(archive, f"is compressed by the method {info.compress_type}, not 0 or 8")
            if not info.is_dir():
                yield info.filename, partial(file.open, info)


def _in_tar(archive: Path, bound: _Bound) -> _Members:
    with archive.open("rb") as raw:
        is_packed = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        stream: Any = _Cautious(gzip.GzipFile(fileobj=raw) if is_packed else raw)
        with tarfile.open(fileobj=stream, mode="r:") as file:
            for info in file:
                bound.take(members=1)
                _check(archive, info.name, info.isreg() or info.isdir())
                if info.isreg():
                    yield info.name, partial(file.extractfile, info)  # type: ignore[misc]
            stream.seek(file.offset)
            _check_end(stream, bound)


class _Cautious:
    """A stream that gives no more at once than a block: tarfile reads a header of any claimed length whole."""

    def __init__(self, stream: gzip.GzipFile | BinaryIO) -> None:
        self.seek, self.tell, self._stream = stream.seek, stream.tell, stream

    def read(self, size: int) -> bytes:
        if size > _BLOCK:
            raise tarfile.ReadError(f"a header claims {size:,} bytes")
        return self._stream.read(size)


def _check_end(stream: _Cautious, bound: _Bound) -> None:
    """Refuse a tar file that does not end as it should: tarfile takes a damaged header for the end."""
    is_ended = False
    while block := stream.read(_BLOCK):
        bound.take(size=len(block))
        if block.strip(b"\0"):
            raise tarfile.ReadError("one of its headers is damaged")
        is_ended = True
    if not is_ended:
        raise tarfile.ReadError("it is cut short")


def _check(archive: Path, name: str, is_plain: bool) -> None:
    """Refuse links, devices, and names that could lead out of their folder on any system."""
    if not is_plain:
        raise _refused(archive, f"has a link or a device in it: {name[:100]!r}")
    path = PureWindowsPath(name)  # takes both kinds of slash for one
    if path.drive or path.root or ".." in path.parts or "\0" in name:
        raise _refused(archive, f"has a member that would leave its folder: {name[:100]!r}")


_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, RuntimeError)


def unpack(archive: Path, target: Path, declared: int | None = None, listener: Listener = ignore) -> None:
    """Make `target` the folder of what is in the archive, a zip or a tar file; nothing lies there otherwise.

    declared: bytes that the archive should have; None to go by those that it has.
    """
    growing = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    hint = "make room, or name another folder with --folder"
    with system_errors_as(DataError, f"{archive} cannot be unpacked to {target}", hint):
        try:
            growing.mkdir(parents=True)
            _unpack(archive, growing, _Bound(archive, declared), listener)
            growing.rename(target)
        except _DAMAGED as error:
            raise _refused(archive, f"cannot be unpacked: {str(error)[:200]}") from error
        finally:
            shutil.rmtree(growing, ignore_errors=True)


def _unpack(archive: Path, folder: Path, bound: _Bound, listener: Listener) -> None:
    """Write the bytes of the regular files and nothing else: neither modes nor owners nor times."""
    done, members = 0, (_in_zip if zipfile.is_zipfile(archive) else _in_tar)(archive, bound)
    with closing(members):
        for done, (name, open_member) in enumerate(members, 1):
            place = folder / PurePosixPath(name)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as out, open_member() as stream:
                    while block := stream.read(_BLOCK):
                        bound.take(size=len(block))
                        out.write(block)
            except (FileExistsError, NotADirectoryError) as error:
                raise _refused(archive, f"has two members at one place: {name[:100]!r}") from error
            listener(Progress(f"unpacking {archive.name}", done, done, name[-40:]))
    if not done:
        raise _refused(archive, "has no file in it")
