"""What a fit runs with, as one value: seed, memory budget, engine, listener, checkpoint and processes."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from manifind.arrays import Floats
from manifind.checkpoint import NO_CHECKPOINT, Checkpoint
from manifind.index.vector_index import CPU_ENGINE, Engine
from manifind.progress import Listener, ignore
from manifind.ranking import Ranking

Search: TypeAlias = Callable[[Floats, int], Ranking]

_PRIME = 1_000_003  # apart are the seeds of two processes


@dataclass(frozen=True)
class MemoryBudget:
    """Where a fit computes, as torch names it, and how many bytes it may use there; on a CPU they are not counted."""

    device: str = "cpu"
    bytes: float = math.inf

    def device_for(self, needed: float) -> str:
        """The device where so many bytes fit, else the CPU."""
        return self.device if needed <= self.bytes else "cpu"


@dataclass(frozen=True)
class ProcessGroup:
    """This process among `size` that fit the same descriptors with the same settings; here, alone."""

    rank: int = 0
    size: int = 1

    @property
    def are_several(self) -> bool:
        return self.size > 1

    def seed(self, seed: int) -> int:
        """A seed of this process's own; that of the first is the one given."""
        return seed + _PRIME * self.rank

    def share(self, n: int) -> int:
        """How many of n samples each process draws."""
        return -(-n // self.size)

    def average(self, tensors: Iterable[Any]) -> None:
        """Put the mean over all processes in place of each tensor."""

    def divided(self, search: Search) -> Search:
        """The same search, each process answering a part of the queries for all."""
        return search


ALONE = ProcessGroup()


@dataclass(frozen=True)
class FitContext:
    """What every stage of a fit needs beside its data and its settings."""

    seed: int = 0
    budget: MemoryBudget = MemoryBudget()
    engine: Engine = CPU_ENGINE
    listener: Listener = ignore
    checkpoint: Checkpoint = NO_CHECKPOINT
    processes: ProcessGroup = ALONE
