"""Sextets, the training samples, drawn on the CPU or the GPU, and the exact subgraph of each batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from manifind.arrays import Floats, Ints, Mask, Sparse
from manifind.errors import GraphError
from manifind.graph.subgraph import breadth_first, rows_in_new_order
from manifind.model.layers import Propagation
from manifind.model.network import Batch
from manifind.text import are, count

ROUNDS = 64  # redraws before the next weaker condition is tried


@dataclass(frozen=True)
class Sextets:
    """b samples: edges (i, j) and (k, l), strangers u and v, and the weights of the two edges. All (b,)."""

    i: Ints
    j: Ints
    k: Ints
    l: Ints  # noqa: E741 - the paper's letter
    u: Ints
    v: Ints
    a_ij: Floats
    a_kl: Floats

    def nodes(self) -> Ints:
        """(6, b) in the paper's order."""
        return np.stack([self.i, self.j, self.k, self.l, self.u, self.v])


class SextetSampler:
    """Draws sextets from an affinity matrix.

    i and k are uniform over the nodes that have a neighbour; j and l uniform over the neighbours of i
    and of k; u and v uniform over the nodes that are neither among i, j, k, l nor next to any of them.
    On a small or dense graph there may be no such node, or so few that 64 draws find none: then u need
    only be no neighbour of i, and v none of k, which is all that Eq. 19 asks; and where that fails in
    the same way, any third node.

    ends: where walks end, (N, N) CSR, or None. With them, j and l are drawn from the ends of walks from i and from
    k, in proportion to their weights, which stand for those of edges; and they are no strangers.

    connected: nodes that have a neighbour. acquainted: rising numbers, row * N + column, of all pairs that are no
    strangers. degrees: (N,). sums: of the weights, running.
    """

    def __init__(self, affinity: Sparse, rng: np.random.Generator, ends: Sparse | None = None) -> None:
        if affinity.shape[0] < 3:
            raise GraphError(
                f"there {are(affinity.shape[0])} only {count(affinity.shape[0], 'distinct item')}, "
                "and a sample compares three",
                "fit on at least three different items",
            )
        self._rng, self._n = rng, affinity.shape[0]
        self._A = affinity if ends is None else ends
        self.degrees = np.diff(self._A.indptr).astype(np.int64)
        self.connected = np.flatnonzero(self.degrees)
        if not len(self.connected):
            raise GraphError(
                f"of the {self._n} nodes that are trained on, no two are neighbours",
                "raise training_nodes or n_neighbors",
            )
        self.acquainted = self._keys(affinity) if ends is None else self._acquainted(affinity)
        self.sums = np.cumsum(self._A.data, dtype=np.float64)
        self._draw = self._random_edge if ends is None else self._random_end

    def _keys(self, A: Sparse) -> Ints:
        """Rising numbers of the entries, because rows and columns are sorted."""
        rows = np.repeat(np.arange(self._n, dtype=np.int64), np.diff(A.indptr))
        return np.asarray(rows * self._n + A.indices)

    def _acquainted(self, affinity: Sparse) -> Ints:
        """Numbers of all pairs that are no strangers: edges, and ends of walks in either direction."""
        ends = self._keys(self._A)
        back = (ends % self._n) * self._n + ends // self._n
        return np.unique(np.concatenate([self._keys(affinity), ends, back]))

    def draw(self, b: int) -> Sextets:
        """b independent sextets."""
        i, k = self._rng.choice(self.connected, size=(2, b))
        ij, kl = self._draw(i), self._draw(k)
        j, l = self._A.indices[ij].astype(np.int64), self._A.indices[kl].astype(np.int64)  # noqa: E741
        u = self._stranger(i, np.stack([i, j, k, l]))
        v = self._stranger(k, np.stack([k, l, i, j]))
        return Sextets(i, j, k, l, u, v, self._A.data[ij], self._A.data[kl])

    def _random_edge(self, nodes: Ints) -> Ints:
        return np.asarray(self._A.indptr[nodes] + self._rng.integers(0, self.degrees[nodes]))

    def _random_end(self, nodes: Ints) -> Ints:
        """Places in the rows of some nodes, drawn in proportion to what stands there."""
        sums, starts = self.sums, self._A.indptr[nodes].astype(np.int64)
        last = starts + self.degrees[nodes] - 1
        before = np.where(starts > 0, sums[starts - 1], 0.0)
        drawn = before + self._rng.random(len(nodes)) * (sums[last] - before)
        places = np.searchsorted(sums, drawn, side="right")
        return np.asarray(np.clip(places, starts, last))  # rounding stays in its row

    def _stranger(self, anchor: Ints, four: Ints) -> Ints:
        """A node far from all `four`; failing that, from `anchor`; failing that, neither of the first two."""
        u = self._rng.integers(0, self._n, size=len(anchor))
        wrong = np.arange(len(u))
        near_any = [four, four]
        near_anchor = [four[:2], anchor[None]]
        is_pair = [four[:2], four[:0]]
        for not_among, not_next_to in (near_any, near_anchor, is_pair):
            for _ in range(ROUNDS):
                tried = u[wrong]
                refused = self._is_among(tried, not_among[:, wrong])
                refused |= self._is_next_to(tried, not_next_to[:, wrong])
                wrong = wrong[refused]
                if not len(wrong):
                    return u
                u[wrong] = self._rng.integers(0, self._n, size=len(wrong))
        return u

    def _is_among(self, u: Ints, nodes: Ints) -> Mask:
        return np.asarray((u == nodes).any(axis=0))

    def _is_next_to(self, u: Ints, nodes: Ints) -> Mask:
        keys = nodes * self._n + u
        place = np.minimum(np.searchsorted(self.acquainted, keys), len(self.acquainted) - 1)
        return np.asarray((self.acquainted[place] == keys).any(axis=0))


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
        self._connected, self._acquainted, self._sums = (on(known.connected), on(known.acquainted), on(known.sums))
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
                refused = (tried == not_among[:, wrong]).any(0) | self._are_acquainted(tried, not_next_to[:, wrong])
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


