"""The graph convolution of Kipf and Welling: the diffusion layer without its second order."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gradnet.nn.diffusion_layer import first_order, xavier_uniform
from gradnet.nn.propagation import Propagation


class GCNLayer(nn.Module):
    """sigma((I + S) H W), before sigma (Eq. 6).

    W: (d, d'), no bias. Same interface as DiffusionLayer, so that the ablation swaps one for the other.
    """

    def __init__(self, d_in: int, d_out: int, self_weight: float, generator: torch.Generator) -> None:
        super().__init__()
        self.self_weight = self_weight
        self.W = xavier_uniform(d_in, d_out, generator)

    def forward(self, near: Propagation, far: Propagation, H: Tensor) -> Tensor:
        """(V, d') for the V nodes that `far` has rows for; shapes as in DiffusionLayer."""
        HW = H[: len(near)] @ self.W  # (M, d') before the hop: the narrower side
        return first_order(HW[: len(far)], far @ HW, self.self_weight)

    def messages(self, S: Propagation, H: Tensor) -> tuple[Tensor]:
        """What the layer hears of columns of its input, (N, c): to be computed once where they never change."""
        return (first_order(H, S @ H, self.self_weight),)

    def weights(self) -> Tensor:
        """The matrix, (d, d'), that the messages of all columns are multiplied with."""
        return self.W
