"""Affinity estimation, and the two losses: local smoothness and global order."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from manifind.index.gpu import products_in
from manifind.model.layers import applied, csr_tensor, multiply
from manifind.settings import GradNetSettings

_SMALLEST_LENGTH = 1e-12


def cosine(parts: Sequence[Tensor], i: Tensor, j: Tensor) -> Tensor:
    """s_ij = h_i . h_j / (|h_i| |h_j|) for many pairs of rows (Eq. 18).

    parts: (V, d_l) each, side by side they are H; products and lengths add up over them, so that H is never
    put together and the constant part H0 needs no gradient. i, j: (p,) rows. Returns (p,), zero where a
    row is zero.
    """
    return applied(_PairedCosines, i, j, *parts)


class _PairedCosines(torch.autograd.Function):
    """Both directions as products with a sparse (V, V) matrix that has one entry for each pair.

    The gradient of s = r_i r_j h_i . h_j with r = 1 / |h| is r_i r_j h_j - s r_i^2 h_i, and alike for j:
    rows of H, mixed by a sparse matrix. It is summed in a fixed order, so that the same seed gives the
    same bits.
    """

    @staticmethod
    def forward(ctx: Any, i: Tensor, j: Tensor, *parts: Tensor) -> Tensor:
        V = len(parts[0])
        pairs, place = _distinct(i * V + j)
        rows, columns = pairs // V, pairs % V
        pattern = _from_sorted(rows, columns, parts[0].new_zeros(len(pairs)), V)
        products = torch.stack([torch.sparse.sampled_addmm(pattern, part, part.T).values() for part in parts]).sum(0)
        of_parts = torch.stack([torch.linalg.vector_norm(part, dim=1) for part in parts])
        lengths = torch.linalg.vector_norm(of_parts, dim=0)
        scale = lengths.clamp_min(_SMALLEST_LENGTH).reciprocal()  # (V,)
        cosines: Tensor = products * scale[rows] * scale[columns]
        ctx.save_for_backward(rows, columns, place, scale, cosines, *parts)
        return cosines[place]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns, place, scale, cosines, *parts = ctx.saved_tensors
        V = len(scale)
        g = _summed(place, gradient, len(cosines))
        across = g * scale[rows] * scale[columns]
        along = _summed(torch.cat([rows, columns]), (g * cosines).repeat(2), V)
        nodes = torch.arange(V, device=rows.device)
        to = torch.cat([rows, columns, nodes])
        order = _rising(to)
        sources, weights = torch.cat([columns, rows, nodes]), torch.cat([across, across, -along * scale.square()])
        mixing = _from_sorted(to[order], sources[order], weights[order], V)
        needed = zip(parts, ctx.needs_input_grad[2:], strict=True)
        return None, None, *(multiply(mixing, part) if need else None for part, need in needed)


def gathered_cosines(parts: Sequence[Tensor], nodes: Tensor, order: Tensor) -> Tensor:
    """The same cosines for a GPU, without a step whose size depends on the values: it can be captured and repeated.

    nodes: (b, 6) rows. order: (6 b,) which of them, one sextet behind the other, come first when they rise.
    Returns (7, b), in the order of PAIRS.
    """
    b, size = nodes.shape
    flat = nodes.reshape(-1)
    once = torch.ones_like(order, dtype=torch.float32)
    back = _from_sorted(flat[order], order, once, len(parts[0]), len(flat))  # sums gradients in a fixed order
    rows = [applied(_GatherRows, flat, back, part).view(b, size, -1) for part in parts]
    gram = torch.stack([applied(_Grams, of_part) for of_part in rows]).sum(0)  # (b, s, s)
    scale = gram.diagonal(dim1=1, dim2=2).clamp_min(_SMALLEST_LENGTH**2).rsqrt()
    first, second = _sides(nodes.device)
    products: Tensor = (gram * scale[:, :, None] * scale[:, None])[:, first, second]
    return products.T


@lru_cache(maxsize=8)
def _sides(device: torch.device) -> Tensor:
    """(2, 7) both sides of PAIRS; kept, since nothing can be sent to a GPU while a step is captured."""
    return torch.tensor(PAIRS, device=device).T.contiguous()


class _Grams(torch.autograd.Function):
    """All inner products within each sample: (b, s, d) to (b, s, s), in full precision whatever else is not."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        with products_in("float32"):
            return rows @ rows.mT

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (rows,) = ctx.saved_tensors
        with products_in("float32"):
            product: Tensor = (gradient + gradient.mT) @ rows
        return product


class _GatherRows(torch.autograd.Function):
    """Rows by number; back: the matrix that carries their gradient to where they came from."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, back: Tensor, part: Tensor) -> Tensor:
        ctx.back = back
        return part.index_select(0, nodes)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor | None]:
        return None, None, multiply(ctx.back, gradient) if ctx.needs_input_grad[2] else None


def _distinct(keys: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct values, rising, and which of them each key is."""
    order = _rising(keys)
    in_order = keys[order]
    is_first = torch.ones_like(in_order, dtype=torch.bool)
    torch.ne(in_order[1:], in_order[:-1], out=is_first[1:])
    place = torch.empty_like(order)
    place[order] = is_first.cumsum(0) - 1
    return in_order[is_first], place


