"""Explains a result: the strongest path through the graph from the query to it."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifind.arrays import Floats, Ints, Sparse
from manifind.collection.version import Version, read_arrays
from manifind.errors import CollectionError, InputError
from manifind.graph.knn_graph import neighbour_similarity, transition


def read_affinity(version: Version) -> Sparse:
    """The weights of the graph, (N, N), once it is certain that they are a matrix.

    N is the number of nodes, or more where queries stood in the graph, too.
    """
    if not version.manifest.is_full:
        hint = "ask the collection that it was exported from"
        raise InputError(f"{version.directory} is compressed: it has no graph", hint)
    arrays = read_arrays(version.snapshot, "graph")
    try:
        data, indices, indptr = (arrays[f"affinity_{name}"] for name in ("data", "indices", "indptr"))
        n = len(indptr) - 1
        A = sparse.csr_array((data.astype(np.float32), indices, indptr), shape=(n, n))
        A.check_format(full_check=True)  # SciPy itself would read whatever stands at an index
        if not np.isfinite(A.data).all():
            raise ValueError("a weight is no number")
    except (KeyError, TypeError, ValueError) as error:
        problem = f"{version.snapshot.segments['graph']} is damaged: {error}"
        raise CollectionError(problem, "index the source again") from error
    return A


def later_edges(version: Version, kind: str, which: Ints, near: Ints, n: int) -> Sparse:
    """(a, n) weights between some added items and their neighbours. kind: of similarity.

    which: (a,) of the added items. near: (a, k) where their neighbours stand among n nodes.
    """
    added, nodes = version.added[which], version.learned.descriptors
    weights = neighbour_similarity(kind, added.descriptors, nodes, added.neighbours, added.distances)
    starts = np.arange(0, near.size + 1, near.shape[1])
    edges = sparse.csr_array((weights.ravel(), near.ravel(), starts), shape=(len(near), n))
    edges.sort_indices()
    return edges


_A_STEP = 1e-6  # what each edge costs beside its weight: of equally strong paths the shortest is the better


class Step(NamedTuple):
    """An item on the way, and the weight of the edge that leads to it; row None is the query itself, weight 1."""

    row: int | None
    weight: float


class Graph:
    """The graph of a version, to find paths in. Nodes are fitted items, of equal ones the first."""

    def __init__(self, version: Version) -> None:
        self._version, self._nodes = version, version.learned.nodes
        A = read_affinity(version)
        if A.shape[0] != len(self._nodes):
            hint = "index the source again to see why"
            raise InputError(f"{version.directory} was fitted with queries in its graph, which are not stored", hint)
        self._S = transition(A)  # what one step of diffusion carries: small where an end has many others to hear
        S = self._S
        self._lengths = sparse.csr_array((_lengths(S.data), S.indices, S.indptr), shape=S.shape)

    def path(self, start: int | Floats, end: int) -> list[Step]:
        """The path from an item, or from a preprocessed descriptor, (d,), to an item: the greatest product of weights.

        Weights are those of S = D^-1/2 A D^-1/2; of an end that is no node, its similarities scaled to the sum 1.
        Empty where the graph does not lead there.
        """
        n = len(self._nodes)
        ends = [self._edges(start), self._edges(end)]
        first, last = (
            sparse.csr_array((_lengths(weights), (np.zeros_like(nodes), nodes)), shape=(1, n))
            for nodes, weights in ends
        )
        whole = sparse.block_array(
            [[self._lengths, first.T, last.T], [first, None, None], [last, None, None]], format="csr"
        )
        before = dijkstra(whole, directed=False, indices=n, return_predecessors=True)[1]
        if before[n + 1] < 0:
            return []
        places = [n + 1]
        while places[-1] != n:
            places.append(int(before[places[-1]]))
        steps = [Step(start if isinstance(start, int) else None, 1.0)]
        for a, b in pairwise(reversed(places)):
            row = int(self._nodes[b]) if b < n else end
            if row != steps[-1].row:  # an end that stands in the graph is reached from its own node: one item, not two
                steps.append(Step(row, self._weight(a, b, ends)))
        return steps

    def weights_by_rank(self, most: int) -> Floats:
        """(r,) the mean weight of an item's strongest, second strongest, ... edge, as far as most items have one."""
        A = self._S
        count = np.diff(A.indptr)
        ranks = min(most, int(np.median(count)) if len(count) else 0)
        order = np.lexsort((-A.data, np.repeat(np.arange(A.shape[0]), count)))
        rank = np.arange(len(order)) - np.repeat(A.indptr[:-1], count)
        falling = A.data[order]
        return np.array([falling[rank == one].mean() for one in range(ranks)], dtype=np.float32)

    def _edges(self, end: int | Floats) -> tuple[Ints, Floats]:
        """Nodes through which an end is reached, and how strongly: itself, or its neighbours."""
        version, learned = self._version, self._version.learned
        added = version.items.added_place(end) if isinstance(end, int) else None
        if isinstance(end, int) and added is None:
            place = int(np.searchsorted(self._nodes, end))
            if place < len(self._nodes) and self._nodes[place] == end:
                return np.array([place]), np.ones(1, dtype=np.float32)
            end = np.asarray(learned.descriptors[end])  # a duplicate of a node
        if isinstance(end, int):
            later = version.added[[added]]
            point, ids, distances = later.descriptors, later.neighbours, later.distances
        else:
            point = end[None]
            ids, distances = learned.node_neighbours(point, learned.queries.n_neighbors)
        if (distances[:, 0] == 0).any():  # an item like it stands in the graph
            ids, distances = ids[:, :1], distances[:, :1]
        weights = neighbour_similarity(learned.queries.similarity, point, learned.descriptors, ids, distances)
        return np.searchsorted(self._nodes, ids[0]), weights[0] / weights[0].sum()

    def _weight(self, a: int, b: int, ends: Any) -> float:
        n = len(self._nodes)
        for outer, inner in ((a, b), (b, a)):
            if outer >= n:
                nodes, weights = ends[outer - n]
                return float(weights[np.flatnonzero(nodes == inner)[0]])
        return float(self._S[[a]][:, [b]].toarray()[0, 0])


def _lengths(weights: Floats) -> Floats:
    """-log w, of which a sum is the logarithm of a product; a little for each edge, since zero would be none."""
    clipped = np.clip(weights, np.finfo(np.float32).tiny, 1.0)
    return np.asarray(_A_STEP - np.log(clipped), dtype=np.float32)
