"""Processes that decode pictures side by side, each of which may be lost to a bad one."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self

import numpy as np

from manifind.images.decode import Picture

_SECONDS = 60.0  # for one picture: a hundred times what a large one takes
_AHEAD = 4  # pictures that are decoded before somebody asks for them, for each process


class Decoders:
    """Decodes files in order, some ahead of whoever asks. Use it in a `with` statement.

    n_processes: how many at a time. longest: pictures are made smaller until their longer side is at most this.
    """

    def __init__(self, n_processes: int, longest: int, seconds: float = _SECONDS) -> None:
        self._longest, self._seconds = longest, seconds
        self._idle: deque[_Decoder] = deque(_Decoder() for _ in range(n_processes))
        self._n = n_processes
        self._threads = ThreadPoolExecutor(n_processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        for decoder in self._idle:
            decoder.close()

    def decode(self, files: Sequence[Path]) -> Iterator[Picture | str]:
        """For each file its picture, or in words why there is none."""
        waiting: deque[Future[Picture | str]] = deque()
        rest = iter(files)
        while True:
            while len(waiting) < self._n * _AHEAD and (file := next(rest, None)) is not None:
                waiting.append(self._threads.submit(self._decode, file))
            if not waiting:
                return
            yield waiting.popleft().result()

    def _decode(self, file: Path) -> Picture | str:
        decoder = self._idle.popleft()  # there are as many as threads
        try:
            return decoder.decode(file, self._longest, self._seconds)
        finally:
            self._idle.append(decoder)


class _Decoder:
    """One process, begun when it is needed and begun again when it is lost."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def decode(self, file: Path, longest: int, seconds: float) -> Picture | str:
        process = self._running()
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, stop)
        timer.start()
        try:
            return _ask(process, file, longest)
        except (OSError, ValueError, EOFError):
            self.close()
            return f"takes longer than {seconds:g} s to decode" if late.is_set() else "makes the decoder crash"
        finally:
            timer.cancel()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            for stream in (self._process.stdin, self._process.stdout):
                with suppress(OSError, AttributeError):
                    stream.close()  # type: ignore[union-attr]
            self._process.wait()
            self._process = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            command = [sys.executable, "-m", "manifind.images.decoder_process"]
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        return self._process


def _ask(process: subprocess.Popen[bytes], file: Path, longest: int) -> Picture | str:
    if process.stdin is None or process.stdout is None:
        raise EOFError
    process.stdin.write(json.dumps([str(file), longest]).encode() + b"\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise EOFError
    answer = json.loads(line)
    if "problem" in answer:
        return str(answer["problem"])
    height, width = answer["shape"]
    data = process.stdout.read(height * width * 3)
    if len(data) != height * width * 3:
        raise EOFError
    pixels = np.frombuffer(data, dtype=np.uint8).reshape(height, width, 3)
    size = answer["width"], answer["height"]
    return Picture(pixels, *size, answer["format"], answer["sha256"], answer["said"])
