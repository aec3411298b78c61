"""Child processes of the server: a refit, with progress and errors as JSON lines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict

from manifind.collection.collection import load
from manifind.errors import ManifindError
from manifind.progress import Listener, Progress

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
    except ManifindError as error:
        sys.stdout.write(json.dumps({"error": error.problem, "hint": error.hint or ""}) + "\n")
        sys.exit(1)


def main() -> None:
    """Refit the collection named on the command line."""
    from manifind.model.refit import refit  # imports torch

    run(lambda listener: refit(load(sys.argv[1]), listener=listener))


if __name__ == "__main__":
    main()
