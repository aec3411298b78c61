"""The command line: one file per verb. People read tables on a terminal, programs read --json."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from manifind.cli.interrupts import INTERRUPTED, quiet_interrupts


def main() -> None:
    """Run the command line; a user's mistake ends in one clear sentence, never in a traceback."""
    try:
        with quiet_interrupts():
            _run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run() -> None:
    # Before torch or faiss is imported: threads that spin while they wait starve each other on busy machines.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Of the cores that this process may use, not of all that the machine has: a container may have fewer.
    # A server works on several requests at once, each on one core.
    os.environ.setdefault("OMP_NUM_THREADS", "1" if sys.argv[1:2] == ["serve"] else str(_usable_cores()))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # an id may hold what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    from manifind.cli.app import app
    from manifind.cli.terminal import show_error
    from manifind.errors import ManifindError

    try:
        app(prog_name="manifind")
    except ManifindError as error:
        show_error(error)
        sys.exit(1)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
