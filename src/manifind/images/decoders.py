"""Child processes that decode pictures side by side, each of which may be lost to a bad one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

from manifind.images.decode import Picture
from manifind.worker import Worker, WorkerError

_FUNCTION = "manifind.images.decode:decode_in_child"
_SECONDS = 60.0  # for one picture: a hundred times what a large one takes
_AHEAD = 4  # pictures that are decoded before somebody asks for them, for each process
MOST_MEMORY = 4 << 30  # bytes; the largest file that is allowed takes a quarter, its pixels a fifth
_BESIDE_PIXELS = 1 << 20  # bytes of an answer that are no pixels
_REASONS = {"crash": "makes the decoder crash", "memory": "needs more memory than a picture may"}


class Decoders:
    """Decodes files in order, some ahead of whoever asks. Use it in a `with` statement.

    n_processes: how many at a time. longest: pictures are made smaller until their longer side is at most this.
    seconds: most for one picture.
    """

    def __init__(self, n_processes: int, longest: int, seconds: float = _SECONDS) -> None:
        self._longest, self._seconds, self._n = longest, seconds, n_processes
        self._idle = deque(Worker(seconds=seconds, memory=MOST_MEMORY) for _ in range(n_processes))
        self._threads = ThreadPoolExecutor(n_processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        for worker in self._idle:
            worker.close()

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
        worker = self._idle.popleft()  # there are as many as threads
        most = 3 * self._longest**2 + _BESIDE_PIXELS
        try:
            found, arrays = worker.call(_FUNCTION, {"file": str(file), "longest": self._longest}, max_bytes=most)
        except WorkerError as error:
            late = f"takes longer than {self._seconds:g} s to decode"
            return late if error.kind == "time" else _REASONS.get(error.kind, f"is damaged: {error.problem[:100]}")
        finally:
            self._idle.append(worker)
        return found if isinstance(found, str) else Picture(arrays["pixels"], **found)
