"""Troubles that a process can bring upon itself for a while: no room on the disk, and nothing that it may write."""

from __future__ import annotations

import ctypes
import os
import resource
import stat
from contextlib import contextmanager, suppress

_NEW_MOUNTS, _PRIVATE_BELOW = 0x20000, 0x44000  # CLONE_NEWNS; MS_REC and MS_PRIVATE
_NOBODY = 65534


@contextmanager
def files_of_at_most(n_bytes):
    """No file grows beyond a size; Python ignores the signal, so that whoever writes hears of it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def nothing_to_write(folder):
    """What is in a folder can be read and not be written; nothing binds root, so root becomes somebody else."""
    if os.geteuid() == 0:
        os.setegid(_NOBODY)
        os.seteuid(_NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)
        return
    files = [folder, *folder.rglob("*")]
    for file in files:
        file.chmod(file.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    try:
        yield
    finally:
        for file in files:
            file.chmod(file.stat().st_mode | stat.S_IWUSR)


@contextmanager
def full_disk(folder):
    """The disk of a folder is full."""
    filler = folder / "filler"
    with open(filler, "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 12))
    try:
        yield
    finally:
        filler.unlink()


def give_own_disk(folder, n_bytes):
    """Put a small disk at a folder that only this process sees; OSError where that is not allowed."""
    system = ctypes.CDLL(None, use_errno=True)
    for done in (
        lambda: system.unshare(_NEW_MOUNTS),
        lambda: system.mount(b"none", b"/", None, _PRIVATE_BELOW, None),
        lambda: system.mount(b"none", bytes(folder), b"tmpfs", 0, b"size=%d" % n_bytes),
    ):
        if done():
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
