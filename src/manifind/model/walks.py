"""Where walks on the graph end: as features, and as positives to learn from."""

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from manifind.arrays import Floats, Ints, Sparse, row_blocks
from manifind.graph.knn_graph import sparse_rows, tidy
from manifind.index.fit_context import FitContext
from manifind.index.vector_index import VectorIndex, make_index
from manifind.model.layers import Propagation, row_slices
from manifind.progress import Listener, Progress

ALPHA = 0.99  # by default: about a hundred steps before a walk begins anew
WIDTH = 512

_SPARE = 10  # directions beyond those that are kept, so that the last ones are found too
_ROUNDS = 2  # of subspace iteration; each divides what does not belong by the ratio of the eigenvalues
_STEPS = 20  # of Chebyshev's iteration; its error falls by 0.87 with each
_ENDS = 20  # of a walk that are positives: further ones are more often wrong
_ROUNDING = 1e-4  # of what a walk leaves at home: less may be none at all
_ROWS_PER_BLOCK = 4096
_COPIES = 7  # of all directions, that an iteration holds
_FEWEST_COLUMNS, _FLOATS_PER_BLOCK = 32, 1 << 26


class Walks(NamedTuple):
    """W = (I - alpha S)^-1, how much of the walks from each node is found at each other, by its leading directions.

    features: (N, r) rows whose inner products are the cosines between the rows of W: of U gains, where U has
    orthonormal columns, each row divided by the length that W's has. One whose walk is in no leading direction
    stays short. lengths: (N, 1) what they were divided by. gains: (r,) falling, W's eigenvalues: W is nearly
    U gains U^T.
    """

    features: Tensor
    lengths: Tensor
    gains: Tensor

    def ends(self, index: str, nodes: Ints | None, context: FitContext) -> Sparse:
        """(m, m) CSR: the 20 nodes whose walks are most like a node's own, with W there, as part of the largest.

        index: how they are found. nodes: rising numbers of the m nodes, None for all; of their ends those remain that
        are among them, and no other takes the place of one that is missing. A node whose walk stays at home has none.
        """
        features, lengths = (part.cpu().numpy() for part in (self.features, self.lengths))
        k = min(_ENDS, len(features) - 1)
        searched = make_index(features, "cosine", index, k + 1, engine=context.engine)
        wanted = np.arange(len(features)) if nodes is None else nodes
        blocks = []
        for rows in row_blocks(len(wanted), _ROWS_PER_BLOCK):
            context.listener(Progress("positives", rows.start, len(wanted)))
            block = _ends(searched, lengths, self.gains.cpu().numpy(), wanted[rows], k)
            blocks.append(block if nodes is None else block[:, nodes])
        context.listener(Progress("positives", len(wanted), len(wanted)))
        return sparse.csr_array(sparse.vstack(blocks, format="csr"))


def _ends(index: VectorIndex, lengths: Floats, gains: Floats, nodes: Ints, k: int) -> Sparse:
    """The ends of some nodes' walks among all nodes; W between two of them is that of their rows of U."""
    features, own = index.database, index.database[nodes]
    ids = index.nearest(own, k + 1).ids
    undone = own / gains
    W = np.einsum("md,mkd->mk", undone, features[ids]) * lengths[ids, 0]
    at_home = np.einsum("md,md->m", undone, own)[:, None] * lengths[nodes]
    W[(_ROUNDING * at_home > W) | (ids == nodes[:, None])] = 0
    largest = W.max(axis=1, keepdims=True)
    W /= np.where(largest > 0, largest, 1)
    return tidy(sparse_rows(ids, W, len(features)))


def bytes_of_walks(S: Sparse) -> int:
    """What finding them takes on a GPU, where all directions are carried along together."""
    N = int(S.shape[0])
    return 12 * int(S.nnz) + 4 * _COPIES * N * min(WIDTH + _SPARE, N)


