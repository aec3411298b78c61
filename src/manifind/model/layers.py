"""The layers: sparse products with gradients, graph diffusion, graph convolution, activation."""

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manifind.arrays import Sparse, row_blocks
from manifind.model import gpu

_ROWS_PER_BLOCK = 1024


def row_slices(n: int, device: torch.device) -> list[slice]:
    """n rows in blocks of a thousand: large enough for the matrix product, small beside the whole.

    On a GPU all at once: there each block costs a launch, and memory is what it has.
    """
    return row_blocks(n, _ROWS_PER_BLOCK if device.type == "cpu" else max(n, 1))


class Propagation:
    """A block of the transition matrix, ready to carry features one hop: `S @ H`.

    The transpose is kept for the backward pass; a whole symmetric matrix is its own.
    """

    def __init__(self, block: Sparse, device: torch.device, symmetric: bool = False) -> None:
        self.block = _to_torch(block, device)
        self.transpose = self.block if symmetric else _to_torch(block.T.tocsr(), device)

    def __matmul__(self, H: Tensor) -> Tensor:
        return applied(_Propagate, self, H)

    def backwards(self, gradient: Tensor) -> Tensor:
        """S^T times a gradient: what `S @ H` owes to H."""
        return multiply(self.transpose, gradient)

    def __len__(self) -> int:
        return self.block.shape[0]


def applied(function: Any, *inputs: Any) -> Tensor:
    """The output of an autograd function, to whose `apply` torch gives no types."""
    output: Tensor = function.apply(*inputs)
    return output


class _Propagate(torch.autograd.Function):
    """d(S H) = S dH, and back: S^T times the gradient."""

    @staticmethod
    def forward(ctx: Any, S: Propagation, H: Tensor) -> Tensor:
        ctx.S = S
        return multiply(S.block, H)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, ctx.S.backwards(gradient)


def multiply(block: Tensor, H: Tensor) -> Tensor:
    """A sparse CSR tensor times a dense one, by the fastest kernel of the device."""
    if H.device.type != "cpu":
        return gpu.multiply(block, H)
    # With `reduce`, torch takes its own row-parallel kernel, faster than the library call of `@`.
    product: Tensor = torch.sparse.mm(block, H.contiguous(), reduce="sum")
    return product


def csr_tensor(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse CSR tensor whose parts are trusted; torch's notice that its support is young is left out."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(starts, columns, values, size=shape, check_invariants=False)


def _to_torch(block: Sparse, device: torch.device) -> Tensor:
    starts, columns = (torch.from_numpy(part.astype("int64")) for part in (block.indptr, block.indices))
    return csr_tensor(starts, columns, torch.from_numpy(block.data), block.shape).to(device)


_LANES = 4  # 16-bit numbers in one random 64-bit word
_LEVELS = 1 << 16
_SMALLEST_LENGTH = 1e-12


def activate(
    Y: Tensor, slope: float, dropout: float, generator: torch.Generator | None, n_wanted: int
) -> tuple[Tensor, Tensor]:
    """LeakyReLU of Y, its rows scaled to length 1, then entries dropped with probability `dropout`.

    What is kept is scaled up by 1 / (1 - dropout). generator: None leaves the dropout out. A row of
    zeros stays as it is. slope must be positive: the gradient reads the sign of Y off the result.
    Returns the result, for the next layer, and a copy of its first n_wanted rows, for the features: a
    slice would bring back a gradient as large as the whole, nearly all of it zeros. Where no gradient is asked for
    and all rows are wanted, Y itself becomes both.
    """
    if not torch.is_grad_enabled() and generator is None and n_wanted == len(Y):
        out = _unit_rows(F.leaky_relu_(Y, slope))[0]
        return out, out
    kept = None if generator is None or dropout == 0 else _draw(Y, dropout, generator)
    scale = 1.0 / (1.0 - dropout)
    if gpu.has_kernel() and Y.is_cuda and Y.shape[1] <= gpu.WIDEST:
        out = applied(_ActivateRows, Y, slope, kept, scale)
        return out, out[:n_wanted] if n_wanted < len(out) else out
    out, wanted = applied(_Activate, Y, slope, kept, scale, n_wanted)
    return out, wanted


def _draw(Y: Tensor, dropout: float, generator: torch.Generator) -> Tensor:
    """A mask of kept entries; 16 random bits decide each, so that one 64-bit word serves four."""
    words = torch.empty((Y.numel() + _LANES - 1) // _LANES, dtype=torch.int64, device=Y.device)
    words.random_(-(2**63), None, generator=generator)
    lanes = words.view(torch.int16)[: Y.numel()].view(Y.shape)
    return lanes >= round(dropout * _LEVELS) - _LEVELS // 2


def _unit_rows(Y: Tensor) -> tuple[Tensor, Tensor]:
    """Y, scaled where it lies to rows of length 1, and (V, 1) the lengths that they had."""
    lengths = Y.norm(dim=1, keepdim=True).clamp_min_(_SMALLEST_LENGTH)
    return Y.div_(lengths), lengths


class _Activate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, Y: Tensor, slope: float, kept: Tensor | None, scale: float, n_wanted: int
    ) -> tuple[Tensor, Tensor]:
        unit, lengths = _unit_rows(F.leaky_relu(Y, slope))
        ctx.save_for_backward(unit, lengths, kept)
        ctx.slope, ctx.scale = slope, scale
        out = unit if kept is None else (unit * kept).mul_(scale)
        return out, out[:n_wanted].clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, of_wanted: Tensor) -> tuple[Tensor, None, None, None, None]:
        unit, lengths, kept = ctx.saved_tensors
        dY = torch.empty_like(unit)
        for rows in row_slices(len(unit), unit.device):
            u, g = unit[rows], gradient[rows].clone()
            head = of_wanted[rows]
            g[: len(head)] += head
            if kept is not None:
                g.mul_(kept[rows]).mul_(ctx.scale)
            along = torch.linalg.vecdot(g, u).unsqueeze(1)
            d_row = g.addcmul_(u, along, value=-1).div_(lengths[rows])
            d_row.masked_fill_(lengths[rows] <= _SMALLEST_LENGTH, 0.0)  # a row of zeros has no direction to turn
            torch.where(u > 0, d_row, d_row * ctx.slope, out=dY[rows])
        return dY, None, None, None, None