def _rising(keys: Tensor) -> Tensor:
    """Positions of `keys`, whole numbers from 0, in rising order; equal ones as they stand."""
    if keys.device.type != "cpu":
        return torch.argsort(keys, stable=True)
    # NumPy sorts numbers of 16 bits by counting, so a few rounds of that are faster than comparing wide ones.
    values = keys.numpy()
    order = np.argsort(values.astype(np.uint16), kind="stable")  # by the lowest 16 bits
    for shift in range(16, int(values.max(initial=0)).bit_length(), 16):
        order = order[np.argsort((values[order] >> shift).astype(np.uint16), kind="stable")]
    return torch.from_numpy(order)


def _from_sorted(rows: Tensor, columns: Tensor, values: Tensor, V: int, width: int | None = None) -> Tensor:
    """A (V, width) matrix, or (V, V), of entries whose rows rise; entries of one place add up."""
    starts = torch.searchsorted(rows, torch.arange(V + 1, device=rows.device))
    return csr_tensor(starts, columns, values, (V, V if width is None else width))


def _summed(places: Tensor, values: Tensor, n: int) -> Tensor:
    """(n,) sums of the values that share a place. On each kind of device the other way has no fixed order."""
    total = values.new_zeros(n)
    if values.device.type == "cpu":
        return total.index_add_(0, places, values)
    return total.index_put_((places,), values, accumulate=True)


_SMALLEST = 1e-6  # what a logarithm or a coefficient is kept above


PAIRS = ((0, 1), (0, 4), (2, 3), (2, 5), (2, 0), (3, 1), (3, 0))
"""Which two of a sextet's nodes (i, j, k, l, u, v) the similarities of a loss are of: ij, iu, kl, kv, ki, lj, li."""


class Loss(NamedTuple):
    """The total, which is minimised, and its two parts as batch means."""

    total: Tensor
    local: Tensor
    global_: Tensor


def local_loss(s_ij: Tensor, s_iu: Tensor, settings: GradNetSettings) -> Tensor:
    """A neighbour should be more similar than a stranger: -ln sigmoid((s_ij - s_iu) / T) (Eq. 19).

    The paper prints -ln(s_ij - s_iu), which is undefined wherever the stranger is more similar; the
    Bayesian ranking loss that it refers to has the sigmoid. local_loss="log" takes the print literally,
    cut off just above zero. s_ij, s_iu: (b,). Returns (b,).
    """
    difference = (s_ij - s_iu) / settings.temperature
    if settings.local_loss == "bpr":
        return F.softplus(-difference)
    return -difference.clamp_min(_SMALLEST).log()


def global_loss(
    s_ki: Tensor, s_lj: Tensor, s_li: Tensor, a_ij: Tensor, a_kl: Tensor, settings: GradNetSettings
) -> Tensor:
    """Two neighbourhoods should agree: ln(1 + beta a_ij a_kl w (s_ki - s_lj)^2) (Eq. 20).

    The coefficient w is s_ki s_lj without a gradient, "detached"; with one, "attached"; or s_ki s_li as
    the paper prints it, "printed". It is kept positive: a negative one would break the logarithm.
    All (b,). Returns (b,).
    """
    w = s_ki * (s_li if settings.global_coefficient == "printed" else s_lj)
    w = w.clamp_min(_SMALLEST)
    if settings.global_coefficient == "detached":
        w = w.detach()
    return torch.log1p(settings.beta * a_ij * a_kl * w * (s_ki - s_lj).square())


def total_loss(local: Tensor, global_: Tensor, squared_norm: Tensor, settings: GradNetSettings) -> Tensor:
    """L = L_local + alpha L_global + lambda |Theta|^2 (Eq. 21)."""
    return settings.local_weight * local + settings.global_weight * global_ + settings.l2 * squared_norm


def sextet_loss(
    s: Iterable[Tensor], a_ij: Tensor, a_kl: Tensor, squared_norm: Tensor, settings: GradNetSettings
) -> Loss:
    """The mean over a batch of L_local(iju) + L_local(klv) + alpha L_global(ijkl) + lambda |Theta|^2 (Eq. 22).

    s: learned similarities within b sextets, (b,) each, in the order of PAIRS. a_ij, a_kl: (b,) weights of the edges.
    """
    s_ij, s_iu, s_kl, s_kv, s_ki, s_lj, s_li = s
    local = local_loss(s_ij, s_iu, settings) + local_loss(s_kl, s_kv, settings)
    global_ = global_loss(s_ki, s_lj, s_li, a_ij, a_kl, settings).mean()
    return Loss(total_loss(local.mean(), global_, squared_norm, settings), local.mean(), global_)
