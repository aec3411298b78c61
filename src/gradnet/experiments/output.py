"""Putting a finished rendering in its place: whole, or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from gradnet.errors import InputError


def put_in_place(path: Path, content: bytes) -> None:
    """Make the file at `path` hold exactly this; until then, and if it fails, what was there stays."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_bytes(content)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}", "choose another path, or make room"
        ) from error
