"""What processes of the server share: progress and errors as JSON lines on standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict

from gradnet.errors import GradNetError
from gradnet.progress import Listener, Progress

_NICE = 10  # whoever searches meanwhile goes first


def report(progress: Progress) -> None:
    """A listener that prints."""
    sys.stdout.write(json.dumps(asdict(progress)) + "\n")
    sys.stdout.flush()


def run(work: Callable[[Listener], None]) -> None:
    """Do the work of this process, and end with its error in words."""
    os.nice(_NICE)
    try:
        work(report)
    except GradNetError as error:
        sys.stdout.write(json.dumps({"error": error.problem, "hint": error.hint or ""}) + "\n")
        sys.exit(1)
