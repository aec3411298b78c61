"""The matrix products of a computation, recorded while it runs so that they can be run alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# As torch names them below autograd; `@`, `torch.mm`, `torch.sparse.mm` and linear layers end in these.
_PRODUCTS = {
    "mm",
    "addmm",
    "addmm_",
    "bmm",
    "baddbmm",
    "baddbmm_",
    "mv",
    "addmv",
    "addmv_",
    "_sparse_mm_reduce_impl",
    "_sparse_mm_reduce_impl_backward",
    "sparse_sampled_addmm",
}


class Product(NamedTuple):
    """One call, with the very tensors that it was made with: strides and sparsity decide its time."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]

    def flops(self) -> int:
        """Two for each entry of the left matrix that meets a column of the right one.

        Where only sampled entries of the product are wanted, two for each term of those.
        """
        *_, a, b = tensors = [argument for argument in self.arguments if isinstance(argument, torch.Tensor)]
        if len(tensors) > 2 and tensors[0].layout != torch.strided:
            return 2 * tensors[0].values().numel() * a.shape[-1]
        entries = a.numel() if a.layout == torch.strided else a.values().numel()
        return 2 * entries * (b.shape[-1] if b.ndim > 1 else 1)

    def is_sparse(self) -> bool:
        """Whether a sparse matrix takes part."""
        return any(isinstance(a, torch.Tensor) and a.layout != torch.strided for a in self.arguments)


class RecordProducts(TorchDispatchMode):
    """Inside `with`, every matrix product of this thread, forward and backward, goes to `products`."""

    def __init__(self) -> None:
        super().__init__()
        self.products: list[Product] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if func.overloadpacket.__name__ in _PRODUCTS:
            self.products.append(Product(func, args, named))
        return func(*args, **named)


def replay(products: list[Product]) -> None:
    """The recorded products again, in their order, and nothing else."""
    with torch.no_grad():
        for product in products:
            product.function(*product.arguments, **product.named)
