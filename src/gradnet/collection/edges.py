"""The graph that a collection was fitted on, as it was written, and the edges of items that came later."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from gradnet.arrays import Ints, Sparse
from gradnet.collection.reader import read_arrays
from gradnet.collection.version import Version
from gradnet.errors import CollectionError, InputError
from gradnet.graph.similarity import neighbour_similarity


def read_affinity(version: Version) -> Sparse:
    """The weights of the graph, (N, N), once it is certain that they are a matrix.

    N is the number of nodes, or more where queries stood in the graph, too.
    """
    if not version.snapshot.is_full:
        raise InputError(
            f"{version.directory} is compressed: it has no graph",
            "ask the collection that it was exported from",
        )
    arrays = read_arrays(version.snapshot, "graph")
    try:
        data, indices, indptr = (arrays[f"affinity_{name}"] for name in ("data", "indices", "indptr"))
        n = len(indptr) - 1
        A = sparse.csr_array((data.astype(np.float32), indices, indptr), shape=(n, n))
        A.check_format(full_check=True)  # SciPy itself would read whatever stands at an index
        if not np.isfinite(A.data).all():
            raise ValueError("a weight is no number")
    except (KeyError, TypeError, ValueError) as error:
        raise CollectionError(
            f"{version.snapshot.segments['graph']} is damaged: {error}", "index the source again"
        ) from error
    return A


def later_edges(version: Version, kind: str, asked: Ints, near: Ints, n: int) -> Sparse:
    """(a, n) weights between some items that came later and their neighbours. kind: of similarity.

    asked: (a,) which of them. near: (a, k) where their neighbours stand among n nodes.
    """
    added, nodes = version.added[asked], version.learned.descriptors
    weights = neighbour_similarity(kind, added.descriptors, nodes, added.neighbours, added.distances)
    starts = np.arange(0, near.size + 1, near.shape[1])
    edges = sparse.csr_array((weights.ravel(), near.ravel(), starts), shape=(len(near), n))
    edges.sort_indices()
    return edges
