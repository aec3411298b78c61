"""Clients that ask a server over and over, each over one connection, as cheaply as can be: they share its machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple


class Asked(NamedTuple):
    """seconds: of each answer. errors: answers that were none, or had another status than 200."""

    seconds: list[float]
    errors: int


def ask(port: int, paths: Sequence[str], clients: int, seconds: float, most: int | None = None) -> Asked:
    """Ask for the paths in turn, `clients` at a time, for some seconds, or until `most` have been answered."""
    return asyncio.run(_ask(port, paths, clients, seconds, most))


async def _ask(port: int, paths: Sequence[str], clients: int, seconds: float, most: int | None) -> Asked:
    found, errors, until = [], 0, time.perf_counter() + seconds

    async def client(number: int) -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        at = number * 97
        while time.perf_counter() < until and (most is None or len(found) < most):
            started = time.perf_counter()
            writer.write(f"GET {paths[at % len(paths)]} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode().lower().split("\r\n")
            length = next(int(line[15:]) for line in lines if line.startswith("content-length:"))
            await reader.readexactly(length)
            found.append(time.perf_counter() - started)
            errors += " 200 " not in lines[0]
            at += 1
        writer.close()

    ended = await asyncio.gather(*(client(number) for number in range(clients)), return_exceptions=True)
    return Asked(found, errors + sum(isinstance(one, Exception) for one in ended))
