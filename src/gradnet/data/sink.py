"""Where the bytes of a download go: counted, digested, and looked at when they have all come."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from gradnet.data.reasons import CutShortError, WrongAnswerError
from gradnet.progress import Listener, Progress

_WEB_PAGE = (b"<!doctype html", b"<html")


class Sink:
    """Takes the bytes of one try. total: what the server promised, 0 where it promised nothing.

    disk_failure: what the disk said, which could not be told from a failure of the network otherwise.
    `write` and the methods below it are those that pooch calls on a file and on a progress bar.
    """

    def __init__(self, stream: BinaryIO, name: str, size: int | None, listener: Listener) -> None:
        self.total = 0
        self.disk_failure: OSError | None = None
        self._written, self._digest, self._head = 0, hashlib.sha256(), b""
        self._stream, self._stage, self._size, self._listener = stream, f"fetching {name}", size, listener

    def finish(self) -> None:
        """Hand the last bytes to the disk, which may be full only now."""
        with self._watched():
            self._stream.flush()

    def sha256(self) -> str:
        """The digest, unless the bytes are too few or a page that servers send for files that are gone."""
        if self._written < self.total:
            raise CutShortError(f"the connection was dropped after {self._written:,} of {self.total:,} bytes")
        if not self._written:
            raise WrongAnswerError("the server sent an empty file")
        if self._head.lstrip().lower().startswith(_WEB_PAGE):
            raise WrongAnswerError("the server sent a web page instead of the file")
        return self._digest.hexdigest()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.disk_failure = error
            raise

    def write(self, data: bytes) -> None:
        """Take some bytes."""
        with self._watched():
            self._stream.write(data)
        self._digest.update(data)
        self._head = self._head or data[:200]
        self._written += len(data)
        expected = self.total or self._size or 0
        self._listener(Progress(self._stage, self._written, max(expected, self._written)))

    def flush(self) -> None:
        """Nothing: once at the end is enough."""

    def update(self, count: int) -> None:
        """Nothing: `write` has counted."""

    def reset(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing: who opened the file closes it."""
