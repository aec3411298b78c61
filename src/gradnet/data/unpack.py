"""Unpacking an archive, hostile until checked: beside its place first, and moved there when it is complete."""

from __future__ import annotations

import gzip
import secrets
import shutil
import tarfile
import zipfile
import zlib
from contextlib import closing
from pathlib import Path, PurePosixPath

from gradnet.data.archives import BLOCK, Bound, Member, members, refused
from gradnet.errors import DataError
from gradnet.progress import Listener, Progress, ignore

_DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error),
    *(EOFError, ValueError, RuntimeError),
)


def unpack(archive: Path, target: Path, declared: int | None = None, listener: Listener = ignore) -> None:
    """Make `target` the folder of what is in the archive, a zip or a tar file; nothing lies there otherwise.

    declared: bytes that the archive should have; None to go by those that it has.
    """
    growing = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        try:
            growing.mkdir(parents=True)
            _unpack(archive, growing, Bound(archive, declared), listener)
            growing.rename(target)
        finally:
            shutil.rmtree(growing, ignore_errors=True)
    except _DAMAGED as error:
        raise refused(archive, f"cannot be unpacked: {str(error)[:200]}") from error
    except OSError as error:
        raise DataError(
            f"{archive} cannot be unpacked to {target}: {error.strerror or error}",
            "make room, or name another folder with --folder",
        ) from error


def _unpack(archive: Path, folder: Path, bound: Bound, listener: Listener) -> None:
    done = 0
    with closing(members(archive, bound)) as found:
        for done, member in enumerate(found, 1):
            place = folder / PurePosixPath(member.name)
            try:
                _write(member, place, bound)
            except (FileExistsError, NotADirectoryError) as error:
                raise refused(archive, f"has two members at one place: {member.name[:100]!r}") from error
            listener(Progress(f"unpacking {archive.name}", done, done, member.name[-40:]))
    if not done:
        raise refused(archive, "has no file in it")


def _write(member: Member, place: Path, bound: Bound) -> None:
    """Write the bytes and nothing else: neither modes nor owners nor times."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as out, member.open() as stream:
        while block := stream.read(BLOCK):
            bound.take(size=len(block))
            out.write(block)
