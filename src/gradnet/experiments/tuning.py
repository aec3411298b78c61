"""Which settings of each method are tried when a comparison tunes with the labels."""

from __future__ import annotations

from itertools import product
from typing import Any, TypeAlias

import numpy as np

from gradnet.experiments.compare_methods import Factory, accepts

Grid: TypeAlias = dict[str, tuple[Any, ...]]

_ALPHA: Grid = {"alpha": (0.8, 0.9, 0.95, 0.99)}
_GRAPH: Grid = {
    "n_neighbors": (4, 6, 8, 11, 15, 22, 30),
    "graph": ("mutual", "union"),
    "similarity": ("euclidean", "gaussian", "cubed"),
}
_FEW: Grid = {"n_neighbors": (1, 2, 3, 5, 8, 10, 15, 20, 30, 50)}
_POWERS: Grid = {"alpha": (0.0, 1.0, 2.0, 3.0, 4.0)}

GRIDS: dict[str, Grid] = {
    "codes": {"n_anchors": (50, 100, 200, 400), "n_codes": (3, 5, 10)},
    "aqe": _FEW,
    "alpha-qe": _FEW | _POWERS,
    "dba": _FEW | _POWERS,
    "sd": _GRAPH | {"steps": (5, 10, 20, 50)},
    "lcdp": _GRAPH | {"steps": (1, 2, 5, 10)},
    "tpg": _GRAPH | {"steps": (10, 50, 200)},
    "mr": _GRAPH | _ALPHA,
    "gdp": _GRAPH | _ALPHA,
    "rdp": _GRAPH | _ALPHA,
    "regional": _GRAPH | _ALPHA,
    "fsr": _GRAPH | _ALPHA,
    "efficient": _GRAPH | _ALPHA,
    "gss": {"n_neighbors": (4, 6, 8, 11, 15), "graph": ("mutual", "union"), "quantile": (0.9, 0.95, 0.98)},
    "gt": _GRAPH | {"steps": (20, 50, 100, 200)},
    "cdm": {"n_neighbors": (4, 6, 8, 11, 15, 22, 30, 50), "alpha": (0.25, 0.5, 1.0)},
    "k-reciprocal": {
        "n_neighbors": (4, 6, 8, 11, 15, 22, 30),
        "n_averaged": (1, 3, 6, 10),
        "distance_weight": (0.0, 0.1, 0.3, 0.5),
    },
    "smooth": _GRAPH | _ALPHA,
}
"""By the method's name; one that is not here is not tuned: k-NN has nothing to tune, and GRAD-Net is left as it is."""


def candidates(name: str, factory: Factory, budget: int | None = None, seed: int = 0) -> list[dict[str, Any]]:
    """Every combination of the settings that the method has; of more than `budget` a random part.

    A larger budget tries what a smaller one tried, and more, so that a comparison can be gone on with.
    """
    grid = {setting: values for setting, values in GRIDS.get(name, {}).items() if accepts(factory, setting)}
    if not grid:
        return []
    every = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if budget is None or budget >= len(every):
        return every
    kept = np.sort(np.random.default_rng(seed).permutation(len(every))[:budget])
    return [every[i] for i in kept]
