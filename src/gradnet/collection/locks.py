"""Long work that only one process may do at a time: the system forgets the lock when its process dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradnet.errors import CollectionError


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, or say at once that another process has it."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise CollectionError(
            f"{directory} cannot be opened: {error.strerror or error}", "check that it is yours to read"
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise CollectionError(
            f"{directory} is being fitted by another process", "try again when it has finished"
        ) from error
    try:
        yield
    finally:
        os.close(handle)
