"""The most memory that this process has had, libraries and all."""

from __future__ import annotations

import resource
import sys


def peak_gigabytes() -> float:
    """The peak so far, in 10^9 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e9
