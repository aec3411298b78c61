"""Which methods are compared: those of `METHODS` by name, and classes in Python files of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from gradnet.errors import InputError
from gradnet.own_code import find_own, load_own

Factory: TypeAlias = Callable[..., Any]
"""A class of the contract, or whatever makes a method from settings."""

_SHARED = ("preprocess", "random_state")  # what every method is told, as far as it listens


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
    return methods + [_own_method(part) for part in dict.fromkeys(own)]


def load_factory(address: str) -> Factory:
    """What makes the method; a file of the user's own is run for it."""
    path, _, name = address.rpartition(":")
    if path:
        own: Factory = load_own(Path(path), name)
        return own
    from gradnet.methods import METHODS  # imports torch: not for a method that does without

    factory: Factory = METHODS[address]
    return factory


def accepts(factory: Factory, setting: str) -> bool:
    """Whether the method has a setting of that name."""
    parameters = inspect.signature(factory).parameters.values()
    return any(one.name == setting or one.kind is one.VAR_KEYWORD for one in parameters)


def make(factory: Factory, settings: dict[str, Any]) -> Any:
    """A method with these settings, without those that every method is told but this one does not have."""
    return factory(
        **{name: value for name, value in settings.items() if name not in _SHARED or accepts(factory, name)}
    )


def _own_method(part: str) -> Method:
    own = find_own(part, "class")
    return Method(own.label, f"{own.path}:{own.name}", f"{own.label} {own.digest}")
