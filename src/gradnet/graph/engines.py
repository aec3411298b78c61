"""Who finds neighbours: faiss, or, while somebody says so, another engine, such as one on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import Protocol

from gradnet.arrays import Floats, Ints
from gradnet.ranking import Ranking


class Engine(Protocol):
    """What another engine has to do: both exactly, as `graph.neighbours` and `graph.anchors` say."""

    def nearest(self, queries: Floats, database: Floats, k: int, metric: str) -> tuple[Ranking, Ints]:
        """The k best rows for every query, and the queries, (m',), of which it cannot be certain."""

    def centres(self, X: Floats, n: int, rounds: int, seed: int) -> Floats:
        """(n, d) centres of k-means over the rows of X."""


_ENGINE: ContextVar[Engine | None] = ContextVar("engine", default=None)


def current_engine() -> Engine | None:
    """The one that was named; None for faiss."""
    return _ENGINE.get()


@contextmanager
def searching_by(engine: Engine | None) -> Iterator[None]:
    """Neighbours are found by this engine inside."""
    before = _ENGINE.set(engine)
    try:
        yield
    finally:
        _ENGINE.reset(before)


@cache
def has_faiss() -> bool:
    """Whether faiss is installed; hosts with a GPU may do without."""
    return find_spec("faiss") is not None
