"""JSON as a collection writes it: every number is finite, and nothing is nested deep."""

from __future__ import annotations

import json
import math
from typing import Any

_LONGEST_WHOLE = 300  # characters; a longer whole number may be beyond a double
_DEEPEST = 100


def parse_json(text: str) -> Any:
    """The value of a JSON text; a ValueError for NaN, Infinity, numbers beyond a double, and deep nesting.

    Python's own parser accepts all of these, and whoever uses such a value later fails far from the cause.
    """
    if not isinstance(text, str):
        raise ValueError(f"{type(text).__name__} where a text was expected")
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if text.count("[") + text.count("{") > _DEEPEST:  # most texts are told apart without a walk
        _refuse_deep(value)
    return value


def _refuse_deep(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, list | dict)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {_DEEPEST} deep")


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _int(text: str) -> int:
    if len(text) > _LONGEST_WHOLE:
        _float(text)
    return int(text)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


_DECODER = json.JSONDecoder(parse_float=_float, parse_int=_int, parse_constant=_refuse_constant)
