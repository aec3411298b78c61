"""A child process that runs one function at a time and can be killed: for hostile files, long jobs and benchmarks.

Both sides exchange JSON lines. A request is {"function": "module:name", "arguments": {...}, ...}. Before its answer
the child may send any number of {"progress": [...]}. The answer is {"error": class, "problem": ..., "hint": ...} or
{"value": ..., "arrays": {name: [dtype, shape]}}; the content of the arrays follows in pieces, each a line {"piece": n}
and n bytes. Nothing is pickled, and the caller checks every size before it allocates.

The child isolates crashes, hangs and memory. It is no sandbox: it runs with the rights of its user.
"""

import contextlib
import importlib
import inspect
import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from manifind import errors
from manifind.errors import ManifindError
from manifind.progress import Listener, Progress, ignore

_MOST_BYTES = 1 << 26  # of an answer, unless the caller expects more
_PIECE = 1 << 24  # bytes of an array that are sent at a time
_PAUSE = 0.2  # seconds between two reports of progress in one stage
_LAST_WORDS = 1.0  # seconds until all that it wrote has been read
_GRACE = 5.0  # seconds after its time limit until the child ends itself: its caller is gone or hangs
_LONGEST_REASON = 300
_KINDS_OF_ARRAYS = "biufcSU"  # of NumPy's types; others could hold objects
# A secret has no business in a child; these variables say how Python and the libraries run.
_VARIABLES = {"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH"}
_VARIABLES |= {"XDG_CACHE_HOME", "XDG_STATE_HOME", "VIRTUAL_ENV", "TORCH_HOME", "MANIFIND_DATA", "GRADNET_DATA"}
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # every other thread reserves addresses
_PREFIXES = ("PYTHON", "LC_", "OMP_", "MKL_", "KMP_", "OPENBLAS_", "NUMBA_", "CUDA_", "PYTORCH_")


class WorkerError(ManifindError):
    """A child process that crashed, took too long or ran out of memory.

    kind: "crash", "time" or "memory"; "exception" where the function in it raised what is no error of ours.
    """

    def __init__(self, problem: str, hint: str = "", kind: str = "crash") -> None:
        super().__init__(problem, hint)
        self.kind = kind


class Reply(NamedTuple):
    """What a function returns beside plain values."""

    value: Any  # what JSON can hold
    # Numbers or text; in the child also what has `shape`, `dtype` and slices, as h5py has, and is read piece by piece.
    arrays: Mapping[str, Any] = {}


