"""Files that appear whole, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gradnet.errors import InputError


@contextmanager
def in_place(path: Path) -> Iterator[Path]:
    """A name beside `path` to write a file at, which takes its place in one step when the block ends.

    Where the block fails, what was at `path` stays, and nothing is left beside it.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        with suppress(OSError):
            partial.unlink()


def put_in_place(path: Path, content: bytes) -> None:
    """Make the file at `path` hold exactly this, in folders that are made where they are missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with in_place(path) as partial:
            partial.write_bytes(content)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}", "choose another path, or make room"
        ) from error
