"""How an unseen query joins the graph: what its edges would weigh, and how far walks along them would lead."""

from typing import NamedTuple, Protocol

import numpy as np

from manifind.arrays import Floats, Ints
from manifind.graph.adaptive_weights import EdgeShape

_NARROWEST = 0.22  # a node that would list the query is missing: narrower, the nearest alone would decide


class Scales(Protocol):
    """What gives the scales of nodes, wherever they are kept."""

    def at(self, ids: Ints) -> "NodeScales":
        """Of some nodes, in the shape of their numbers."""
        ...


class NodeScales(NamedTuple):
    """What the nodes of the graph, or some of them, contribute to the weights of their edges; arrays of one shape.

    spreads: the mean distance to the nearest others. degrees: the sum of a node's edges. lengths: of its row of
    (I - alpha S)^-1, which says where walks from it end.
    """

    spreads: Floats
    degrees: Floats
    lengths: Floats

    def at(self, ids: Ints) -> "NodeScales":
        """Of some nodes, in the shape of their numbers."""
        return NodeScales(*(part[ids] for part in self))


class JoiningShape(NamedTuple):
    """Of the edges by which queries join. width: of the Gaussian, as a share of a scale s.

    own: how much of s is the query's own, from a half to the whole: on which neighbours a query has in common with a
    node is not known, and where the graph relies on that, the node's scale alone would favour those in thin regions.
    """

    width: float
    own: float


def joining_shape(distances: Floats, spreads: Floats, shape: EdgeShape) -> JoiningShape:
    """The shape that suits a graph.

    distances: (N, k) of nodes to their neighbours, by whose mean the graph's width is measured. spreads: (N,) the mean
    over as many as a query joins through, by which its own is. shape: of the graph's edges.
    """
    least, mean = float(spreads.mean(dtype=np.float64)), float(distances.mean(dtype=np.float64))
    ratio = mean / least if least > 0 else 1.0
    return JoiningShape(max(_NARROWEST, shape.width) * ratio, (1 + shape.sharing) / 2)


def walk_factors(edges: Floats, near: NodeScales) -> Floats:
    """(m, k) l_i / sqrt(d_i + a_qi): times its edge a_qi, how much of a query's walks ends where those of a node do.

    With the edge, the node's degree d_i would be d_i + a_qi. A walk that begins at the query goes on from its
    neighbours, so that where it ends is the sum of a_qi / sqrt(d_i + a_qi), up to a factor that all neighbours share,
    times where theirs end: their features, of length 1, times l_i. For weak edges, which change these no more, it is
    exact.
    """
    return np.asarray(near.lengths / np.sqrt(np.maximum(near.degrees + edges, np.finfo(np.float32).tiny)))


def joining_weights(distances: Floats, near: NodeScales, shape: JoiningShape) -> Floats:
    """(m, k) the weights of a query's neighbours: a_qi (l_i / sqrt(d_i + a_qi))^1/2, scaled so that none exceeds one.

    distances: (m, k) of queries to their neighbours. near: the neighbours' scales, (m, k) each. shape: of the edges.

    a_qi = exp(-distance^2 / 2 (w s)^2) is what the edge between query and node would weigh, s a mean of both ends'
    mean distance to their nearest. The weight is the geometric mean of the edge and of what walks along it would say:
    edges alone lose the chains of neighbours, and walks, which stay long in closed groups, would favour any pair over
    a query's only relative.
    """
    own = distances.mean(axis=1, keepdims=True)
    scales = np.float32(shape.width) * (np.float32(shape.own) * own + np.float32(1 - shape.own) * near.spreads)
    logarithms = -0.5 * (distances / np.where(scales > 0, scales, 1)) ** 2
    factors = np.sqrt(walk_factors(np.exp(logarithms), near))
    # Far from everything all edges vanish; what matters is their ratio.
    weights = np.exp(logarithms - logarithms.max(axis=1, keepdims=True)) * factors
    largest = weights.max(axis=1, keepdims=True)
    return np.asarray(weights / np.where(largest > 0, largest, 1), dtype=np.float32)
