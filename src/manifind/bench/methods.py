"""Which methods are run, with which settings: by name, from the user's own files, and the grids for tuning."""

import inspect
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from manifind.errors import InputError
from manifind.user_code import find_user_code, load_user_code

Factory: TypeAlias = Callable[..., Any]
"""A class of the contract, or whatever makes a method from settings."""

_SHARED = ("preprocess", "random_state")  # given to every method that has them


class Method(NamedTuple):
    """label: for people. address: "knn", or "/path/file.py:Class". identity: the same, and what the file holds."""

    label: str
    address: str
    identity: str

    @property
    def is_own(self) -> bool:
        """Whether it lies in a file of the user's own."""
        return ":" in self.address

    def shared_settings(self, preprocess: str, seed: int) -> dict[str, Any]:
        """What is asked of every method alike; of a known one only what it has."""
        given = dict(zip(_SHARED, (preprocess, seed), strict=True))
        if self.is_own:  # its file is opened by the process that runs it, not before
            return given
        return {name: value for name, value in given.items() if accepts(load_factory(self.address), name)}


def choose_methods(wanted: str, known: Sequence[str]) -> list[Method]:
    """Methods by names with commas between them, or "all": the known ones in their order, then the user's own."""
    parts = [part.strip() for part in wanted.split(",")]
    names, own = [part for part in parts if ":" not in part], [part for part in parts if ":" in part]
    if names == ["all"]:
        names = list(known)
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no method called {name!r}; expected 'all', or some of {', '.join(known)}",
                "put commas between them; a class of your own is FILE.py:CLASS",
            )
    methods = [Method(name, name, name) for name in known if name in names]
    for found in (find_user_code(part, "class") for part in dict.fromkeys(own)):
        methods.append(Method(found.label, f"{found.path}:{found.name}", f"{found.label} {found.digest}"))
    return methods


def load_factory(address: str) -> Factory:
    """What makes the method; a file of the user's own is run for it."""
    path, _, name = address.rpartition(":")
    if path:
        own: Factory = load_user_code(Path(path), name)
        return own
    from manifind.baselines import METHODS  # imports torch: not for a method that does without

    factory: Factory = METHODS[address]
    return factory


def accepts(factory: Factory, setting: str) -> bool:
    """Whether the method has a setting of that name."""
    parameters = inspect.signature(factory).parameters.values()
    return any(one.name == setting or one.kind is one.VAR_KEYWORD for one in parameters)


def make(factory: Factory, settings: dict[str, Any]) -> Any:
    """A method with these settings, without those of `_SHARED` that it does not have."""
    return factory(**{name: value for name, value in settings.items() if name not in _SHARED or accepts(factory, name)})


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
    **dict.fromkeys(("mr", "gdp", "rdp", "regional", "fsr", "efficient", "smooth"), _GRAPH | _ALPHA),
    "tpg": _GRAPH | {"steps": (10, 50, 200)},
    "gss": {"n_neighbors": (4, 6, 8, 11, 15), "graph": ("mutual", "union"), "quantile": (0.9, 0.95, 0.98)},
    "gt": _GRAPH | {"steps": (20, 50, 100, 200)},
    "cdm": {"n_neighbors": (4, 6, 8, 11, 15, 22, 30, 50), "alpha": (0.25, 0.5, 1.0)},
    "k-reciprocal": {
        "n_neighbors": (4, 6, 8, 11, 15, 22, 30),
        "n_averaged": (1, 3, 6, 10),
        "distance_weight": (0.0, 0.1, 0.3, 0.5),
    },
}
"""By the method's name; one that is not here is not tuned: k-NN has nothing to tune, and GRAD-Net is left as it is."""


def candidates(name: str, factory: Factory, budget: int | None = None, seed: int = 0) -> list[dict[str, Any]]:
    """Every combination of the settings that the method has; of more than `budget` a random part.

    A larger budget tries what a smaller one tried, and more, so that a comparison can be gone on with.
    """
    grid = {setting: values for setting, values in GRIDS.get(name, {}).items() if accepts(factory, setting)}
    every = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())] if grid else []
    if budget is None or budget >= len(every):
        return every
    kept = np.sort(np.random.default_rng(seed).permutation(len(every))[:budget])
    return [every[i] for i in kept]
