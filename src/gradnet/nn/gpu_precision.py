"""How many digits the products of a GPU keep."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def products_in(kind: str) -> Iterator[None]:
    """Inside, products of float32 matrices on a GPU are "tf32", eleven digits of each factor, or "float32".

    Training does not notice the difference; for neighbours the error of a proposal has to be bounded.
    """
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