_COPIES, _COPIES_AT_LEAST = (12, 6)  # of the layers' outputs that a step holds at most, and a pass without gradients


def bytes_of_steps(n: int, n_sextets: int, d: int, layers: Sequence[int]) -> int:
    """What steps through n nodes at once may take. d: of the network's input."""
    return 4 * n * (3 * d + _COPIES * sum(layers)) + _bytes_of_sextets(n_sextets, d, layers)


def _bytes_of_sextets(b: int, d: int, layers: Sequence[int]) -> int:
    """Rows of the six nodes of each, gathered from all layers, and again some on the way back."""
    return 9 * 4 * b * (d + sum(layers))


def bytes_of_features(n: int, d: int, layers: Sequence[int]) -> int:
    """What a pass through all n nodes may take, without a gradient."""
    return 4 * n * (3 * d + _COPIES_AT_LEAST * sum(layers))


def nodes_in(budget: float, n_sextets: int, d: int, layers: Sequence[int]) -> int:
    """How many nodes fit for steps, 0 or less for none; more than there ever are where there is no limit."""
    left = budget - _bytes_of_sextets(n_sextets, d, layers)
    return int(min(left / bytes_of_steps(1, 0, d, layers), 2**62))


def exact_batch(S: Sparse, wanted: Ints, n_layers: int, device: torch.device) -> Batch:
    """The nodes and blocks of S from which the features of `wanted` come out as on the whole graph.

    A layer with a second order reaches two hops. The first layer's messages are constants, so L layers
    need the nodes within 2 (L - 1) hops, and layer l needs to compute only those within 2 (L - l).
    """
    nodes, counts = breadth_first(S, wanted, 2 * (n_layers - 1))
    rows = rows_in_new_order(S, nodes, counts[-2] if n_layers > 1 else 0)
    hops = []
    for layer in range(2, n_layers + 1):
        output, middle, inputs = counts[2 * (n_layers - layer) :][:3]
        hops.append((_corner(rows, middle, inputs, device), _corner(rows, output, middle, device)))
    return Batch(torch.from_numpy(nodes).to(device), len(wanted), hops)


def whole_graph(S: Propagation, n_layers: int) -> Batch:
    """All nodes in their own order, for features without a batch."""
    return Batch(None, len(S), [(S, S)] * (n_layers - 1))


def _corner(rows: Sparse, n_rows: int, n_columns: int, device: torch.device) -> Propagation:
    """The first rows and columns; breadth-first order puts every neighbour of those rows inside."""
    end = rows.indptr[n_rows]
    block = type(rows)(
        (rows.data[:end], rows.indices[:end], rows.indptr[: n_rows + 1]), shape=(int(n_rows), int(n_columns))
    )
    return Propagation(block, device)
