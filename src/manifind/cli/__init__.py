"""The command line: one file per verb. People read tables on a terminal, programs read --json.

Ctrl-C at any moment is a quiet end with status 130, also while libraries are still being imported.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import contextmanager
from io import TextIOWrapper
from threading import current_thread, main_thread

# As type checkers know it. What is imported here comes before an interrupt is quiet, and `typing` would take long.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

INTERRUPTED = 130  # the status by which a shell knows a command that was interrupted
_SHOW_CURSOR = b"\x1b[?25h"  # bars that move hide it


def main() -> None:
    """Run the command line; a user's mistake ends in one clear sentence, never in a traceback."""
    try:
        with quiet_interrupts():
            _run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run() -> None:
    from manifind.threads import usable_cores

    # A server works on several requests at once, each on one core.
    os.environ.setdefault("OMP_NUM_THREADS", "1" if sys.argv[1:2] == ["serve"] else str(usable_cores()))
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


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Within this, Ctrl-C raises KeyboardInterrupt as ever, but during an import it ends the process at once.

    Whatever is imported may take a KeyboardInterrupt for a failure of its own, print it, or go on without a part of
    itself: initialisers of C libraries do all of these. What an end at once leaves behind is what a crash would leave,
    and the next run deals with that.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # signals are the main thread's, and somebody else may have decided on this one, as nohup does
        return
    hook = sys.unraisablehook

    def unraisable(error: Any) -> None:
        """Where nothing can be raised, as in a destructor, an interrupt would be printed and then forgotten."""
        if issubclass(error.exc_type, KeyboardInterrupt):
            _end()
        hook(error)

    signal.signal(signal.SIGINT, _interrupted)
    sys.unraisablehook = unraisable
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_DFL)  # what comes then has nothing to clean up
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = hook


def _interrupted(_: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _end()
        frame = frame.f_back
    raise KeyboardInterrupt


def _end() -> None:
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), _SHOW_CURSOR)
    os._exit(INTERRUPTED)
