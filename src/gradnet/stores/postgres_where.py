"""Conditions on metadata as SQL over a jsonb column: names and values are parameters, never part of the statement."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, LiteralString, NamedTuple

from psycopg import sql

from gradnet.collection.conditions import All, Compared, Condition, Contains, Not, Some, kind
from gradnet.collection.ids import is_text
from gradnet.stores.store import untranslatable

EXACT_DOUBLES = 1 << 53
"""Below it every whole number is a double; from it on every double is a whole number."""

# By the kind of the value: what jsonb calls it, and the value taken out of it. CASE, since SQL may evaluate the sides
# of AND in any order, and a cast of another kind would be an error. Texts by code point, whatever the server's locale.
_VALUES: dict[str, tuple[LiteralString, LiteralString]] = {
    "number": ("'number'", "(metadata ->> %s)::numeric"),
    "text": ("'string'", '(metadata ->> %s) COLLATE "C"'),
    "truth": ("'boolean'", "(metadata ->> %s)::boolean"),
}
_ELEMENTS: dict[str, LiteralString] = {
    "number": "(e #>> '{}')::numeric",
    "text": "(e #>> '{}')",
    "truth": "(e #>> '{}')::boolean",
}
_PLACES: dict[str, LiteralString] = {"number": "%s::numeric", "text": "%s::text", "truth": "%s::boolean"}
_SIGNS: dict[str, LiteralString] = {"=": "=", "!=": "<>", "<=": "<=", ">=": ">=", "<": "<", ">": ">"}


class Clause(NamedTuple):
    """A part of a statement that is true or false and never null, and its parameters."""

    text: sql.Composable
    parameters: list[Any]


def clause_of(condition: Condition | None) -> Clause:
    """What stands behind WHERE."""
    if condition is None:
        return Clause(sql.SQL("TRUE"), [])
    if isinstance(condition, Compared):
        return _compared(condition)
    if isinstance(condition, Contains):
        return _contains(condition)
    if isinstance(condition, Not):
        inner = clause_of(condition.part)
        return Clause(sql.SQL("(NOT {})").format(inner.text), inner.parameters)
    return _joined(condition)


def _joined(condition: All | Some) -> Clause:
    parts = [clause_of(part) for part in condition.parts]
    word: LiteralString = " AND " if isinstance(condition, All) else " OR "
    text = sql.SQL("({})").format(sql.SQL(word).join(part.text for part in parts))
    return Clause(text, [value for part in parts for value in part.parameters])


def _compared(part: Compared) -> Clause:
    own = kind(part.value)
    typed, taken = _VALUES[own]
    text = sql.SQL("(CASE WHEN jsonb_typeof(metadata -> %s) = {} THEN {} {} {} ELSE FALSE END)").format(
        sql.SQL(typed), sql.SQL(taken), sql.SQL(_SIGNS[part.sign]), sql.SQL(_PLACES[own])
    )
    name = _text(part.name)
    return Clause(text, [name, name, _parameter(part.value)])


def _contains(part: Contains) -> Clause:
    """Of a list, whether an element is of the same kind and equal; of a text, whether another one is inside."""
    own, name, value = kind(part.value), _text(part.name), _parameter(part.value)
    listed = sql.SQL(
        "WHEN jsonb_typeof(metadata -> %s) = 'array' THEN EXISTS (SELECT 1 FROM jsonb_array_elements(metadata -> %s) e"
        " WHERE CASE WHEN jsonb_typeof(e) = {} THEN {} = {} ELSE FALSE END)"
    ).format(sql.SQL(_VALUES[own][0]), sql.SQL(_ELEMENTS[own]), sql.SQL(_PLACES[own]))
    if own != "text":
        return Clause(sql.SQL("(CASE {} ELSE FALSE END)").format(listed), [name, name, value])
    inside = sql.SQL(
        "WHEN jsonb_typeof(metadata -> %s) = 'string'"
        ' THEN strpos((metadata ->> %s) COLLATE "C", %s::text) > 0'
    )
    text = sql.SQL("(CASE {} {} ELSE FALSE END)").format(listed, inside)
    return Clause(text, [name, name, value, name, name, value])


def _parameter(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    return value if isinstance(value, bool) else exact_decimal(value)


def exact_decimal(value: float) -> Decimal:
    """A number as jsonb keeps it, so that two are equal or in order exactly when Python says so.

    A double of 2^53 or more is the whole number that it is, and not its shortest decimals.
    """
    if isinstance(value, float) and abs(value) < EXACT_DOUBLES:
        return Decimal(repr(value))
    return Decimal(value)


def _text(value: str) -> str:
    if not is_text(value):
        raise untranslatable(f"{value[:60]!r}, no valid text", "PostgreSQL")
    return value
