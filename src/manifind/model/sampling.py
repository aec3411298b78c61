"""Sextets, the training samples, drawn on the CPU or the GPU, and the exact subgraph of each batch."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from manifind.arrays import Ints, Sparse
from manifind.errors import GraphError
from manifind.graph.subgraph import breadth_first, rows_in_new_order
from manifind.model.layers import Propagation
from manifind.model.network import Batch
from manifind.text import are, count

ROUNDS = 64  # redraws before the next weaker condition is tried


Array: TypeAlias = Any
"""A NumPy array, or a tensor on a device."""


class Sextets(NamedTuple):
    """b samples: edges (i, j) and (k, l), and strangers u and v.

    nodes: (6, b), i to v in this order. a_ij, a_kl: (b,) weights of the two edges.
    """

    nodes: Array
    a_ij: Array
    a_kl: Array


class SextetSampler:
    """Draws sextets from an affinity matrix.

    i and k are uniform over the nodes that have a neighbour; j and l uniform over the neighbours of i
    and of k; u and v uniform over the nodes that are neither among i, j, k, l nor next to any of them.
    On a small or dense graph there may be no such node, or so few that 64 draws find none: then u need
    only be no neighbour of i, and v none of k, which is all that Eq. 19 asks; and where that fails in
    the same way, any third node.

    ends: where walks end, (N, N) CSR, or None. With them, j and l are drawn from the ends of walks from i and from
    k, in proportion to their weights, which stand for those of edges; and they are no strangers.
    """

    _library: Any = np  # torch has functions of the same names

    def __init__(self, affinity: Sparse, rng: Any, ends: Sparse | None = None) -> None:
        self._rng, self._n, self._is_weighted = rng, affinity.shape[0], ends is not None
        if self._n < 3:
            problem = f"there {are(self._n)} only {count(self._n, 'distinct item')}, and a sample compares three"
            raise GraphError(problem, "fit on at least three different items")
        A = affinity if ends is None else ends
        degrees = np.diff(A.indptr).astype(np.int64)
        if not degrees.any():
            hint = "raise training_nodes or n_neighbors"
            raise GraphError(f"of the {self._n} nodes that are trained on, no two are neighbours", hint)
        # Numbers, row * N + column, of all pairs that are no strangers: edges, and ends of walks in either direction.
        acquainted = self._keys(affinity)
        if ends is not None:
            there = self._keys(ends)
            back = (there % self._n) * self._n + there // self._n
            acquainted = np.unique(np.concatenate([acquainted, there, back]))
        self._acquainted, self._connected = self._table(acquainted), self._table(np.flatnonzero(degrees))
        self._starts, self._degrees = self._table(A.indptr[:-1].astype(np.int64)), self._table(degrees)
        self._columns, self._values = self._table(A.indices.astype(np.int64)), self._table(A.data)
        self._sums = self._table(np.cumsum(A.data, dtype=np.float64))

    def _keys(self, A: Sparse) -> Ints:
        """Rising numbers of the entries, because rows and columns are sorted."""
        rows = np.repeat(np.arange(self._n, dtype=np.int64), np.diff(A.indptr))
        return np.asarray(rows * self._n + A.indices)

    def draw(self, b: int) -> Sextets:
        """b independent sextets."""
        stack = self._library.stack
        i, k = self._connected[self._integers(len(self._connected), (2, b))]
        ij, kl = self._edge(i), self._edge(k)
        j, l = self._columns[ij], self._columns[kl]  # noqa: E741 - the paper's letter
        u, v = self._stranger(i, stack([i, j, k, l])), self._stranger(k, stack([k, l, i, j]))
        return Sextets(stack([i, j, k, l, u, v]), self._values[ij], self._values[kl])

    def _edge(self, nodes: Array) -> Array:
        """A place in the row of each node: any of them alike, or in proportion to what stands there."""
        starts, degrees, sums = self._starts[nodes], self._degrees[nodes], self._sums
        if not self._is_weighted:
            return starts + self._below(degrees)
        last = starts + degrees - 1
        before = self._library.where(starts > 0, sums[starts - 1], 0.0)
        drawn = before + self._shares(len(nodes)) * (sums[last] - before)
        places = self._library.searchsorted(sums, drawn, side="right")
        return places.clip(starts, last)  # rounding stays in its row

    def _stranger(self, anchor: Array, four: Array) -> Array:
        """A node far from all `four`; failing that, from `anchor`; failing that, neither of the first two."""
        u = self._integers(self._n, (len(anchor),))
        wrong = self._table(np.arange(len(u)))
        for not_among, not_next_to in ((four, four), (four[:2], anchor[None]), (four[:2], four[:0])):
            for _ in range(ROUNDS):
                tried = u[wrong]
                refused = (tried == not_among[:, wrong]).any(0) | self._is_next_to(tried, not_next_to[:, wrong])
                wrong = wrong[refused]
                if not len(wrong):
                    return u
                u[wrong] = self._integers(self._n, (len(wrong),))
        return u

    def _is_next_to(self, u: Array, nodes: Array) -> Array:
        keys = nodes * self._n + u
        place = self._library.searchsorted(self._acquainted, keys).clip(max=len(self._acquainted) - 1)
        return (self._acquainted[place] == keys).any(0)

    def _table(self, array: Array) -> Array:
        """An array where the drawing takes place."""
        return array

    def _integers(self, n: int, size: tuple[int, ...]) -> Array:
        return self._rng.integers(0, n, size=size)

    def _below(self, bounds: Array) -> Array:
        return self._rng.integers(0, bounds)

    def _shares(self, n: int) -> Array:
        return self._rng.random(n)


class SextetSteps(NamedTuple):
    """The samples of c steps. nodes: (c, b, 6). order: (c, 6 b) where they stand when they rise, step by step.

    a_ij, a_kl: (c, b) weights of the two edges.
    """

    nodes: Tensor
    order: Tensor
    a_ij: Tensor
    a_kl: Tensor


class DeviceSampler(SextetSampler):
    """The same sextets with the same probabilities on a device, from other random numbers, for many steps at once."""

    _library = torch

    def __init__(self, affinity: Sparse, ends: Sparse | None, device: torch.device) -> None:
        self._device = device
        super().__init__(affinity, torch.Generator(device), ends)

    def draw_steps(self, steps: int, b: int, seed: int) -> SextetSteps:
        """`steps` times b sextets; the same seed gives the same ones."""
        self._rng.manual_seed(seed)
        drawn, a_ij, a_kl = self.draw(steps * b)
        nodes = drawn.T.contiguous().view(steps, b, 6)
        order = nodes.view(steps, -1).argsort(dim=1, stable=True)
        return SextetSteps(nodes, order, a_ij.view(steps, b), a_kl.view(steps, b))

    def _table(self, array: Array) -> Tensor:
        return torch.as_tensor(array).to(self._device)

    def _integers(self, n: int, size: tuple[int, ...]) -> Tensor:
        return torch.randint(n, size, generator=self._rng, device=self._device)

    def _below(self, bounds: Tensor) -> Tensor:
        return (self._shares(len(bounds)) * bounds).long().clamp_max(bounds - 1)

    def _shares(self, n: int) -> Tensor:
        return torch.rand(n, generator=self._rng, device=self._device, dtype=torch.float64)


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
    parts = (rows.data[:end], rows.indices[:end], rows.indptr[: n_rows + 1])
    return Propagation(type(rows)(parts, shape=(int(n_rows), int(n_columns))), device)
