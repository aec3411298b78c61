"""What stands for the few names that pickles of plain values contain; every other name is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradnet.formats.pickled_arrays import (
    NdarrayClass,
    Spend,
    UnfinishedType,
    from_buffer,
    latin1,
    reconstruct,
    scalar,
)

_HASHED = (type(None), bool, int, float, str, bytes)
_DEEPEST_KEY = 100


class Maker:
    """A name in a pickle and what is called in its place, with the means to limit it and the arguments."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make


def stand_in(text: str) -> Maker | NdarrayClass:
    """What stands for a module and a name, written with a space between them."""
    if text == "numpy ndarray":
        return NdarrayClass()
    make = _MAKERS.get(text)
    if make is None:
        name = text.replace(" ", ".", 1)[:100]
        raise ValueError(f"it names {name!r}; expected plain values, which name no code")
    return Maker(make)


def check_key(spend: Spend, key: Any) -> None:
    """Refuse what cannot be hashed in good time: tuples in tuples to great depth, or the same ones again."""
    pending = [(key, 0)]
    while pending:
        value, depth = pending.pop()
        spend(1)
        if type(value) is tuple and depth < _DEEPEST_KEY:
            spend(len(value))
            pending.extend((entry, depth + 1) for entry in value)
        elif type(value) not in _HASHED and not isinstance(value, np.generic):
            raise ValueError(f"it uses a {type(value).__name__} as a key; expected numbers, texts or tuples")


def _set(spend: Spend, entries: Any) -> set[Any]:
    if type(entries) is not list:
        raise ValueError(f"it makes a set of a {type(entries).__name__}; expected a list")
    for entry in entries:
        check_key(spend, entry)
    return set(entries)


def _no_bytes(_spend: Spend) -> bytes:
    return b""


_MAKERS: dict[str, Callable[..., Any]] = {
    "numpy dtype": UnfinishedType,
    "numpy.core.multiarray _reconstruct": reconstruct,
    "numpy._core.multiarray _reconstruct": reconstruct,
    "numpy.core.multiarray scalar": scalar,
    "numpy._core.multiarray scalar": scalar,
    "numpy.core.numeric _frombuffer": from_buffer,
    "numpy._core.numeric _frombuffer": from_buffer,
    "_codecs encode": latin1,
    "builtins bytes": _no_bytes,
    "__builtin__ bytes": _no_bytes,
    "builtins set": _set,
    "__builtin__ set": _set,
}