class Worker(contextlib.AbstractContextManager["Worker"]):
    """A child process that is started by the first call, and started again by the next one after it died.

    seconds: most for one call, the start of the process included; None for no limit.
    memory: most bytes of address space beyond what the child has before its first call; None for no limit. Not for
    work on a GPU, whose driver reserves addresses.
    environment: of the child; None for what Python and the libraries need, without secrets.
    """

    def __init__(
        self, *, seconds: float | None = None, memory: int | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._seconds, self._memory, self._environment = seconds, memory, environment
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: deque[bytes] = deque(maxlen=16)

    def call(
        self, function: str, arguments: Mapping[str, Any], listener: Listener = ignore, max_bytes: int = _MOST_BYTES
    ) -> Reply:
        """What "module:function" returns for these arguments by name, which JSON must be able to hold.

        A function that has a parameter `listener` reports its progress to the listener here. max_bytes: of the
        answer's line, and of its arrays together. Raises the ManifindError that the function raised, and a
        WorkerError for every other exception, and where the child crashes, takes too long or answers nonsense.
        """
        process, late, is_well = self._running(), threading.Event(), False

        def stop() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(self._seconds or 0, stop)
        timer.daemon = True
        if self._seconds is not None:
            timer.start()
        request = {"function": function, "arguments": arguments, "seconds": self._seconds, "memory": self._memory}
        try:
            answers = _answers(process, request, max_bytes)
            while isinstance(answer := next(answers), Progress):
                listener(answer)
            is_well = True
        except EOFError:
            raise self._death(process, late.is_set()) from None
        finally:
            timer.cancel()
            if not is_well:
                self.close()
        if isinstance(answer, ManifindError):
            raise answer
        return answer

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child, and what it started."""
        process, self._process = self._process, None
        if process is not None:
            _kill(process)
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    stream.close()  # type: ignore[union-attr]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._errors.clear()
        environment = dict(os.environ if self._environment is None else self._environment)
        if self._environment is None:
            environment = {k: v for k, v in environment.items() if k in _VARIABLES or k.startswith(_PREFIXES)}
        if self._memory is not None:
            environment |= _ONE_THREAD
        self._process = process = subprocess.Popen(  # noqa: S603  it is this Python and this module
            [sys.executable, "-P", "-m", __name__],  # -P: no file of the current folder passes for a module
            stdin=subprocess.PIPE,  # held open: its end tells the child that nobody waits for it any more
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the caller; and what the child starts ends with it
        )
        self._reader = threading.Thread(target=_drain, args=(process.stderr, self._errors), daemon=True)
        self._reader.start()
        return process

    def _death(self, process: subprocess.Popen[bytes], is_late: bool) -> WorkerError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
        self.close()
        self._reader.join(_LAST_WORDS)  # or what it wrote last may not have been read
        code = process.returncode
        if is_late or (hasattr(signal, "SIGALRM") and code == -signal.SIGALRM):
            return WorkerError(f"stopped after {self._seconds:g} s, the time limit", kind="time")
        if code < 0:
            name = signal.Signals(-code).name
            memory = ", as the system does where memory runs out" if name == "SIGKILL" else ""
            return WorkerError(f"its process was ended by {name}{memory}")
        lines = b"".join(self._errors).decode(errors="replace").strip().splitlines()
        last = lines[-1][:_LONGEST_REASON] if lines else "it reported no reason"
        return WorkerError(f"its process ended with code {code}: {last}")


def call(
    function: str,
    arguments: Mapping[str, Any],
    *,
    seconds: float | None = None,
    memory: int | None = None,
    listener: Listener = ignore,
    max_bytes: int = _MOST_BYTES,
) -> Reply:
    """One call in a child of its own; see `Worker`."""
    with Worker(seconds=seconds, memory=memory) as worker:
        return worker.call(function, arguments, listener, max_bytes)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()


def _drain(stream: IO[bytes], last: deque[bytes]) -> None:
    """Keep the last bytes alone, so that a flood fills neither the pipe nor the disk."""
    with stream:
        while data := stream.read1(1 << 12):  # type: ignore[attr-defined]
            last.append(data)


def _answers(
    process: subprocess.Popen[bytes], request: dict[str, Any], max_bytes: int
) -> Iterator[Progress | Reply | ManifindError]:
    """Reports of progress, then the answer, or the error that the function raised. EOFError where the child is dead."""
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        raise EOFError
    try:
        _send(request, stdin)
    except OSError:
        raise EOFError from None
    arrays: dict[str, np.ndarray[Any, Any]] | None = None
    missing: list[memoryview] = []  # of arrays, what has not come yet
    try:
        while arrays is None or missing:
            message = _message(stdout, max_bytes)
            if "error" in message:
                yield _error(message)
            elif "progress" in message:
                stage, done, total, note = message["progress"]
                yield Progress(str(stage), int(done), int(total), str(note))
            elif arrays is None:
                value, arrays = message["value"], _allocate(message["arrays"], max_bytes)
                missing = [array.reshape(-1).view(np.uint8).data for array in arrays.values() if array.nbytes]
            else:
                size, left = int(message["piece"]), missing.pop(0)
                if not 0 < size <= len(left):
                    raise ValueError(f"{size} bytes where {len(left)} are missing")
                if stdout.readinto(left[:size]) != size:  # type: ignore[attr-defined]
                    raise EOFError
                missing[:0] = [left[size:]] if size < len(left) else []
        yield Reply(value, arrays)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise WorkerError(f"its process sent no valid answer: {str(error)[:_LONGEST_REASON]}") from error


def _message(stdout: IO[bytes], max_bytes: int) -> Any:
    line = stdout.readline(max_bytes + 1)
    if len(line) > max_bytes:
        raise ValueError(f"a line of more than {max_bytes:,} bytes")
    if not line.endswith(b"\n"):
        raise EOFError
    return json.loads(line)


def _send(message: dict[str, Any], stream: IO[bytes]) -> None:
    line = json.dumps(message, default=_plain).encode() + b"\n"  # whole, before anything of it is written
    stream.write(line)
    stream.flush()


def _plain(value: Any) -> Any:
    """What JSON can hold in place of a value that it cannot: a number of NumPy's as such, all else as its text."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _error(message: dict[str, Any]) -> ManifindError:
    problem, hint = str(message["problem"]), str(message["hint"])
    if message["error"] == WorkerError.__name__:
        return WorkerError(problem, hint, kind=str(message["kind"]))
    cls = getattr(errors, str(message["error"]), None)
    if not isinstance(cls, type) or not issubclass(cls, ManifindError):
        raise ValueError(f"an error of the class {message['error']}")
    return cls(problem, hint)


def _allocate(described: dict[str, Any], max_bytes: int) -> dict[str, np.ndarray[Any, Any]]:
    """Empty arrays of the types and shapes that were announced, refused unless they fit into max_bytes."""
    arrays, left = [], max_bytes
    for name, (type_name, shape) in described.items():
        dtype = np.dtype(str(type_name))
        if dtype.kind not in _KINDS_OF_ARRAYS or any(type(extent) is not int or extent < 0 for extent in shape):
            raise ValueError(f"an array of {dtype}, shape {shape}")
        left -= math.prod(shape) * dtype.itemsize
        if left < 0:
            raise ValueError(f"arrays of more than {max_bytes:,} bytes")
        arrays.append((name, dtype, tuple(shape)))
    return {name: np.empty(shape, dtype) for name, dtype, shape in arrays}


# From here on: what runs in the child.


def main() -> None:
    """Answer requests until the caller closes the other end."""
    messages, requests = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # nor does it read requests
    received: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests, received), daemon=True).start()
    request = json.loads(received.get())
    _limit_memory(request["memory"])
    while True:
        _set_alarm(request["seconds"])
        _serve(request, messages)
        _set_alarm(None)
        request = json.loads(received.get())


