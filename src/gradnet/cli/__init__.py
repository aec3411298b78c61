"""The command line: one file per verb. People read tables on a terminal, programs read --json."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper


def main() -> None:
    """Run the command line; a user's mistake ends in one clear sentence, never in a traceback."""
    # Before torch or faiss is imported: threads that spin while they wait starve each other on busy machines.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # an id may hold what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    from gradnet.cli.app import app
    from gradnet.cli.terminal import show_error
    from gradnet.errors import GradNetError

    try:
        app(prog_name="gradnet")
    except GradNetError as error:
        show_error(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
