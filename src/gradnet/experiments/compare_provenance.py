"""Where and with what a comparison was measured: the machine and the versions."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = ("gradnet", "numpy", "scipy", "scikit-learn", "torch", "faiss-cpu")


def versions() -> dict[str, str]:
    """Of Python and of what the methods compute with."""
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


def machine() -> dict[str, Any]:
    """What the seconds depend on."""
    return {
        "processor": _processor(),
        "cores": _usable_cores(),
        "threads": os.environ.get("OMP_NUM_THREADS", "not set"),
    }


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
