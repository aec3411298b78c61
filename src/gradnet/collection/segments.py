"""Segments: the immutable files beside the database, written for good or not at all."""

from __future__ import annotations

import hashlib
import os
import secrets
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from safetensors.numpy import save as safetensors_bytes

from gradnet.collection.layout import ROLES, SEGMENT_NAME


class Segment(NamedTuple):
    """A file that a commit refers to."""

    role: str
    name: str
    size: int
    sha256: str


def write_segments(folder: Path, parts: Iterable[tuple[str, Any]]) -> list[Segment]:
    """Every segment, on the disk for good, or none. parts: role and content."""
    folder.mkdir(exist_ok=True)
    before = set(folder.iterdir())
    try:
        segments = [_write_segment(folder, *part) for part in parts]
        sync_directory(folder)
    except BaseException:
        for file in set(folder.iterdir()) - before:  # a full disk is not to stay full
            file.unlink()
        raise
    return segments


def remove_unused(folder: Path, used: set[str]) -> None:
    """Old segments go; a reader that still has one open keeps it until it is done."""
    for file in folder.iterdir():
        if SEGMENT_NAME.fullmatch(file.name) and file.name not in used:
            with suppress(OSError):  # the commit stands; what is left over goes with the next one
                file.unlink()


def sync_directory(folder: Path) -> None:
    """Make the names in a folder last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_segment(folder: Path, role: str, content: Any) -> Segment:
    name = f"{role}-{secrets.token_hex(8)}.{ROLES[role]}"
    with open(folder / name, "xb") as file:
        hashed = _HashingFile(file)
        if ROLES[role] == "npy":
            np.lib.format.write_array(hashed, np.ascontiguousarray(content), allow_pickle=False)
        elif ROLES[role] == "npz":
            _write_npz(hashed, content)
        else:
            hashed.write(safetensors_bytes(content))
        file.flush()
        os.fsync(file.fileno())
    return Segment(role, name, hashed.size, hashed.digest.hexdigest())


def _write_npz(file: Any, arrays: dict[str, Any]) -> None:
    """As numpy.savez, which seeks back and forth, where a running digest cannot follow."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


class _HashingFile:
    """A file that keeps count and digest of what goes through it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.size, self.digest = file, 0, hashlib.sha256()

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.digest.update(view)
        self.size += len(view)
        return self._file.write(view)

    def flush(self) -> None:
        """A zip archive asks for it when it is done; the file is flushed when all is written."""
