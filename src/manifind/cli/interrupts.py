"""Ctrl-C at any moment: a quiet end with status 130, also while libraries are still being imported."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import contextmanager
from threading import current_thread, main_thread

# As type checkers know it. What is imported here comes before an interrupt is quiet, and `typing` would take long.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

INTERRUPTED = 130  # the status by which a shell knows a command that was interrupted
_SHOW_CURSOR = b"\x1b[?25h"  # bars that move hide it


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
    if _is_importing(frame):
        _end()
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _end() -> None:
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), _SHOW_CURSOR)
    os._exit(INTERRUPTED)
