"""From sextets to the part of the graph that gives exactly the features the whole graph would."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradnet.arrays import Ints, Sparse
from gradnet.graph.subgraph import breadth_first, rows_in_new_order
from gradnet.nn.network import Batch
from gradnet.nn.propagation import Propagation

_COPIES, _COPIES_AT_LEAST = (
    12,
    6,
)  # of the layers' outputs that a step holds at most, and a pass without gradients


def bytes_of_steps(n: int, n_sextets: int, d: int, layers: Sequence[int]) -> int:
    """What steps through n nodes at once may take. d: of the network's input."""
    return 4 * n * (3 * d + _COPIES * sum(layers)) + _bytes_of_sextets(n_sextets, d, layers)


def _bytes_of_sextets(b: int, d: int, layers: Sequence[int]) -> int:
    """Rows of the six nodes of each, gathered from all layers, and again some on the way back."""
    return 9 * 4 * b * (d + sum(layers))


def bytes_of_features(n: int, d: int, layers: Sequence[int]) -> int:
    """What a pass through all n nodes may take, without a gradient."""
    return 4 * n * (3 * d + _COPIES_AT_LEAST * sum(layers))


def nodes_in(room: float, n_sextets: int, d: int, layers: Sequence[int]) -> int:
    """How many nodes find room for steps, 0 or less for none; more than there ever are where it has no limit."""
    left = room - _bytes_of_sextets(n_sextets, d, layers)
    return int(min(left / bytes_of_steps(1, 0, d, layers), 2**62))


def exact_batch(S: Sparse, wanted: Ints, n_layers: int, device: torch.device) -> Batch:
    """The nodes and blocks of S from which the features of `wanted` come out as on the whole graph.

    A layer with a second order reaches two hops. The first layer's messages are constants, so L layers
    need the nodes within 2 (L - 1) hops, and layer l needs to compute only those within 2 (L - l).
    """
    reach = breadth_first(S, wanted, 2 * (n_layers - 1))
    counts = reach.counts
    rows = rows_in_new_order(S, reach.nodes, counts[-2] if n_layers > 1 else 0)
    hops = []
    for layer in range(2, n_layers + 1):
        output, middle, inputs = counts[2 * (n_layers - layer) :][:3]
        hops.append((_corner(rows, middle, inputs, device), _corner(rows, output, middle, device)))
    return Batch(torch.from_numpy(reach.nodes).to(device), len(wanted), hops)


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
