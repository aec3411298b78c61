"""Edge weights that suit the set: narrow where few neighbours lie along a manifold, wider and shared where many do.

On a manifold of few dimensions the nearest neighbours are much nearer than the next ones, and a narrow Gaussian finds
the few that lie along it. In many dimensions all neighbours are about as far: a narrow Gaussian picks some by chance
and cuts groups into pieces. There more neighbours count, those first that two items have in common, and the
descriptors' own similarity stays beside what is learned. All of that only as far as neighbours can be relied on.
"""

from typing import NamedTuple

import numpy as np

from manifind.arrays import Floats, Ints, row_blocks
from manifind.graph.knn_graph import sparse_rows
from manifind.graph.neighbour_agreement import NeighbourAgreement

_NEIGHBOURS = 10  # by which the dimension is estimated, and which two items may have in common
_LOW, _MIDDLE, _HIGH = 8.0, 12.0, 15.0  # dimensions where the weights begin to change, and where they stop
_NOISE, _RELIABLE = 0.4, 0.65  # agreement of two halves of the descriptors
_NARROW, _STEP = 0.2, 0.07  # of the Gaussian's width, which is a share of the mean distance to the neighbours
_DESCRIPTORS = 2.0  # most that the descriptors weigh beside the network's features
_LEAST_SHARED = 1e-3  # an edge between items without a common neighbour is weak, not gone
_ROWS_PER_BLOCK = 4096


class EdgeShape(NamedTuple):
    """What suits a set. width: of the Gaussian. sharing: the power of the shared neighbours, from 0 to 1.

    descriptor_weight: of the descriptors beside the learned features.
    """

    width: float
    sharing: float
    descriptor_weight: float


SHARP = EdgeShape(_NARROW, 0.0, 0.0)
"""Of the weights "sharp"."""


def intrinsic_dimension(distances: Floats) -> float:
    """Levina and Bickel's estimate from the ten nearest neighbours, its median over the items.

    m_i = (mean over j < k of ln(d_ik / d_ij))^-1. distances: (N, k), rising. Infinite where they do not rise.
    """
    logarithms = np.log(np.maximum(distances[:, :_NEIGHBOURS], np.finfo(np.float32).tiny))
    if logarithms.shape[1] < 2:
        return 0.0  # nothing to compare
    inverse = float(np.median(np.mean(logarithms[:, -1:] - logarithms[:, :-1], axis=1)))
    return 1 / inverse if inverse > 0 else float("inf")


def edge_shape(dimension: float, agreement: NeighbourAgreement) -> EdgeShape:
    """The shape for an intrinsic dimension, and for how far two halves of the descriptors agree on neighbours.

    With r rising from 0 to 1 with the agreement, a and b from 0 to r with the lower and the upper half of the
    dimensions: width 0.2 + 0.07 (a + b), sharing b, descriptors 2 a.
    """
    known = 0.0 if agreement.agreement is None else agreement.agreement
    reliable = float(np.clip((known - _NOISE) / (_RELIABLE - _NOISE), 0, 1))
    lower = reliable * float(np.clip((dimension - _LOW) / (_MIDDLE - _LOW), 0, 1))
    upper = reliable * float(np.clip((dimension - _MIDDLE) / (_HIGH - _MIDDLE), 0, 1))
    return EdgeShape(_NARROW + _STEP * (lower + upper), upper, _DESCRIPTORS * lower)


def adaptive_similarity(ids: Ints, distances: Floats, shape: EdgeShape) -> Floats:
    """(N, k) exp(-d^2 / 2 (w s)^2) J^p: w the width, s the mean of both ends' mean neighbour distance, p the sharing.

    J is Jaccard's overlap of both ends' ten nearest. ids, distances: (N, k) neighbours of every item.
    """
    means = distances.mean(axis=1)
    width = np.float32(shape.width) * (means[:, None] + means[ids]) / 2
    weights = np.exp(-0.5 * (distances / np.where(width > 0, width, 1)) ** 2)
    if shape.sharing > 0:
        weights *= np.maximum(shared_neighbours(ids), _LEAST_SHARED) ** np.float32(shape.sharing)
    return np.asarray(np.maximum(weights, np.finfo(np.float32).tiny), dtype=np.float32)


def shared_neighbours(ids: Ints) -> Floats:
    """(N, k) Jaccard's overlap of an item's ten neighbours, itself among them, with those of each of its neighbours."""
    N, k = ids.shape
    own = np.concatenate([np.arange(N, dtype=ids.dtype)[:, None], ids[:, :_NEIGHBOURS]], axis=1)
    size = own.shape[1]
    members = sparse_rows(own, np.ones(own.shape, dtype=np.float32), N)
    lists = members.T.tocsr()
    shared = np.empty(ids.shape, dtype=np.float32)
    for rows in row_blocks(N, _ROWS_PER_BLOCK):
        common = (members[rows] @ lists).tocsr()
        at = np.repeat(np.arange(rows.stop - rows.start), k)
        shared[rows] = np.asarray(common[at, ids[rows].ravel()]).reshape(-1, k)
    return np.asarray(shared / (2 * size - shared))


def similarity_from_outside(kind: str) -> str:
    """The weights of edges to an item that is not in the graph, for which nothing was adapted."""
    return "sharp" if kind == "adaptive" else kind
