"""How many requests of one kind work at the same time, each in a thread, and how many wait for their turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio

from gradnet.web.problems import RefusedError

_T = TypeVar("_T")


class Turns:
    """at_once: requests that work. most_waiting: beside those; further ones are refused, None for no such limit.

    may_outlive: whether a request that takes too long is answered while its thread still works. Otherwise it keeps its
    turn until the thread is done, so that threads cannot pile up.
    """

    def __init__(self, at_once: int, most_waiting: int | None = None, may_outlive: bool = True) -> None:
        self._limiter, self._most_waiting = anyio.CapacityLimiter(at_once), most_waiting
        self._may_outlive = may_outlive

    async def __call__(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call it in a thread, when it is its turn."""
        waiting = self._limiter.statistics().tasks_waiting
        if self._most_waiting is not None and waiting >= self._most_waiting:
            raise RefusedError(503, f"{waiting} others are waiting already", "try again in a few seconds")
        return await anyio.to_thread.run_sync(
            function, *arguments, limiter=self._limiter, abandon_on_cancel=self._may_outlive
        )
