"""Where data sets live: one folder each, under a root that the caller or the environment names."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gradnet.errors import DataError, MissingExtraError

VARIABLE = "GRADNET_DATA"


def data_root(folder: str | os.PathLike[str] | None = None) -> Path:
    """The given folder, else the one that GRADNET_DATA names, else the platform's folder for caches."""
    if folder is not None:
        return Path(folder).expanduser()
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]).expanduser()
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError(
            "the folder for data sets is not named, and finding this system's own needs pooch, "
            "which is not installed",
            f'pip install "gradnet[data]", or name a folder with --folder or {VARIABLE}',
        ) from error
    return Path(pooch.os_cache("gradnet"))


def make_writable(folder: Path) -> None:
    """Make the folder where it is missing; refuse one in which no file can be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written to: {error.strerror or error}",
            f"name another folder with --folder or {VARIABLE}, or make this one yours to write",
        ) from error
