"""Guided similarity separation (Liu et al. 2019): a graph network that drives similarities apart."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manifind.arrays import Floats, row_blocks
from manifind.baselines.estimators import FeatureEstimator
from manifind.graph.knn_graph import renormalised
from manifind.model.estimator import draw_seed
from manifind.model.layers import Propagation, applied
from manifind.settings import POSITIVE, SHARE, estimator, setting, whole

_ROWS_PER_BLOCK = 1024  # of the similarities over all pairs, which are never held at once
_SAMPLED_ROWS = 2048  # from which the threshold is read where there are more
_OFF_DIAGONAL = 1e-5
_RESIDUAL = 0.3


@estimator
class GSS(FeatureEstimator):
    """Guided similarity separation (Liu et al. 2019): a graph network that drives similarities apart.

    Features e of a two-layer network that lower -1/2 (relu(e_i . e_j) - beta)^2, summed over all pairs.

    Similarities above beta grow and those below it fall; beta is the `quantile` of all similarities at the
    start, where the network is nearly the identity. The last features count, not the best by a test score.
    """

    cost = "quadratic in time, all pairs in every step; linear in memory"

    n_neighbors: int = 4
    graph: str = "union"
    similarity: str = "cosine"
    n_layers: int = setting(2, whole(1))
    quantile: float = setting(0.98, SHARE)
    steps: int = setting(200, whole(0))
    learning_rate: float = setting(1e-4, POSITIVE)
    random_state: int | np.random.RandomState | None = None

    def _features(self) -> Floats:
        cpu = torch.device("cpu")
        S, X = Propagation(renormalised(self.affinity_), cpu, symmetric=True), self.nodes_.descriptors
        generator = torch.Generator().manual_seed(draw_seed(self.random_state))
        network = NearIdentity(X.shape[1], self.n_layers, generator)
        first = S @ torch.from_numpy(X)  # the first layer's inputs never change
        with torch.no_grad():
            beta = _quantile(network(S, first), self.quantile)
        adam = torch.optim.Adam(network.parameters(), lr=self.learning_rate, fused=True)
        for _ in range(self.steps):
            adam.zero_grad(set_to_none=True)
            separation_loss(network(S, first), beta).backward()  # type: ignore[no-untyped-call]
            adam.step()
        with torch.no_grad():
            return np.asarray(network(S, first).numpy())


class NearIdentity(nn.Module):
    """Layers z = S x W + b, x = elu(z), later ones x = z_before + 0.3 elu(z), with W nearly the identity."""

    def __init__(self, d: int, n_layers: int, generator: torch.Generator) -> None:
        super().__init__()
        noise = (_OFF_DIAGONAL * torch.randn(d, d, generator=generator) for _ in range(n_layers))
        self.weights = nn.ParameterList(matrix.fill_diagonal_(1.0) for matrix in noise)
        self.biases = nn.ParameterList(torch.zeros(d) for _ in range(n_layers))

    def forward(self, S: Propagation, first: Tensor) -> Tensor:
        """(N, d) unit rows. first: S X, (N, d)."""
        z = first @ self.weights[0] + self.biases[0]
        x = F.elu(z)
        for W, b in zip(list(self.weights)[1:], list(self.biases)[1:], strict=True):
            before, z = z, (S @ x) @ W + b
            x = before + _RESIDUAL * F.elu(z)
        return F.normalize(x)


def separation_loss(e: Tensor, beta: float) -> Tensor:
    """The mean over all pairs of -1/2 (relu(e_i . e_j) - beta)^2. e: (N, d)."""
    return applied(_Separation, e, beta)


class _Separation(torch.autograd.Function):
    """Loss and gradient in one pass over blocks of rows, so that no N x N matrix is held.

    d/de_i = -2 / N^2 sum_j (s_ij - beta) [s_ij > 0] e_j, each pair counting in both of its orders.
    """

    @staticmethod
    def forward(ctx: Any, e: Tensor, beta: float) -> Tensor:
        N = len(e)
        loss, gradient = e.new_zeros(()), torch.empty_like(e)
        for rows in row_blocks(N, _ROWS_PER_BLOCK):
            s = e[rows] @ e.T
            positive = s > 0
            apart = s.clamp_min_(0.0).sub_(beta)
            loss -= 0.5 * apart.square().sum() / N**2
            gradient[rows] = apart.mul_(positive) @ e
        ctx.save_for_backward(gradient.mul_(-2 / N**2))
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * upstream, None


def _quantile(e: Tensor, q: float) -> float:
    """The q-quantile of all inner products; of an even sample of rows where there are many."""
    rows = torch.linspace(0, len(e) - 1, min(len(e), _SAMPLED_ROWS)).long()
    return float(np.quantile((e[rows] @ e[rows].T).numpy(), q))
