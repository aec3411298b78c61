"""Sextets drawn on the device that trains, many steps at a time, by the rules of `sextets`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gradnet.arrays import Sparse
from gradnet.training.sextets import ROUNDS, SextetSampler


class SextetSteps(NamedTuple):
    """The samples of c steps. nodes: (c, b, 6). order: (c, 6 b) where they stand when they rise, step by step.

    a_ij, a_kl: (c, b) weights of the two edges.
    """

    nodes: Tensor
    order: Tensor
    a_ij: Tensor
    a_kl: Tensor


class DeviceSampler:
    """As `SextetSampler`: the same sextets with the same probabilities, from other random numbers."""

    def __init__(self, affinity: Sparse, ends: Sparse | None, device: torch.device) -> None:
        known = SextetSampler(affinity, np.random.default_rng(0), ends)  # draws nothing: only its tables
        self._n, self._weighted = affinity.shape[0], ends is not None
        A = affinity if ends is None else ends

        def on(array: object) -> Tensor:
            return torch.as_tensor(array).to(device)

        self._starts, self._columns = on(A.indptr.astype("int64")), on(A.indices.astype("int64"))
        self._values, self._degrees = on(A.data), on(known.degrees)
        self._connected, self._acquainted, self._sums = (
            on(known.connected),
            on(known.acquainted),
            on(known.sums),
        )
        self._device = device

    def draw(self, steps: int, b: int, seed: int) -> SextetSteps:
        """`steps` times b sextets; the same seed gives the same ones."""
        rng = torch.Generator(self._device).manual_seed(seed)
        m = steps * b
        i, k = self._connected[self._integers(len(self._connected), (2, m), rng)]
        ij, kl = self._edge(i, rng), self._edge(k, rng)
        j, l = self._columns[ij], self._columns[kl]  # noqa: E741 - the paper's letter
        u = self._stranger(i, torch.stack([i, j, k, l]), rng)
        v = self._stranger(k, torch.stack([k, l, i, j]), rng)
        nodes = torch.stack([i, j, k, l, u, v], dim=1).view(steps, b, 6)
        order = nodes.view(steps, -1).argsort(dim=1, stable=True)
        return SextetSteps(nodes, order, self._values[ij].view(steps, b), self._values[kl].view(steps, b))

    def _integers(self, n: int, size: tuple[int, ...], rng: torch.Generator) -> Tensor:
        return torch.randint(n, size, generator=rng, device=self._device)

    def _edge(self, nodes: Tensor, rng: torch.Generator) -> Tensor:
        """A place in the row of each node: any of them alike, or in proportion to what stands there."""
        drawn = torch.rand(len(nodes), generator=rng, device=self._device, dtype=torch.float64)
        starts, degrees = self._starts[nodes], self._degrees[nodes]
        if not self._weighted:
            return starts + (drawn * degrees).long().clamp_max(degrees - 1)
        last = starts + degrees - 1
        before = torch.where(starts > 0, self._sums[(starts - 1).clamp_min(0)], 0.0)
        wanted = before + drawn * (self._sums[last] - before)
        return torch.searchsorted(self._sums, wanted, right=True).clamp(starts, last)

    def _stranger(self, anchor: Tensor, four: Tensor, rng: torch.Generator) -> Tensor:
        """A node far from all four; failing that, from the anchor; failing that, neither of the first two."""
        u = self._integers(self._n, (len(anchor),), rng)
        wrong = torch.arange(len(u), device=self._device)
        for not_among, not_next_to in ((four, four), (four[:2], anchor[None]), (four[:2], four[:0])):
            for _ in range(ROUNDS):
                tried = u[wrong]
                refused = (tried == not_among[:, wrong]).any(0) | self._are_acquainted(
                    tried, not_next_to[:, wrong]
                )
                wrong = wrong[refused]
                if not len(wrong):
                    return u
                u[wrong] = self._integers(self._n, (len(wrong),), rng)
        return u

    def _are_acquainted(self, u: Tensor, nodes: Tensor) -> Tensor:
        keys = nodes * self._n + u
        place = torch.searchsorted(self._acquainted, keys).clamp_max(len(self._acquainted) - 1)
        met: Tensor = (self._acquainted[place] == keys).any(0)
        return met
