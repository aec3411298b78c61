"""How much of a GPU's memory a fit may take, and what finds room in it."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from gradnet.errors import TrainingError

_SHARE_OF_FREE = 0.7  # where nobody says how much may be taken
_SHARE_TO_PLAN = 0.5  # of what may be taken: torch keeps what it has freed, in pieces
# With less nothing is gained: torch takes 20 MB for a number, and libraries some for themselves.
_LEAST_BYTES = 0.3e9


@dataclass(frozen=True)
class Room:
    """Where a fit computes, and how many bytes it may count on there; on a CPU they are not counted."""

    device: torch.device
    bytes: float = math.inf

    def device_for(self, needed: float) -> torch.device:
        """The device where it has room for so many bytes, else the CPU."""
        return self.device if needed <= self.bytes else torch.device("cpu")


def find_room(device: torch.device, gigabytes: float | None) -> Room:
    """What to plan with where at most so many GB of a GPU may be taken; None: as far as others leave it free.

    With next to nothing, all is left to the CPU.
    """
    if device.type == "cpu":
        return Room(device)
    # What torch has freed and kept for later is free, too.
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = torch.cuda.mem_get_info(device)[0] + kept
    planned = _SHARE_OF_FREE * free if gigabytes is None else _SHARE_TO_PLAN * gigabytes * 1e9
    return Room(device, min(planned, free)) if planned >= _LEAST_BYTES else Room(torch.device("cpu"))


@contextmanager
def limited(device: torch.device, gigabytes: float | None) -> Iterator[None]:
    """torch takes at most so many GB of the GPU more inside; what does not fit after all ends with one sentence."""
    if device.type == "cpu":
        yield
        return
    number = torch.cuda.current_device() if device.index is None else device.index
    total = torch.cuda.get_device_properties(number).total_memory
    if gigabytes is not None:
        gc.collect()  # what nobody needs any more is not to be counted as taken before
        torch.cuda.empty_cache()
        most = torch.cuda.memory_reserved(number) + gigabytes * 1e9
        torch.cuda.set_per_process_memory_fraction(min(1.0, most / total), number)
    try:
        yield
    except torch.OutOfMemoryError as error:
        taken = f"{total / 1e9:.0f}" if gigabytes is None else f"{gigabytes:g}"
        raise TrainingError(
            f"the GPU's memory, at most {taken} GB, does not hold this fit: {str(error).splitlines()[0][:200]}",
            "lower training_nodes, raise device_memory, or set device='cpu'",
        ) from error
    finally:
        if gigabytes is not None:
            torch.cuda.set_per_process_memory_fraction(1.0, number)
