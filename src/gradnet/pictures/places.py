"""Where the picture of an item lies, by what its collection says of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any


def file_of(manifest: Mapping[str, Any], fields: Mapping[str, Any]) -> Path | None:
    """The file, below the folder that the collection was made of; None where it was made of something else."""
    folder, path = (manifest.get("source") or {}).get("folder"), fields.get("path")
    if not isinstance(folder, str) or not isinstance(path, str) or "\0" in path or "\0" in folder:
        return None
    below = PurePosixPath(path)
    if below.is_absolute() or ".." in below.parts or not below.parts:
        return None
    return Path(folder) / below
