"""The k-NN graph: similarities, mutual affinity, transition matrix, connected components."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifind.arrays import Floats, Ints, Mask, Sparse
from manifind.errors import GraphError
from manifind.index.exact import Neighbours, RowMatrix
from manifind.settings import GRAPH, SIMILARITY, check_value
from manifind.text import count

_WIDTHS = {"gaussian": 0.35, "sharp": 0.2}
"""Of the mean distance to the neighbours. 0.35 is the value of Yang, Prasad and Latecki's adaptive kernel."""


def neighbour_similarity(
    kind: str, queries: Floats, database: RowMatrix, ids: Ints, distances: Floats, scales: Floats | None = None
) -> Floats:
    """Similarity of each query to each of its neighbours, (m, k), zero where there is none to speak of.

    "euclidean": 1 / (1 + distance), the paper's. "gaussian": exp(-distance^2 / 2 (0.35 s)^2), where s is
    the mean of the two ends' `scales`. "sharp": with 0.2, which of many neighbours leaves each item as many as are
    clearly nearer than the rest. "cosine": the cosine, negative ones cut to 0; "cubed": its cube.
    ids, distances: (m, k). scales: (n,) mean neighbour distance of each database row; where it is
    not given, the query's own mean distance serves for both ends.
    """
    if kind == "euclidean":
        return 1.0 / (1.0 + distances)
    if kind in _WIDTHS:
        own = distances.sum(axis=1, keepdims=True) / np.float32(distances.shape[1])  # a mean, in a third of its time
        width = _WIDTHS[kind] * (own if scales is None else (own + scales[ids]) / 2)
        if not width.all():
            width = np.where(width > 0, width, 1.0)  # all neighbours at distance zero
        similarity = np.exp(-0.5 * (distances / width) ** 2)
        return np.asarray(np.maximum(similarity, np.finfo(np.float32).tiny), dtype=np.float32)
    check_value("similarity", kind, SIMILARITY)
    cosines = np.maximum(_cosines(queries, database, ids), 0.0)
    return cosines if kind == "cosine" else cosines**3


def _cosines(queries: Floats, database: RowMatrix, ids: Ints) -> Floats:
    """From squared lengths and distances would lose digits; so one column of neighbours at a time."""
    cosines = np.empty(ids.shape, dtype=np.float32)
    lengths_q = np.linalg.norm(queries, axis=1)
    for column in range(ids.shape[1]):
        x = database[ids[:, column]]
        products = np.einsum("ij,ij->i", queries, x)
        lengths = lengths_q * np.linalg.norm(x, axis=1)
        cosines[:, column] = products / np.where(lengths > 0, lengths, 1.0)
    return cosines


def mutual_affinity(ids: Ints, similarities: Floats) -> Sparse:
    """Keep an edge only where each end is among the other's k nearest (Eq. 8).

    ids: (N, k) neighbours of each node. similarities: (N, k), an edge needs a positive one.
    Returns A, (N, N) CSR: symmetric, zero diagonal.
    """
    G = sparse_rows(ids, similarities, len(ids))
    return tidy(G.minimum(G.T))


def union_affinity(ids: Ints, similarities: Floats) -> Sparse:
    """Keep an edge where either end is among the other's k nearest: the alternative to mutual edges.

    Shapes as for `mutual_affinity`. No node with a positive similarity is left without an edge.
    """
    G = sparse_rows(ids, similarities, len(ids))
    return tidy(G.maximum(G.T))


def local_graph(X: Floats, neighbours: Neighbours, kind: str, similarity: str) -> Sparse:
    """A, the affinity of the local graph over the rows of X, with at least one edge."""
    check_value("graph", kind, GRAPH)
    ids, distances = neighbours
    weights = neighbour_similarity(similarity, X, X, ids, distances, distances.mean(axis=1))
    A = (mutual_affinity if kind == "mutual" else union_affinity)(ids, weights)
    if A.nnz == 0:
        raise GraphError(
            f"the {kind} graph of {count(ids.shape[1], 'neighbour')} over {count(len(X), 'item')} "
            "has not a single edge",
            "set graph='union', raise n_neighbors, or use another similarity",
        )
    return A


