"""The first look at any file: it exists, it is a plain file that can be read, and it is not empty."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradnet.errors import FileFormatError


def check_regular_file(file: Path, expected: str) -> None:
    """Refuse what is no plain file with something in it. expected: what the caller wants, in words."""
    if not file.exists():
        raise FileFormatError(f"{file} does not exist; {expected}", "check the spelling and the folder")
    if file.is_dir():
        raise FileFormatError(f"{file} is a folder; {expected}", "name one file inside it")
    if not file.is_file():  # reading a pipe or a device could wait for ever
        raise FileFormatError(f"{file} is not a regular file; {expected}", "save it to a file first")
    if file.stat().st_size == 0:
        raise FileFormatError(
            f"{file} is empty (0 bytes); {expected}", "write it again: saving was interrupted"
        )


@contextmanager
def readable(file: Path) -> Iterator[None]:
    """What the system says about a file that cannot be read, as an error of ours."""
    try:
        yield
    except OSError as error:
        raise FileFormatError(
            f"{file} cannot be read: {error.strerror or error}",
            "check that it is yours to read and its disk is there",
        ) from error
