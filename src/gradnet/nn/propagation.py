"""Sparse times dense with a gradient: the one place where a SciPy matrix becomes a torch one."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from gradnet.arrays import Sparse


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
        return _multiply(self.transpose, gradient)

    def __len__(self) -> int:
        return self.block.shape[0]


class _Propagate(torch.autograd.Function):
    """d(S H) = S dH, and back: S^T times the gradient."""

    @staticmethod
    def forward(ctx: Any, S: Propagation, H: Tensor) -> Tensor:
        ctx.S = S
        return _multiply(S.block, H)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, ctx.S.backwards(gradient)


def _multiply(block: Tensor, H: Tensor) -> Tensor:
    if H.device.type == "cpu":
        # With `reduce`, torch takes its own row-parallel kernel, faster than the library call of `@`.
        product: Tensor = torch.sparse.mm(block, H.contiguous(), reduce="sum")
        return product
    return block @ H


def _to_torch(block: Sparse, device: torch.device) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        tensor = torch.sparse_csr_tensor(
            torch.from_numpy(block.indptr.astype("int64")),
            torch.from_numpy(block.indices.astype("int64")),
            torch.from_numpy(block.data),
            size=block.shape,
            check_invariants=False,
        )
        return tensor.to(device)
