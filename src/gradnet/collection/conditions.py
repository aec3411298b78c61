"""The parts of a condition on metadata, each of which says whether it holds of an item; databases translate them.

An item that says nothing under the name satisfies no comparison, not even "!=". Texts are compared with texts and
numbers with numbers; "contains" looks for a text inside a text, or for a value in a list.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

_MISSING = object()

SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Compared:
    """A named value against another; sign: one of `SIGNS`."""

    name: str
    sign: str
    value: Any

    def __call__(self, fields: Mapping[str, Any]) -> bool:
        own = fields.get(self.name, _MISSING)
        return kind(own) == kind(self.value) and bool(SIGNS[self.sign](own, self.value))


@dataclass(frozen=True)
class Contains:
    """A text inside a named text, or a value in a named list."""

    name: str
    value: Any

    def __call__(self, fields: Mapping[str, Any]) -> bool:
        own, value = fields.get(self.name), self.value
        if isinstance(own, str):
            return isinstance(value, str) and value in own
        return isinstance(own, list) and any(kind(one) == kind(value) and one == value for one in own)


@dataclass(frozen=True)
class Not:
    """The part does not hold."""

    part: Condition

    def __call__(self, fields: Mapping[str, Any]) -> bool:
        return not self.part(fields)


@dataclass(frozen=True)
class All:
    """Every part holds."""

    parts: tuple[Condition, ...]

    def __call__(self, fields: Mapping[str, Any]) -> bool:
        return all(part(fields) for part in self.parts)


@dataclass(frozen=True)
class Some:
    """At least one part holds."""

    parts: tuple[Condition, ...]

    def __call__(self, fields: Mapping[str, Any]) -> bool:
        return any(part(fields) for part in self.parts)


Condition: TypeAlias = Compared | Contains | Not | All | Some


def kind(value: Any) -> str:
    """What a value can be compared with: "text", "number" or "truth", and nothing for all others."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else f"other {type(value).__name__}"