def find_walks(S: Sparse, width: int, device: torch.device, context: FitContext, alpha: float = ALPHA) -> Walks:
    """The leading directions of W = (I - alpha S)^-1, at most `width`, by subspace iteration.

    S: (N, N) CSR, a transition matrix; only its products with narrow matrices are computed. alpha: how often a walk
    goes on.
    """
    if saved := context.checkpoint.load("walks"):
        return Walks(*(torch.tensor(saved[part], device=device) for part in Walks._fields))
    walks = _iterate(S, width, alpha, context.seed, device, context.listener)
    if context.checkpoint.due():
        context.checkpoint.save("walks", {name: part.cpu().numpy() for name, part in walks._asdict().items()})
    return walks


def _iterate(S: Sparse, width: int, alpha: float, seed: int, device: torch.device, listener: Listener) -> Walks:
    # Neighbours in the graph as neighbours in memory: the products are twice as fast, and this costs next to nothing.
    order = reverse_cuthill_mckee(S, symmetric_mode=True)
    P, N = Propagation(S[order][:, order], device, symmetric=True), S.shape[0]
    Q = torch.randn(N, min(width + _SPARE, N), generator=torch.Generator().manual_seed(seed)).to(device)
    Q = torch.linalg.qr(Q).Q
    # Columns that are carried along together; on a CPU so few that a handful of such blocks is small beside Q.
    at_once = max(_FEWEST_COLUMNS, _FLOATS_PER_BLOCK // N) if device.type == "cpu" else Q.shape[1]
    blocks = row_blocks(Q.shape[1], at_once)
    total = _ROUNDS * len(blocks) * _STEPS
    finished = count(1)

    def report() -> None:
        listener(Progress("walks", next(finished), total))

    for _ in range(_ROUNDS):
        for columns in blocks:
            Q[:, columns] = _limit(P, Q[:, columns].contiguous(), alpha, report)
        Q = torch.linalg.qr(Q).Q
    seen = torch.cat([Q.T @ (P @ Q[:, columns].contiguous()) for columns in blocks], dim=1)
    eigenvalues, turn = torch.linalg.eigh(seen)  # rising
    gains = 1 / (1 - alpha * eigenvalues.flip(0)[:width].clamp(-1, 1))
    return _walks(Q, turn.flip(1)[:, :width], gains, torch.from_numpy(order.astype(np.int64)).to(device))


def _walks(Q: Tensor, turn: Tensor, gains: Tensor, order: Tensor) -> Walks:
    """Walks for U = Q turn, whose rows are in another order: the i-th is node order[i]'s."""
    features, lengths = Q.new_empty(len(Q), turn.shape[1]), Q.new_empty(len(Q), 1)
    for rows in row_slices(len(Q), Q.device):
        U = Q[rows] @ turn
        ends = U * gains
        # What is left of a row's unit of U lies in directions that W neither lengthens nor shortens much.
        left = (1 - U.square().sum(dim=1)).clamp_min_(0)
        length = (ends.square().sum(dim=1) + left).sqrt_().clamp_min_(1e-12)[:, None]
        features[order[rows]], lengths[order[rows]] = ends / length, length
    return Walks(features, lengths, gains)


def _limit(S: Propagation, Y: Tensor, alpha: float, report: Callable[[], None]) -> Tensor:
    """(I - alpha S)^-1 Y, nearly: Chebyshev's iteration, all eigenvalues of I - alpha S being within 1 +- alpha."""
    residual, x, direction = Y, torch.zeros_like(Y), torch.zeros_like(Y)
    step, momentum = 1.0, 0.0
    for number in range(_STEPS):
        if number > 0:
            momentum = (alpha * step) ** 2 / (2 if number == 1 else 4)
            step = 1 / (1 - momentum / step)
        direction.mul_(momentum).add_(residual)
        x.add_(direction, alpha=step)
        residual = residual.sub(direction, alpha=step).add_(S @ direction, alpha=step * alpha)
        report()
    return x


def beside(parts: list[Tensor], others: Tensor, weight: float) -> list[Tensor]:
    """The layers' features and others behind them, so that the cosine is 1 part of theirs and `weight` of these.

    parts: (N, d_l) each. others: (N, width), rows of length 1 at most; they are scaled where they lie.
    """
    squared = torch.stack([torch.linalg.vecdot(part, part) for part in parts]).sum(dim=0)
    return [*parts, others.mul_((weight * squared).sqrt()[:, None])]
