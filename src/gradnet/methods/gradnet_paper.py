"""GRAD-Net with the settings of the paper as defaults, to stand beside the other methods under a name."""

from __future__ import annotations

import inspect
from typing import Any

from gradnet.config import PAPER
from gradnet.methods.gradnet import GradNet


class GradNetPaper(GradNet):
    """`GradNet(**PAPER)`; every setting can still be given."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**PAPER, **settings})

    # scikit-learn reads the names of the settings, and their defaults, off the signature.
    __init__.__signature__ = inspect.signature(GradNet.__init__).replace(  # type: ignore[attr-defined]
        parameters=[
            parameter.replace(default=PAPER.get(name, parameter.default))
            for name, parameter in inspect.signature(GradNet.__init__).parameters.items()
        ]
    )