class _ActivateRows(torch.autograd.Function):
    """The same on a GPU, a row at a time in one pass over memory for each direction."""

    @staticmethod
    def forward(ctx: Any, Y: Tensor, slope: float, kept: Tensor | None, scale: float) -> Tensor:
        out, unit, lengths = gpu.activate_forward(Y, slope, kept, scale, _SMALLEST_LENGTH)
        ctx.save_for_backward(unit, lengths, kept)
        ctx.slope, ctx.scale = slope, scale
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        unit, lengths, kept = ctx.saved_tensors
        dY = gpu.activate_backward(gradient, unit, lengths, kept, ctx.slope, ctx.scale, _SMALLEST_LENGTH)
        return dY, None, None, None


_COLUMNS_PER_BLOCK = 256  # of a gradient carried back a hop at a time


def first_order(H: Tensor, SH: Tensor, self_weight: float) -> Tensor:
    """The messages of neighbours, S H of f1 = S H W1, and the node's own features: (I + S) H (Eq. 12, 13).

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
        if H.is_cuda and near is far and gpu.has_kernel():
            return applied(_DiffuseWhole, near, H, self.W1, self.W2, self.self_weight)
        return applied(_Diffuse, near, far, H, self.W1, self.W2, self.self_weight)

    def messages(self, S: Propagation, H: Tensor) -> tuple[Tensor, Tensor]:
        """The messages of columns of its input, (N, c) for each order: constant where the input is."""
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
        SH = gpu.multiply(S.block, H)
        messages, weights = gpu.both_orders(H, SH, self_weight), torch.stack([W2, W1])
        second, first = messages @ weights  # W2 first: the narrower side
        ctx.S, ctx.self_weight = S, self_weight
        ctx.save_for_backward(H, SH, messages, weights)
        return gpu.multiply(S.block, second, beside=first)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, Tensor, Tensor, None]:
        H, SH, messages, weights = ctx.saved_tensors
        both = gradient.new_empty(2, *gradient.shape)
        both[1] = gradient
        gpu.multiply(ctx.S.block, both[1], out=both[0])  # S is its own transpose
        dW2, dW1 = messages.mT @ both
        dH, dSH = gpu.both_orders_back(both @ weights.mT, H, SH, ctx.self_weight)
        return None, gpu.multiply(ctx.S.block, dSH, beside=dH), dW1, dW2, None


def xavier_uniform(d_in: int, d_out: int, generator: torch.Generator) -> nn.Parameter:
    """A weight matrix, (d_in, d_out), uniform within +-sqrt(6 / (d_in + d_out))."""
    bound = (6 / (d_in + d_out)) ** 0.5
    return nn.Parameter(torch.empty(d_in, d_out).uniform_(-bound, bound, generator=generator))


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
        """The messages of columns of its input, (N, c): to be computed once where they never change."""
        return (first_order(H, S @ H, self.self_weight),)

    def weights(self) -> Tensor:
        """The matrix, (d, d'), that the messages of all columns are multiplied with."""
        return self.W