def _receive(requests: IO[bytes], received: queue.SimpleQueue[bytes]) -> None:
    """Hand on the requests; end the process, whatever it does, when the caller is gone."""
    for line in requests:
        received.put(line)
    os._exit(1)


def _limit_memory(memory: int | None) -> None:
    try:
        import resource
    except ImportError:  # as on Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        with contextlib.suppress(OSError, ValueError):  # not every system limits addresses
            statm = Path("/proc/self/statm")
            used = int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0
            resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))


def _set_alarm(seconds: float | None) -> None:
    """A signal ends this process even where code of a library hangs, though the caller usually does so before."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0 if seconds is None else seconds + _GRACE)


def _serve(request: dict[str, Any], messages: IO[bytes]) -> None:
    try:
        module, _, name = request["function"].partition(":")
        function, arguments = getattr(importlib.import_module(module), name), request["arguments"]
        if "listener" in inspect.signature(function).parameters:
            arguments = {**arguments, "listener": _reporter(messages)}
        result = function(**arguments)
        value, arrays = result if isinstance(result, Reply) else (result, {})
        described = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
        _send({"value": value, "arrays": described}, messages)
        for array in arrays.values():
            for piece in _pieces(array):
                _send({"piece": len(piece)}, messages)
                messages.write(piece)
        messages.flush()
    except (Exception, SystemExit) as error:
        _send(_described(error), messages)


def _reporter(messages: IO[bytes]) -> Listener:
    """A listener that sends on its reports, of one stage not more than a few a second."""
    last: tuple[str, float] = "", 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if progress.done >= progress.total or progress.stage != last[0] or now - last[1] > _PAUSE:
            last = progress.stage, now
            _send({"progress": [progress.stage, progress.done, progress.total, progress.note]}, messages)

    return report


def _pieces(array: Any) -> Iterator[memoryview]:
    if not math.prod(array.shape) * array.dtype.itemsize:
        return
    rows = array if len(array.shape) else np.asarray(array).reshape(1)
    per_piece = max(1, _PIECE // (math.prod(rows.shape[1:]) * rows.dtype.itemsize))
    for start in range(0, rows.shape[0], per_piece):
        yield np.ascontiguousarray(rows[start : start + per_piece]).reshape(-1).view(np.uint8).data


def _described(error: BaseException) -> dict[str, Any]:
    if isinstance(error, ManifindError):
        known = (cls.__name__ for cls in type(error).__mro__ if cls is WorkerError or hasattr(errors, cls.__name__))
        words = {"problem": error.problem, "hint": error.hint, "kind": getattr(error, "kind", "")}
        return {"error": next(known), **words}
    if isinstance(error, MemoryError):
        problem, kind = f"ran out of memory: {error}".removesuffix(": "), "memory"
    else:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}, line {where.lineno}"
        problem, kind = f"{type(error).__name__}: {str(error)[:10_000]} ({place})", "exception"
    return {"error": WorkerError.__name__, "problem": problem, "hint": "", "kind": kind}


if __name__ == "__main__":
    from manifind import worker  # the module under its name: a function imports its `Reply` from there

    worker.main()
