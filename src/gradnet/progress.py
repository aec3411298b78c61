"""How long work tells its caller where it stands; the library itself prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """`done` of `total` units of `stage` are finished; `note` is for people."""

    stage: str
    done: int
    total: int
    note: str = ""


Listener: TypeAlias = Callable[[Progress], None]


def ignore(progress: Progress) -> None:
    """The listener of callers who do not want to know."""


@contextmanager
def in_one_piece(stage: str, listener: Listener) -> Iterator[None]:
    """A stage that cannot say how far it is: told when it begins, and when it is done."""
    listener(Progress(stage, 0, 1))
    yield
    listener(Progress(stage, 1, 1))
