"""Sextets (i, j, k, l, u, v): the training samples, drawn as the paper's implementation section says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradnet.arrays import Floats, Ints, Mask, Sparse
from gradnet.errors import GraphError
from gradnet.wording import are, count

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
