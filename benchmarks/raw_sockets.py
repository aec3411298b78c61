"""Benchmark: the search page while a thousand raw sockets send nothing, slowly or too much; as a script, these."""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from measuring import Case
from serving import resident_bytes, served

Way: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

MOST_MS, MOST_GROWTH_MB = 500.0, 50.0
_SETTINGS = {"max_steps": 5}
_BETWEEN = 0.05  # seconds between two tasks of the client that is watched
_AGAIN = 1.0  # seconds after which a socket that was closed is opened again
_BLOCK = 1 << 16  # bytes
_HOST = b"host: 127.0.0.1\r\n"
_HEALTH = b"GET /healthz HTTP/1.1\r\n" + _HOST + b"connection: close\r\n\r\n"
_POST = b"POST /api/v1/search/vector HTTP/1.1\r\n" + _HOST + b"content-type: application/json\r\n"
_UPLOAD = b"POST /api/v1/search/picture HTTP/1.1\r\n" + _HOST + b"content-type: image/png\r\n"
_CHUNK = b"%x\r\n" % _BLOCK + b"x" * _BLOCK + b"\r\n"

SILENT = {
    "nothing": b"",
    "half a head": b"GET / HTTP/1.1\r\nhost: ",
    "an answer": _HEALTH.replace(b"close", b"keep-alive"),
}
"""What is sent at first by a socket that then only waits."""

SLOW = {"a head": b"GET / HTTP/1.1\r\nx: ", "a body": _POST + b"content-length: 100000\r\n\r\n"}
"""What comes before a byte each second."""

TOO_MUCH = {
    "a header": (b"GET / HTTP/1.1\r\nx: ", b"a" * _BLOCK),
    "lines": (b"GET / HTTP/1.1\r\n", b"a: b\r\n" * (_BLOCK // 6)),
    "an address": (b"GET /", b"a" * _BLOCK),
    "requests": (b"", b"GET / HTTP/1.1\r\n\r\n" * (_BLOCK // 18)),
    "trailers": (_UPLOAD + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n" * (_BLOCK // 6)),
    "a body": (_UPLOAD + b"transfer-encoding: chunked\r\n\r\n", _CHUNK),
    "an unwanted body": (_UPLOAD + b"content-length: 1000000000\r\n\r\n", b"x" * _BLOCK),
}
"""What is sent at first, and what over and over again."""


def cases(quick: bool) -> list[Case]:
    """A thousand for a minute; a few for a moment."""
    n, seconds = (40, 2) if quick else (1000, 60)
    return [Case(f"{n:,} sockets", {"n": n, "seconds": seconds}, (0,))]


def run(n: int, seconds: float, seed: int) -> dict[str, float]:
    """Milliseconds of /healthz, each over a new connection, how many failed, and the growth of the server's memory."""
    import numpy as np

    with tempfile.TemporaryDirectory() as work:
        _make_collection(Path(work) / "c", seed)
        with served(Path(work) / "c") as (port, process):
            for _ in range(100):
                _asked(port)
            before = resident_bytes(process.pid)
            with _attacked(port, n, seconds) as attack:
                found, most = _watched(port, process.pid, seconds)
                opened = int(attack.communicate(timeout=seconds + 60)[0])
    times = np.array([ms for ms, _ in found])
    p50, p99 = np.percentile(times, (50, 99))
    return {
        "asked": float(len(found)),
        "failed": float(sum(not is_answered for _, is_answered in found)),
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "max_ms": float(times.max()),
        "opened": float(opened),
        "growth_MB": (most - before) / 1e6,
    }


def _make_collection(path: Path, seed: int) -> None:
    from landmark_cloud import make_landmark_cloud

    from manifind.model.estimator import GradNet

    GradNet(**_SETTINGS, random_state=seed).fit(make_landmark_cloud(1000, 32).descriptors).save(path)


def _watched(port: int, pid: int, seconds: float) -> tuple[list[tuple[float, bool]], int]:
    """Every task, and the most memory that was seen."""
    found, most, end = [], 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        found.append(_asked(port))
        most = max(most, resident_bytes(pid))
        time.sleep(_BETWEEN)
    return found, most


def _asked(port: int) -> tuple[float, bool]:
    """Milliseconds of /healthz over a connection of its own, and whether it was answered."""
    started, said = time.perf_counter(), b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
        raw.sendall(_HEALTH)
        while part := raw.recv(4096):
            said += part
    return (time.perf_counter() - started) * 1000, said.startswith(b"HTTP/1.1 200")


@contextmanager
def _attacked(port: int, n: int, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the sockets, so that the one that watches is not slowed down by them."""
    command = [sys.executable, __file__, str(port), str(n), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def attack(port: int, n: int, seconds: float) -> int:
    """Keep n sockets open for some seconds, each opened again when the server has closed it; how many that were."""
    ways = [_silent(first) for first in SILENT.values()]
    ways += [_slow(first) for first in SLOW.values()] + [_too_much(*sent) for sent in TOO_MUCH.values()]
    opened, end = 0, time.perf_counter() + seconds

    async def keep(way: Way) -> None:
        nonlocal opened
        while time.perf_counter() < end:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                opened += 1
                try:
                    await way(reader, writer)
                finally:
                    writer.transport.abort()
            await asyncio.sleep(_AGAIN)

    kept = asyncio.gather(*(keep(ways[number % len(ways)]) for number in range(n)))
    with suppress(TimeoutError):
        await asyncio.wait_for(kept, seconds)
    return opened


def _silent(first: bytes) -> Way:
    async def way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        await reader.read()

    return way


def _slow(first: bytes) -> Way:
    async def way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while not reader.at_eof() and not writer.is_closing():
            writer.write(b"1")
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1 << 10), 1)

    return way


def _too_much(first: bytes, more: bytes) -> Way:
    async def way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while not reader.at_eof() and not writer.is_closing():
            writer.write(more)
            await writer.drain()

    return way


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(asyncio.run(attack(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))))
