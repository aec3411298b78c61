"""Everything that is known of the manifold before a network sees it, from descriptors to H0."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifind.arrays import Floats, Sparse
from manifind.errors import GraphError
from manifind.graph.adaptive_weights import SHARP, EdgeShape, adaptive_similarity, edge_shape, intrinsic_dimension
from manifind.graph.anchors import anchor_codes, kmeans_anchors
from manifind.graph.joining import JoiningShape, joining_shape
from manifind.graph.knn_graph import local_graph, mutual_affinity, union_affinity, without_weak
from manifind.graph.neighbour_agreement import FULL_AGREEMENT, NeighbourAgreement
from manifind.graph.preprocess import leading_directions
from manifind.index.exact import Neighbours, graph_neighbours
from manifind.index.fit_context import FitContext
from manifind.index.ivf import Quality
from manifind.index.vector_index import make_index
from manifind.progress import Progress
from manifind.settings import INPUTS, GradNetSettings, check_value

DEFAULT_NEIGHBORS = 30
"""Neighbours where nobody says how many: sharp weights choose among them."""

_WEAK = 0.01  # of an item's strongest edge: walks go along weaker ones too, the network only loses time there


@dataclass(frozen=True)
class Manifold:
    """The two graphs over N nodes.

    affinity: A, (N, N) CSR. anchors: U, (B, d). codes: Z, (N, B) CSR; B = 0 where the network does not see codes.
    inputs: H0, (N, d + B).
    search: how well the neighbours were found; None where exactly.
    all_edges: the local graph before its weak edges were left out, for walks; None where nobody asks for those.
    nearest: (N,) how far each node is from its nearest other.
    dimension: the intrinsic one, and shape: of the weights that suit it; None where they do not follow it.
    spreads: (N,) the mean distance to as many as a query joins through. joining: the shape of the edges by which it
    does; None where the weights are no narrow Gaussian.
    """

    affinity: Sparse
    anchors: Floats
    codes: Sparse
    inputs: Floats
    search: Quality | None = None
    all_edges: Sparse | None = None
    nearest: Floats | None = None
    dimension: float | None = None
    shape: EdgeShape | None = None
    spreads: Floats | None = None
    joining: JoiningShape | None = None


def input_features(nodes: Floats, codes: Sparse, inputs: str) -> Floats:
    """H0, one row per node: its descriptor and, appended, its anchor code (Eq. 10).

    nodes: (N, d). codes: Z, (N, B). inputs: "both", or one alone for the ablation.
    """
    check_value("inputs", inputs, INPUTS)
    if inputs == "descriptors":
        return nodes
    Z: Floats = codes.toarray()
    return Z if inputs == "codes" else np.concatenate([nodes, Z], axis=1)


def build_manifold(
    nodes: Floats, settings: GradNetSettings, context: FitContext, agreement: NeighbourAgreement = FULL_AGREEMENT
) -> Manifold:
    """The local and the global graph over distinct, preprocessed descriptors, (N, d).

    agreement: how far neighbours can be relied on, which decides how adaptive weights are chosen.
    """
    N = len(nodes)
    k = settings.n_neighbors or min(DEFAULT_NEIGHBORS, N - 1)
    index = make_index(nodes, "euclidean", settings.index, k + 1, engine=context.engine)
    search = context.processes.divided(index.nearest)
    neighbours = graph_neighbours(nodes, k, context.listener, search, context.checkpoint)
    dimension = shape = None
    if settings.similarity == "adaptive":
        dimension = intrinsic_dimension(neighbours.distances)
        shape = edge_shape(dimension, agreement)
        if settings.kernel_width is not None:
            shape = shape._replace(width=settings.kernel_width)
        all_edges = _adaptive_graph(neighbours, settings.graph, shape)
    else:
        all_edges = local_graph(nodes, neighbours, settings.graph, settings.similarity)
    with_walks = settings.positives == "walks" or settings.walk_weight > 0
    A = without_weak(all_edges, _WEAK) if with_walks else all_edges
    # Anchors and codes; none of either where the network does not see them.
    U, Z = nodes[:0], sparse.csr_array((N, 0), dtype=np.float32)
    if settings.inputs != "descriptors":
        U = kmeans_anchors(nodes, settings.n_anchors, context.seed, context.engine)
        Z = anchor_codes(nodes, U, settings.n_codes)
    context.listener(Progress("graph", N, N))
    inputs = input_features(narrowed(nodes, settings.input_components), Z, settings.inputs)
    walked = all_edges if with_walks else None
    distances, joining = neighbours.distances, None
    spreads = distances[:, : settings.n_query_neighbors or k].mean(axis=1)
    if settings.similarity in ("sharp", "adaptive"):
        joining = joining_shape(distances, spreads, shape or SHARP)
    nearest = distances[:, 0].copy()
    return Manifold(A, U, Z, inputs, index.quality, walked, nearest, dimension, shape, spreads, joining)


def _adaptive_graph(neighbours: Neighbours, kind: str, shape: EdgeShape) -> Sparse:
    """A, as `local_graph`; no weight is zero, so that only a mutual graph may have no edge."""
    weights = adaptive_similarity(neighbours.ids, neighbours.distances, shape)
    A = (mutual_affinity if kind == "mutual" else union_affinity)(neighbours.ids, weights)
    if A.nnz == 0:
        raise GraphError("the mutual graph has not a single edge", "set graph='union', or raise n_neighbors")
    return A


def narrowed(nodes: Floats, n_components: int | None) -> Floats:
    """Descriptors, (N, d), on their n_components leading directions, for the network alone; None keeps them.

    Inner products stay as they can, but not the second order, which multiplies element by element: another
    basis is another operator.
    """
    N, d = nodes.shape
    if n_components is None or n_components >= d:
        return nodes
    return np.asarray(nodes @ leading_directions([nodes], min(n_components, N))[0])
