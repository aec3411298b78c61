"""What every kept result carries: the command, the versions, the machine, the code and the data behind it."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any

import gradnet
from gradnet.experiments.compare_provenance import machine, versions
from gradnet.training.learning import gpu_name


def provenance(command: str, digest: str) -> dict[str, Any]:
    """command: runs this alone. data: SHA-256 of the question. code: of the package's files.

    load: how many processes ran or waited in the last minute, this one among them: what seconds are worth.
    """
    return {
        "command": command,
        "data": digest,
        "versions": versions(),
        "machine": {**machine(), "gpu": gpu_name(), "load": _load()},
        "code": code_digest(),
    }


def is_current(record: dict[str, Any], digest: str) -> bool:
    """Whether a kept result is of this data and this version of gradnet."""
    return record.get("data") == digest and record.get("versions", {}).get("gradnet") == versions()["gradnet"]


def _load() -> float | None:
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


@cache
def code_digest() -> str:
    """SHA-256 of all Python files of the package, by name."""
    root = Path(gradnet.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
