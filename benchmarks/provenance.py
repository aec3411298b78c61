"""Where and with what a number was measured: the machine and the versions."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = ("manifind", "numpy", "scipy", "scikit-learn", "torch", "faiss-cpu")


def provenance() -> dict[str, Any]:
    """The machine and the versions, as they stand beside every result."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "machine": {"cores": n_cores(), "processor": _processor(), "memory_GB": round(memory)},
        "versions": {"python": platform.python_version(), **{package: version(package) for package in _PACKAGES}},
    }


def n_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
