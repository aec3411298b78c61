"""Several processes that fit together, on one machine or on many, and the messages between them."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from manifind.arrays import Floats
from manifind.errors import InputError, TrainingError
from manifind.index.fit_context import ALONE, ProcessGroup, Search
from manifind.ranking import Ranking

_PATIENCE = timedelta(minutes=30)  # with a process that says nothing: the slowest may still be searching


@dataclass(frozen=True)
class DistributedGroup(ProcessGroup):
    """Several processes. device: where their messages lie: the GPU for nccl, the CPU for gloo."""

    device: str = "cpu"

    def average(self, tensors: Iterable[Tensor]) -> None:
        parts = list(tensors)  # in one message
        flat = torch.cat([part.detach().reshape(-1) for part in parts]).to(self.device)
        _exchange(lambda: dist.all_reduce(flat))
        flat /= self.size
        at = 0
        for part in parts:
            part.copy_(flat[at : at + part.numel()].view_as(part))
            at += part.numel()

    def divided(self, search: Search) -> Search:
        def search_together(queries: Floats, k: int) -> Ranking:
            parts = np.array_split(np.arange(len(queries)), self.size)
            lengths, mine = [len(part) for part in parts], parts[self.rank]
            ids, scores = torch.zeros(lengths[0], k, dtype=torch.int64), torch.zeros(lengths[0], k)
            if len(mine):
                found = search(queries[mine], k)
                ids[: len(mine)], scores[: len(mine)] = (torch.from_numpy(found.ids), torch.from_numpy(found.scores))
            return Ranking(self._gathered(ids, lengths), self._gathered(scores, lengths))

        return search_together

    def _gathered(self, part: Tensor, lengths: list[int]) -> NDArray[Any]:
        """The first rows of what every process sends, so many of each, one behind the other."""
        sent = part.to(self.device)
        received = [torch.empty_like(sent) for _ in range(self.size)]
        _exchange(lambda: dist.all_gather(received, sent))
        return np.concatenate([one[:n].cpu().numpy() for one, n in zip(received, lengths, strict=True)])


def join_process_group(device: str) -> ProcessGroup:
    """The processes that were started together, as `torchrun` says in the environment; alone where it says nothing."""
    size = _number("WORLD_SIZE", 1)
    if size == 1:
        return ALONE
    rank = _number("RANK", 0)
    if not dist.is_initialized():
        if device == "cuda":
            torch.cuda.set_device(_number("LOCAL_RANK", 0))
        backend = "nccl" if device == "cuda" else "gloo"
        _exchange(lambda: dist.init_process_group(backend, timeout=_PATIENCE))
    return DistributedGroup(rank, size, device)


def _number(name: str, otherwise: int) -> int:
    text = os.environ.get(name, str(otherwise))
    if not text.isascii() or not text.isdigit():
        raise InputError(f"{name} = {text!r} in the environment; expected a number", "start with torchrun")
    return int(text)


def _exchange(message: Callable[[], object]) -> None:
    """Send and receive; what goes wrong there means that another process is gone."""
    try:
        message()
    except (RuntimeError, ValueError) as error:  # dist.DistError is a RuntimeError
        problem = f"another of the processes that fit together is gone: {str(error).splitlines()[0][:200]}"
        raise TrainingError(problem, "see what it said before it went; then start all of them again") from error
