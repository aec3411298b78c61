"""The two losses, local smoothness and global order, and how they add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

LOCAL_LOSSES = ("bpr", "log")
COEFFICIENTS = ("detached", "attached", "printed")
_SMALLEST = 1e-6  # what a logarithm or a coefficient is kept above


@dataclass(frozen=True)
class LossSettings:
    """The readings of the losses; docs/readings.md gives the evidence for each."""

    local_loss: str
    local_weight: float
    temperature: float
    beta: float
    global_coefficient: str
    global_weight: float
    l2: float


class SextetSimilarities(NamedTuple):
    """Learned similarities within b sextets (i, j, k, l, u, v), (b,) each, in the order of PAIRS."""

    s_ij: Tensor
    s_iu: Tensor
    s_kl: Tensor
    s_kv: Tensor
    s_ki: Tensor
    s_lj: Tensor
    s_li: Tensor


PAIRS = ((0, 1), (0, 4), (2, 3), (2, 5), (2, 0), (3, 1), (3, 0))
"""Which two of the six nodes each similarity is of."""


@dataclass(frozen=True)
class Loss:
    """The total, which is minimised, and its two parts as batch means."""

    total: Tensor
    local: Tensor
    global_: Tensor


def local_loss(s_ij: Tensor, s_iu: Tensor, settings: LossSettings) -> Tensor:
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
    s_ki: Tensor, s_lj: Tensor, s_li: Tensor, a_ij: Tensor, a_kl: Tensor, settings: LossSettings
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


def total_loss(local: Tensor, global_: Tensor, squared_norm: Tensor, settings: LossSettings) -> Tensor:
    """L = L_local + alpha L_global + lambda |Theta|^2 (Eq. 21)."""
    return settings.local_weight * local + settings.global_weight * global_ + settings.l2 * squared_norm


def sextet_loss(
    s: SextetSimilarities, a_ij: Tensor, a_kl: Tensor, squared_norm: Tensor, settings: LossSettings
) -> Loss:
    """The mean over a batch of L_local(iju) + L_local(klv) + alpha L_global(ijkl) + lambda |Theta|^2 (Eq. 22).

    a_ij, a_kl: (b,) weights of the two edges.
    """
    local = local_loss(s.s_ij, s.s_iu, settings) + local_loss(s.s_kl, s.s_kv, settings)
    global_ = global_loss(s.s_ki, s.s_lj, s.s_li, a_ij, a_kl, settings).mean()
    return Loss(total_loss(local.mean(), global_, squared_norm, settings), local.mean(), global_)
