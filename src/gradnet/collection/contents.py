"""What a collection holds, as values in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradnet.arrays import Floats
from gradnet.graph.manifold import Manifold
from gradnet.search.learned import Learned


@dataclass(frozen=True)
class Contents:
    """A fitted model, ready to be written.

    lengths: (n, 1) what each descriptor was divided by. weights: the network's arrays by name.
    loss_curve: (steps, 3). settings, info: plain values.
    """

    learned: Learned
    lengths: Floats
    manifold: Manifold
    weights: dict[str, Floats]
    loss_curve: Floats
    settings: dict[str, Any]
    info: dict[str, Any]
