"""Steps of training on a GPU: recorded once, then repeated without the host saying a word in between."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from gradnet.nn.gpu_precision import products_in
from gradnet.nn.losses import Loss
from gradnet.training.device_sextets import SextetSteps

_WARM_UP = 3  # steps before the recording, in which libraries choose their kernels

LossOf = Callable[[Tensor, Tensor, Tensor, Tensor], Loss]
"""The loss of sextets: of one step what `SextetSteps` has of many."""


class CapturedSteps:
    """loss_of: what is minimised. adam: made with capturable=True. dropout: draws it; on a CPU nothing is captured.

    most: steps that are taken in one go.
    """

    def __init__(
        self, loss_of: LossOf, adam: torch.optim.Adam, dropout: torch.Generator, most: int, n_sextets: int
    ) -> None:
        self._loss_of, self._adam, self._dropout = loss_of, adam, dropout
        self._weights = [weight for group in adam.param_groups for weight in group["params"]]
        device = self._weights[0].device
        self._at = torch.zeros(1, dtype=torch.int64, device=device)
        self._sextets = SextetSteps(
            torch.zeros(most, n_sextets, 6, dtype=torch.int64, device=device),
            torch.zeros(most, 6 * n_sextets, dtype=torch.int64, device=device),
            *(torch.zeros(most, n_sextets, device=device) for _ in range(2)),
        )
        self._losses = torch.zeros(most, 3, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None

    def run(self, sextets: SextetSteps, seed: int) -> Tensor:
        """(c, 3) total, local and global loss of c steps. seed: of their dropout."""
        steps = len(sextets.nodes)
        for kept, given in zip(self._sextets, sextets, strict=True):
            kept[:steps] = given
        if self._graph is None and self._at.is_cuda:
            self._record()
        self._at.zero_()
        self._dropout.manual_seed(seed)
        for _ in range(steps):
            if self._graph is None:
                self._step()
            else:
                self._graph.replay()
        return self._losses[:steps].clone()

    def _step(self) -> None:
        self._adam.zero_grad(set_to_none=True)
        with products_in("tf32"):
            loss = self._loss_of(*(part.index_select(0, self._at)[0] for part in self._sextets))
            loss.total.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        parts = torch.stack([loss.total.detach(), loss.local.detach(), loss.global_.detach()])
        self._losses.index_copy_(0, self._at, parts[None])
        self._at += 1

    def _record(self) -> None:
        """Take some steps to warm up, undo them, and record one."""
        kept = [weight.detach().clone() for weight in self._weights]
        memory = [_cloned(self._adam.state[weight]) for weight in self._weights]
        stream = _recording_stream(torch.cuda.current_device())
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                self._at.zero_()
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        gc.collect()  # nothing can be freed while a step is recorded
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._dropout)
        self._at.zero_()
        with torch.cuda.graph(graph, stream=stream):
            self._step()
        self._undo(kept, memory)
        self._graph = graph

    def _undo(self, kept: list[Tensor], memory: list[dict[str, Tensor]]) -> None:
        with torch.no_grad():
            for weight, before, moments in zip(self._weights, kept, memory, strict=True):
                weight.copy_(before)
                for name, value in self._adam.state[weight].items():
                    value.copy_(moments[name]) if name in moments else value.zero_()


@cache
def _recording_stream(number: int) -> torch.cuda.Stream:
    """A GPU's for all recordings: libraries keep memory for each stream that they ever worked on."""
    return torch.cuda.Stream(number)  # type: ignore[no-untyped-call]


def _cloned(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in state.items()}