def without_weak(A: Sparse, share: float) -> Sparse:
    """The edges that matter to one of their ends: of at least `share` of its strongest one. No node loses all."""
    strongest = A.max(axis=1).toarray().ravel()
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    kept = A.data >= share * np.minimum(strongest[rows], strongest[A.indices])
    starts = np.concatenate([[0], np.cumsum(kept)])[A.indptr]
    return sparse.csr_array((A.data[kept], A.indices[kept], starts), shape=A.shape)


def sparse_rows(columns: NDArray[Any], values: NDArray[Any], width: int) -> Sparse:
    """(n, width) CSR with `values` at the `columns` of each row, (n, k) both."""
    kind = columns.dtype if columns.size < 2**31 else np.int64  # both alike, or SciPy would widen the columns too
    starts = np.arange(0, columns.size + 1, columns.shape[1], dtype=kind)
    return sparse.csr_array((values.ravel(), columns.ravel(), starts), shape=(len(columns), width))


def tidy(A: Sparse) -> Sparse:
    """CSR with sorted columns and without stored zeros, where A stands."""
    A = A.tocsr()
    A.eliminate_zeros()
    A.sort_indices()
    return A


def transition(A: Sparse) -> Sparse:
    """The symmetric transition matrix S = D^-1/2 A D^-1/2, D the row sums of A (Eq. 2).

    A: (N, N) CSR, symmetric, non-negative. A node without an edge has a row of zeros in S.
    """
    degrees = A.sum(axis=1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        scale = np.where(degrees > 0, 1 / np.sqrt(degrees), 0.0)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    # One product per entry, in an order that does not depend on its side, keeps S exactly symmetric.
    values = A.data * (scale[rows] * scale[A.indices])
    return sparse.csr_array((values.astype(np.float32), A.indices, A.indptr), shape=A.shape)


def renormalised(A: Sparse) -> Sparse:
    """Kipf's D^-1/2 (A + I) D^-1/2 with D the row sums of A + I, in place of I + S (Eq. 7)."""
    return transition(with_loops(A, np.float32))


def with_loops(A: Sparse, dtype: type = np.float64) -> Sparse:
    """A + I, (N, N) CSR: an item has the largest similarity, one, to itself."""
    loops = (A.astype(dtype) + sparse.eye_array(A.shape[0], dtype=dtype, format="csr")).tocsr()
    loops.sort_indices()
    return loops


def row_normalised(A: Sparse) -> Sparse:
    """P = D^-1 A, D the row sums of A; a row of zeros stays one."""
    sums = A.sum(axis=1, dtype=np.float64)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
    values = A.data * np.repeat(scale, np.diff(A.indptr))
    return sparse.csr_array((values, A.indices, A.indptr), shape=A.shape)


def largest_per_row(A: Sparse, K: int | None) -> Sparse:
    """A without all but the K largest entries of each row, of equal ones the first; all stay if K is None."""
    if K is None:
        return A
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    order = np.lexsort((A.indices, -A.data, rows))  # by row, in it by falling value, in those by column
    place = np.arange(A.nnz) - A.indptr[rows]
    kept = np.sort(order[place < K])
    return sparse.csr_array((A.data[kept], (rows[kept], A.indices[kept])), shape=A.shape)


def component_indicator(affinity: Sparse) -> Sparse:
    """(N, C) CSR with a one for the component of each node."""
    n_components, of_node = connected_components(affinity, directed=False)
    return sparse_rows(of_node[:, None], np.ones(len(of_node)), n_components)


def reachable(start: Sparse, components: Sparse) -> Mask:
    """(b, N) whether a node lies in a component in which the query has a start.

    Eigenvectors leave rounding where there should be zeros: this tells them from small scores.
    start: (b, N) CSR, not negative. components: (N, C), of `component_indicator`.
    """
    begins = (start @ components).toarray() > 0  # (b, C)
    return np.asarray(begins[:, components.indices])
