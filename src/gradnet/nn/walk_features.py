"""Where walks on the graph end: as features, and as positives to learn from."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from gradnet.arrays import Floats, Sparse, row_blocks
from gradnet.checkpoint import NO_CHECKPOINT, Checkpoint
from gradnet.graph.spaces import Space
from gradnet.nn.propagation import Propagation
from gradnet.progress import Listener, Progress, ignore

ALPHA = 0.99  # the walk goes on so often: about a hundred steps before it begins anew
WIDTH = 512

_SPARE = 10  # directions beyond those that are kept, so that the last ones are found too
_ROUNDS = 2  # of subspace iteration; each divides what does not belong by the ratio of the eigenvalues
_STEPS = 20  # of Chebyshev's iteration; its error falls by 0.87 with each
_ENDS = 20  # of a walk that are positives: further ones are more often wrong
_ROUNDING = 1e-4  # of what a walk leaves at home: less may be none at all
_ROWS_PER_BLOCK = 4096


class Walks(NamedTuple):
    """W = (I - alpha S)^-1, how much of the walks from each node is found at each other, by its leading directions.

    vectors: U, (N, r), orthonormal columns. gains: (r,) falling, W's eigenvalues for them: W is nearly U gains U^T.
    """

    vectors: Tensor
    gains: Tensor

    def features(self) -> Tensor:
        """(N, r) rows whose inner products are the cosines between the rows of W.

        A row is divided by the length that W's has: one whose walk is in no leading direction stays short.
        """
        features = self.vectors * self.gains
        # What is left of a row's unit of U lies in directions that W neither lengthens nor shortens much.
        left = (1 - self.vectors.square().sum(dim=1)).clamp_min(0)
        return features / (features.square().sum(dim=1) + left).sqrt().clamp_min(1e-12)[:, None]

    def ends(self, index: str) -> Sparse:
        """(N, N) CSR: the 20 nodes whose walks are most like a node's own, with W there, as part of the largest.

        index: how they are found. A node whose walk stays at home has none.
        """
        features, half = self.features().cpu().numpy(), (self.vectors * self.gains.sqrt()).cpu().numpy()
        N, k = len(features), min(_ENDS, len(features) - 1)
        space = Space(features, "cosine", index, k + 1)
        blocks = [_ends(space, half, rows, k) for rows in row_blocks(N, _ROWS_PER_BLOCK)]
        return sparse.csr_array(sparse.vstack(blocks, format="csr"))


def _ends(space: Space, half: Floats, rows: slice, k: int) -> Sparse:
    """The rows of `Walks.ends` for some nodes; W is half half^T."""
    m, N = rows.stop - rows.start, len(half)
    ids = space.nearest(space.database[rows], k + 1).ids
    W = np.einsum("md,mkd->mk", half[rows], half[ids])
    at_home = np.einsum("md,md->m", half[rows], half[rows])[:, None]
    W[(_ROUNDING * at_home > W) | (ids == np.arange(rows.start, rows.stop)[:, None])] = 0
    largest = W.max(axis=1, keepdims=True)
    W /= np.where(largest > 0, largest, 1)
    block = sparse.csr_array((W.ravel(), ids.ravel(), np.arange(0, ids.size + 1, k + 1)), shape=(m, N))
    block.eliminate_zeros()
    block.sort_indices()
    return block


def find_walks(
    S: Sparse,
    width: int,
    seed: int,
    device: torch.device,
    listener: Listener = ignore,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Walks:
    """The leading directions of W = (I - alpha S)^-1, at most `width`, by subspace iteration.

    S: (N, N) CSR, a transition matrix; only its products with narrow matrices are computed. checkpoint: may have
    them already.
    """
    if kept := checkpoint.load("walks"):
        return Walks(*(torch.tensor(kept[part], device=device) for part in Walks._fields))
    walks = _iterate(S, width, seed, device, listener)
    if checkpoint.due():
        checkpoint.save("walks", {name: part.cpu().numpy() for name, part in walks._asdict().items()})
    return walks


def _iterate(S: Sparse, width: int, seed: int, device: torch.device, listener: Listener) -> Walks:
    # Neighbours in the graph as neighbours in memory: the products are twice as fast, and this costs next to nothing.
    order = reverse_cuthill_mckee(S, symmetric_mode=True)
    P, N = Propagation(S[order][:, order], device, symmetric=True), S.shape[0]
    start = torch.randn(N, min(width + _SPARE, N), generator=torch.Generator().manual_seed(seed))
    Q = torch.linalg.qr(start.to(device)).Q
    for done in range(_ROUNDS):
        Q = torch.linalg.qr(_limit(P, Q, _heard_from(done, listener))).Q
    eigenvalues, turn = torch.linalg.eigh(Q.T @ (P @ Q))  # rising
    found = (Q @ turn).flip(1)[:, :width]
    vectors = torch.empty_like(found)
    vectors[torch.from_numpy(order.astype(np.int64)).to(device)] = found
    return Walks(vectors, 1 / (1 - ALPHA * eigenvalues.flip(0)[:width].clamp(-1, 1)))


def _heard_from(done: int, listener: Listener) -> Callable[[int], None]:
    return lambda step: listener(Progress("walks", done * _STEPS + step, _ROUNDS * _STEPS))


def _limit(S: Propagation, Y: Tensor, tell: Callable[[int], None]) -> Tensor:
    """(I - alpha S)^-1 Y, nearly: Chebyshev's iteration, all eigenvalues of I - alpha S being within 1 +- alpha."""
    residual, x, direction = Y.clone(), torch.zeros_like(Y), torch.zeros_like(Y)
    step, momentum = 1.0, 0.0
    for number in range(_STEPS):
        if number > 0:
            momentum = (ALPHA * step) ** 2 / (2 if number == 1 else 4)
            step = 1 / (1 - momentum / step)
        direction = residual + momentum * direction
        x += step * direction
        residual -= step * (direction - ALPHA * (S @ direction))
        tell(number + 1)
    return x


def beside(parts: list[Tensor], others: Tensor, weight: float) -> list[Tensor]:
    """The layers' features and others behind them, so that the cosine is 1 part of theirs and `weight` of these.

    parts: (N, d_l) each. others: (N, width), rows of length 1 at most.
    """
    squared = torch.stack([part.square().sum(dim=1) for part in parts]).sum(dim=0)
    return [*parts, others * (weight * squared).sqrt()[:, None]]
