"""Sparse times dense with a gradient: the one place where a SciPy matrix becomes a torch one."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from gradnet.arrays import Sparse
from gradnet.nn.gpu_products import gpu_multiply


class Propagation:
    """A block of the transition matrix, ready to carry features one hop: `S @ H`.

    The transpose is kept for the backward pass; a whole symmetric matrix is its own.
    """

    def __init__(self, block: Sparse, device: torch.device, symmetric: bool = False) -> None:
        self.block = _to_torch(block, device)
        self.transpose = self.block if symmetric else _to_torch(block.T.tocsr(), device)

    def __matmul__(self, H: Tensor) -> Tensor:
        product: Tensor = _Propagate.apply(self, H)  # type: ignore[no-untyped-call]
        return product

    def backwards(self, gradient: Tensor) -> Tensor:
        """S^T times a gradient: what `S @ H` owes to H."""
        return multiply(self.transpose, gradient)

    def __len__(self) -> int:
        return self.block.shape[0]


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
    if H.device.type == "cpu":
        # With `reduce`, torch takes its own row-parallel kernel, faster than the library call of `@`.
        product: Tensor = torch.sparse.mm(block, H.contiguous(), reduce="sum")
        return product
    return gpu_multiply(block, H)


def csr_tensor(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse CSR tensor whose parts are trusted; torch's notice that its support is young is left out."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(starts, columns, values, size=shape, check_invariants=False)


def _to_torch(block: Sparse, device: torch.device) -> Tensor:
    return csr_tensor(
        torch.from_numpy(block.indptr.astype("int64")),
        torch.from_numpy(block.indices.astype("int64")),
        torch.from_numpy(block.data),
        block.shape,
    ).to(device)
