"""Bodies of requests: how large one may be, how many large ones come at once, and what all of them take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

TOO_MUCH = (503, "too much is being uploaded at once", "try again in a few seconds")
_SMALL = 64 << 10  # bytes that come in a packet or two and need no place among the large ones


class BodyRefusedError(Exception):
    """The rest of a body is not read; why, stands in the body."""


@dataclass
class Bodies:
    """All of them. most_bytes: of those not answered yet. most_large: large ones that may come at the same time."""

    most_bytes: int
    most_large: int
    n_bytes: int = 0
    n_large: int = 0

    def has_room(self, n_bytes: int | None) -> bool:
        """Whether one may come. n_bytes: what is said of its length, None for nothing."""
        if n_bytes == 0:
            return True
        is_small = n_bytes is not None and n_bytes <= _SMALL
        return self.n_bytes + (n_bytes or 0) <= self.most_bytes and (
            is_small or self.n_large < self.most_large
        )


class Body:
    """One. refusal: status, error and hint where it was not read to its end."""

    def __init__(self, receive: Receive, most_bytes: int, others: Bodies) -> None:
        self.refusal: tuple[int, str, str] | None = None
        self._receive, self._most_bytes, self._others = receive, most_bytes, others
        self._n_bytes, self._is_coming, self._is_large = 0, True, False

    async def receive(self) -> MutableMapping[str, Any]:
        """The next part, as the application reads it; refused where that is too much, whatever the head said of it."""
        message = await self._receive()
        if self._is_coming:
            self._count(len(message.get("body", b"")), message.get("more_body", False))
            self.refusal = self._problem(message["type"])
            if self.refusal is not None:
                raise BodyRefusedError
        return message

    def close(self) -> None:
        """Give back what it took."""
        self._count(-self._n_bytes, False)

    def _count(self, n_bytes: int, is_coming: bool) -> None:
        self._n_bytes += n_bytes
        self._others.n_bytes += n_bytes
        self._is_coming = is_coming
        is_large = is_coming and self._n_bytes > _SMALL
        self._others.n_large += is_large - self._is_large
        self._is_large = is_large

    def _problem(self, kind: str) -> tuple[int, str, str] | None:
        if kind == "http.disconnect":
            return 400, "the connection was closed before all of the body had come", "send it again"
        if self._n_bytes > self._most_bytes:
            return too_large(self._most_bytes)
        all_ = self._others
        if all_.n_bytes > all_.most_bytes or (self._is_large and all_.n_large > all_.most_large):
            return TOO_MUCH
        return None


def too_large(most_bytes: int) -> tuple[int, str, str]:
    """What to say of a body with more bytes than these."""
    return 413, f"the body has more than {most_bytes >> 20} MB", "send less"
