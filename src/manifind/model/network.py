"""The whole network: constant inputs, stacked layers, and the features they leave."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from manifind.arrays import row_blocks
from manifind.model.layers import DiffusionLayer, GCNLayer, Propagation, activate, applied, row_slices
from manifind.settings import GradNetSettings

LAYER_KINDS = {"diffusion": DiffusionLayer, "gcn": GCNLayer}
_COLUMNS_PER_BLOCK = 256


@dataclass(frozen=True)
class Constants:
    """What training never changes. inputs: H0, (N, d0). messages: the first layer's messages, (N, 2 d0).

    messages may be bfloat16: its product is most of the work where descriptors are wide.
    """

    inputs: Tensor
    messages: Tensor

    def of(self, nodes: Tensor, device: torch.device) -> Self:
        """Those of some nodes, on a device."""
        return replace(self, inputs=self.inputs[nodes].to(device), messages=self.messages[nodes].to(device))


@dataclass(frozen=True)
class Batch:
    """The nodes that one pass needs, the wanted ones first, and S between them.

    nodes: (I,) for the first layer's output; None for the whole graph in its own order.
    n_wanted: how many of them the caller wants features of.
    hops: for each layer after the first, S to the middle and S to the layer's output nodes.
    """

    nodes: Tensor | None
    n_wanted: int
    hops: list[tuple[Propagation, Propagation]]


class GraphNetwork(nn.Module):
    """Layers of graph diffusion, each followed by unit rows and dropout."""

    def __init__(self, d_in: int, settings: GradNetSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.precision = settings.precision
        self.slope, self.dropout, self.output = settings.negative_slope, settings.dropout, settings.output
        self_weight = 1.0 if settings.self_loops == "identity" else 0.0
        widths = (d_in, *settings.layers)
        kind = LAYER_KINDS[settings.layer]
        self.layers = nn.ModuleList(kind(a, b, self_weight, generator) for a, b in pairwise(widths))

    def prepare(self, S: Propagation, H0: Tensor) -> Constants:
        """Compute once the first layer's messages: there is no dropout on the inputs, so it never changes."""
        N, d = H0.shape
        dtype = torch.bfloat16 if takes_bfloat16(self.precision, H0.device) else H0.dtype
        messages = H0.new_empty(N, len(self._first.weights()), dtype=dtype)
        for columns in row_blocks(d, _COLUMNS_PER_BLOCK):  # columns do not mix: nothing wide is needed twice
            for order, message in enumerate(self._first.messages(S, H0[:, columns].contiguous())):
                messages[:, order * d : (order + 1) * d][:, columns] = message
        return Constants(H0, messages)

    def forward(self, constants: Constants, batch: Batch, generator: torch.Generator | None) -> list[Tensor]:
        """H0, H1, ..., HL of the wanted nodes, each (n_wanted, d_l).

        generator: draws the dropout; None leaves it out.
        """
        wanted = batch.n_wanted
        inputs = constants.inputs[:wanted] if batch.nodes is None else constants.inputs[batch.nodes[:wanted]]
        Y = applied(_ConstantLinear, constants.messages, batch.nodes, self._first.weights())
        H, features = activate(Y, self.slope, self.dropout, generator, wanted)
        outputs = [inputs, features]
        for layer, (near, far) in zip(list(self.layers)[1:], batch.hops, strict=True):
            H, features = activate(layer(near, far, H), self.slope, self.dropout, generator, wanted)
            outputs.append(features)
        return outputs

    @property
    def _first(self) -> DiffusionLayer | GCNLayer:
        return cast("DiffusionLayer | GCNLayer", self.layers[0])  # a ModuleList forgets what it holds

    def squared_norm(self) -> Tensor:
        """|Theta|^2 over all trainable parameters."""
        return torch.stack([parameter.square().sum() for parameter in self.parameters()]).sum()


def joined_layers(outputs: list[Tensor], output: str) -> list[Tensor]:
    """The layers that side by side are the learned features, H = H0 || H1 || ... || HL, or HL alone (Eq. 17).

    outputs: (V, d_l) each. Returns those of them that H is made of; who needs one matrix concatenates.
    """
    return outputs if output == "concat" else outputs[-1:]


def takes_bfloat16(precision: str, device: torch.device) -> bool:
    """Whether constants are rounded to bfloat16.

    "by device": on a GPU, where products are rounded in any case. "auto": also where a CPU has instructions for it.
    """
    if precision in ("auto", "by device") and device.type == "cuda":
        return True
    if precision == "auto":
        return bool(torch.cpu._is_avx512_bf16_supported())
    return precision == "bfloat16"


def precision_on(precision: str, device: str) -> str:
    """The precision of the first layer's product on a device, by its name."""
    return "bfloat16" if takes_bfloat16(precision, torch.device(device)) else "float32"


def _product(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """a @ b as this type; a GPU adds up in it and writes it, without rounding in between."""
    if a.is_cuda and a.dtype != dtype:
        return torch.mm(a, b, out_dtype=dtype)
    return (a @ b).to(dtype)


class _ConstantLinear(torch.autograd.Function):
    """messages[nodes] @ W for a constant `messages`, a block of rows at a time in both directions."""

    @staticmethod
    def forward(ctx: Any, messages: Tensor, nodes: Tensor | None, W: Tensor) -> Tensor:
        ctx.messages, ctx.nodes = messages, nodes
        weights = W.to(messages.dtype)
        if nodes is None:
            return _product(messages, weights, W.dtype)
        out = messages.new_empty(len(nodes), W.shape[1])
        for rows in row_slices(len(nodes), W.device):
            torch.mm(messages[nodes[rows]], weights, out=out[rows])
        return out.to(W.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        narrow = gradient.to(ctx.messages.dtype)
        if ctx.nodes is None:
            return None, None, _product(ctx.messages.T, narrow, gradient.dtype)
        dW = gradient.new_zeros(ctx.messages.shape[1], gradient.shape[1])
        for rows in row_slices(len(ctx.nodes), gradient.device):
            dW += ctx.messages[ctx.nodes[rows]].T @ narrow[rows]
        return None, None, dW
