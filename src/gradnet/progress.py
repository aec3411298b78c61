"""How long work tells its caller where it stands; the library itself prints nothing."""

from __future__ import annotations

from collections.abc import Callable
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
