"""The checkpoint of a fit: what makes two fits the same, so that the second goes on where the first stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradnet.arrays import Floats
from gradnet.checkpoint import Checkpoint, installed_versions
from gradnet.config import deciding
from gradnet.methods.plain import draw_seed
from gradnet.training.learning import pick_device


def open_checkpoint(
    folder: str | Path | None,
    X: Floats,
    queries: Floats | None,
    settings: Mapping[str, Any],
    start: Mapping[str, Floats] | None = None,
) -> Checkpoint:
    """The checkpoint of a fit, whose `seed` the fit must take; it keeps nothing where folder is None.

    settings: GradNet's. Where their random_state is None, any seed will do: the fit that is continued had its own.
    start: weights that the network begins with, if they are given.
    """
    seed = draw_seed(settings["random_state"])
    if folder is None:
        return Checkpoint(None, {}, seed)
    job = {
        "X": _digest(X),
        "queries": None if queries is None else _digest(queries),
        "start": None if start is None else {name: _digest(weight) for name, weight in start.items()},
        "settings": {name: value for name, value in deciding(settings).items() if name != "random_state"},
        "seed": None if settings["random_state"] is None else seed,
        "device": pick_device(settings["device"]).type,
        "versions": installed_versions(),
    }
    return Checkpoint(folder, job, seed)


def _digest(X: Floats) -> str:
    digest = hashlib.sha256(f"{X.shape} ".encode())
    digest.update(np.ascontiguousarray(X).data)
    return digest.hexdigest()
