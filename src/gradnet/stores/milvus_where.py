"""Conditions on metadata as an expression of Milvus, over rows as `milvus_rows` keeps them.

Only literals of our own making stand in it: names in letters that need no escape, texts with every quote and backslash
escaped, numbers as Python writes doubles. Milvus knows a third truth for what is missing, which `not` would keep; so
every comparison also asks whether the value is there.
"""

from __future__ import annotations

import math
from typing import Any

from gradnet.collection.conditions import All, Compared, Condition, Contains, Not, kind
from gradnet.collection.ids import is_text
from gradnet.stores.milvus_rows import key_of
from gradnet.stores.store import untranslatable

_NEVER = 'exists metadata["never"]["%"]'
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_LARGEST = math.nextafter(math.inf, 0)


def expression_of(condition: Condition | None) -> str:
    """What Milvus takes for a filter; empty where there is no condition."""
    if condition is None:
        return ""
    if isinstance(condition, Compared):
        return _compared(condition)
    if isinstance(condition, Contains):
        return _contains(condition)
    if isinstance(condition, Not):
        return f"(not {expression_of(condition.part)})"
    word = " and " if isinstance(condition, All) else " or "
    return f"({word.join(expression_of(part) for part in condition.parts)})"


def among(ids: list[Any]) -> str:
    """The rows of some ids."""
    listed = ", ".join(literal(id_) if isinstance(id_, str) else str(id_) for id_ in ids)
    return f"id in [{listed}]"


def literal(text: str) -> str:
    """A text in an expression."""
    if not is_text(text):
        raise untranslatable(f"{text[:60]!r}, no valid text", "Milvus")
    return f'"{text.translate(_ESCAPES)}"'


def _compared(part: Compared) -> str:
    own = f'metadata["{kind(part.value)}"]["{key_of(part.name)}"]'
    if kind(part.value) == "number":
        told = _number_compared(own, part.sign, part.value)
    elif kind(part.value) == "truth":
        told = _truth_compared(own, part.sign, part.value)
    else:
        told = f"{own} {_sign(part.sign)} {literal(part.value)}"
    return f"(exists {own} and {told})"


def _number_compared(own: str, sign: str, value: float) -> str:
    """Against a double, which is all that Milvus knows; what lies between two doubles is left and right of them."""
    nearest = _double(value)
    if nearest == value and math.isfinite(nearest):
        return f"{own} {_sign(sign)} {nearest!r}"
    if sign in ("=", "!="):
        return _NEVER if sign == "=" else f"exists {own}"
    below = min(nearest if nearest < value else math.nextafter(nearest, -math.inf), _LARGEST)
    above = max(nearest if nearest > value else math.nextafter(nearest, math.inf), -_LARGEST)
    if sign in ("<", "<="):
        return f"{own} <= {below!r}" if below >= -_LARGEST else _NEVER
    return f"{own} >= {above!r}" if above <= _LARGEST else _NEVER


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _truth_compared(own: str, sign: str, value: bool) -> str:
    """By equality alone: truths have no order in Milvus, and false before true here."""
    satisfying = [one for one in (False, True) if Compared("", sign, value)({"": one})]
    if len(satisfying) == 2:
        return f"exists {own}"
    return f"{own} == {'true' if satisfying[0] else 'false'}" if satisfying else _NEVER


def _contains(part: Contains) -> str:
    own, key = kind(part.value), key_of(part.name)
    listed = f'metadata["{own}s"]["{key}"]'
    if own == "number":
        nearest = _double(part.value)
        equal = nearest == part.value and math.isfinite(nearest)
        return (
            f"(exists {listed} and json_contains_any({listed}, [{_whole(nearest)}]))"
            if equal
            else f"({_NEVER})"
        )
    if own == "truth":
        return f"(exists {listed} and json_contains({listed}, {'true' if part.value else 'false'}))"
    inside = f'metadata["text"]["{key}"]'
    if set(part.value) & set("%_\\"):
        raise untranslatable(f"contains {part.value[:60]!r}, with one of the letters % _ \\", "Milvus")
    pattern = literal(f"%{part.value}%")
    return (
        f"((exists {listed} and json_contains({listed}, {literal(part.value)}))"
        f" or (exists {inside} and {inside} like {pattern}))"
    )


def _whole(value: float) -> str:
    """In a list, Milvus tells 3 from 3.0: as JSON has it for a whole number."""
    return repr(int(value)) if value.is_integer() and abs(value) <= 1 << 53 else repr(value)


def _sign(sign: str) -> str:
    return "==" if sign == "=" else sign
