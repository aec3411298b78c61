"""The graph diffusion layer: what a node hears from its neighbours and from their neighbours."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gradnet.arrays import row_blocks
from gradnet.nn.gpu_products import both_orders, both_orders_back, gpu_multiply, has_kernel
from gradnet.nn.propagation import Propagation
from gradnet.nn.row_slices import row_slices

_COLUMNS_PER_BLOCK = 256  # of a gradient carried back a hop at a time


def first_order(H: Tensor, SH: Tensor, self_weight: float) -> Tensor:
    """What neighbours say, S H of f1 = S H W1, with the node's own voice: (I + S) H (Eq. 12, 13).

    H, SH: (V, d). self_weight: 1 for I + S; 0 where S holds the self-loops already. The weights W1
    follow outside, so that constant messages can be computed once.
    """
    return torch.add(SH, H, alpha=self_weight)


def second_order(H: Tensor, SH: Tensor) -> Tensor:
    """What passes through a node on its way to the next, S H * H of f2 = S (S H * H) W2 (Eq. 14, 15).

    H, SH: (M, d); the product is element by element. The second hop and W2 follow outside, in
    whichever order makes the sparse product narrower.
    """
    return SH * H


class DiffusionLayer(nn.Module):
    """sigma((I + S) H W1 + S (S H * H) W2), before sigma (Eq. 11, 16).

    W1, W2: (d, d'), no bias. sigma, LeakyReLU, is applied by the network with what follows it.
    """

    def __init__(self, d_in: int, d_out: int, self_weight: float, generator: torch.Generator) -> None:
        super().__init__()
        self.self_weight = self_weight
        self.W1, self.W2 = (xavier_uniform(d_in, d_out, generator) for _ in range(2))

    def forward(self, near: Propagation, far: Propagation, H: Tensor) -> Tensor:
        """(V, d') for the V nodes that `far` has rows for.

        H: (I, d) in an order in which the V come first and the M nodes of their neighbourhood before
        the rest. near: S to the M, (M, I). far: S to the V, (V, M).
        """
        if H.is_cuda and near is far and has_kernel():
            whole: Tensor = _DiffuseWhole.apply(near, H, self.W1, self.W2, self.self_weight)  # type: ignore[no-untyped-call]
            return whole
        out: Tensor = _Diffuse.apply(near, far, H, self.W1, self.W2, self.self_weight)  # type: ignore[no-untyped-call]
        return out

    def messages(self, S: Propagation, H: Tensor) -> tuple[Tensor, Tensor]:
        """What the layer hears of columns of its input, (N, c) for each order: constant where the input is."""
        SH = S @ H
        return first_order(H, SH, self.self_weight), S @ second_order(H, SH)

    def weights(self) -> Tensor:
        """The matrix, (2 d, d'), that the messages of all columns, one order beside the other, are multiplied with."""
        return torch.cat([self.W1, self.W2])


class _Diffuse(torch.autograd.Function):
    """The layer's product with a gradient that keeps only H and S H: the rest is cheaper to compute again."""

    @staticmethod
    def forward(
        ctx: Any, near: Propagation, far: Propagation, H: Tensor, W1: Tensor, W2: Tensor, self_weight: float
    ) -> Tensor:
        SH = near @ H  # (M, d), one hop, used by both orders
        through = H.new_empty(len(near), W2.shape[1])
        for rows in row_slices(len(near), H.device):
            torch.mm(second_order(H[rows], SH[rows]), W2, out=through[rows])  # W2 first: the narrower side
        out = far @ through
        del through
        for rows in row_slices(len(far), H.device):
            out[rows].addmm_(first_order(H[rows], SH[rows], self_weight), W1)
        ctx.near, ctx.far, ctx.self_weight = near, far, self_weight
        ctx.save_for_backward(H, SH, W1, W2)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor, Tensor, Tensor, None]:
        H, SH, W1, W2 = ctx.saved_tensors
        gradient = gradient.contiguous()
        through = ctx.far.backwards(gradient)  # (M, d')
        dW1, dW2 = torch.zeros_like(W1), torch.zeros_like(W2)
        dH, dSH = torch.zeros_like(H), torch.empty_like(SH)  # (I, d), (M, d)
        for rows in row_slices(len(ctx.near), H.device):
            dW2.addmm_(second_order(H[rows], SH[rows]).T, through[rows])
            d_product = through[rows] @ W2.T
            torch.mul(d_product, H[rows], out=dSH[rows])
            torch.mul(d_product, SH[rows], out=dH[rows])
        for rows in row_slices(len(ctx.far), H.device):
            dW1.addmm_(first_order(H[rows], SH[rows], ctx.self_weight).T, gradient[rows])
            d_sum = gradient[rows] @ W1.T
            dSH[rows] += d_sum
            dH[rows].add_(d_sum, alpha=ctx.self_weight)
        if H.device.type != "cpu":
            return None, None, dH.add_(ctx.near.backwards(dSH)), dW1, dW2, None
        for columns in row_blocks(H.shape[1], _COLUMNS_PER_BLOCK):
            dH[:, columns] += ctx.near.backwards(dSH[:, columns])
        return None, None, dH, dW1, dW2, None


class _DiffuseWhole(torch.autograd.Function):
    """The same on a GPU for the whole symmetric graph: both orders in one product, element-wise work in one pass."""

    @staticmethod
    def forward(ctx: Any, S: Propagation, H: Tensor, W1: Tensor, W2: Tensor, self_weight: float) -> Tensor:
        SH = gpu_multiply(S.block, H)
        heard, weights = both_orders(H, SH, self_weight), torch.stack([W2, W1])
        second, first = heard @ weights  # W2 first: the narrower side
        ctx.S, ctx.self_weight = S, self_weight
        ctx.save_for_backward(H, SH, heard, weights)
        return gpu_multiply(S.block, second, beside=first)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, Tensor, Tensor, None]:
        H, SH, heard, weights = ctx.saved_tensors
        both = gradient.new_empty(2, *gradient.shape)
        both[1] = gradient
        gpu_multiply(ctx.S.block, both[1], out=both[0])  # S is its own transpose
        dW2, dW1 = heard.mT @ both
        dH, dSH = both_orders_back(both @ weights.mT, H, SH, ctx.self_weight)
        return None, gpu_multiply(ctx.S.block, dSH, beside=dH), dW1, dW2, None


def xavier_uniform(d_in: int, d_out: int, generator: torch.Generator) -> nn.Parameter:
    """A weight matrix, (d_in, d_out), uniform within +-sqrt(6 / (d_in + d_out))."""
    bound = (6 / (d_in + d_out)) ** 0.5
    return nn.Parameter(torch.empty(d_in, d_out).uniform_(-bound, bound, generator=generator))
