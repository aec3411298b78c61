"""Conditions on metadata, such as `year >= 1990 and place in ("Rome", "Paris")`: read here into a tree of their parts.

    condition  := part { "or" part }            part := plain { "and" plain }
    plain      := "not" plain | "(" condition ")" | NAME comparison VALUE | NAME "in" "(" VALUE { "," VALUE } ")"
    comparison := "=" | "!=" | "<" | "<=" | ">" | ">=" | "contains"
    VALUE      := a number, a text in single or double quotes, true, false

An item that says nothing under the name satisfies no comparison, not even "!=". Texts are compared with texts and
numbers with numbers; "contains" looks for a text inside a text, or for a value in a list.
"""

from __future__ import annotations

import re
from typing import Any

from gradnet.collection.conditions import SIGNS, All, Compared, Condition, Contains, Not, Some
from gradnet.errors import InputError

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?(?![\w.]))
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<sign><=|>=|!=|==|=|<|>|\(|\)|,)
      | (?P<word>[^\W\d][\w.:-]*)
    )""",
    re.VERBOSE,
)
_EXAMPLE = "write it like: year >= 1990 and place = 'Rome'"
_DEEPEST, _LONGEST, _LONGEST_WHOLE = 50, 10_000, 300


def parse_where(text: str) -> Condition:
    """The condition that a text stands for; an InputError that shows the place where it cannot be read."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"where = {text!r}; expected a condition on metadata", _EXAMPLE)
    if len(text) > _LONGEST:
        raise InputError(f"where has {len(text)} characters; expected at most {_LONGEST}")
    parser = _Parser(text)
    condition = parser.condition(0)
    parser.expect_end()
    return condition


class _Parser:
    """Reads a condition from left to right. Tokens are (kind, text, place)."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._next = text, _tokens(text), 0

    def condition(self, depth: int) -> Condition:
        parts = [self._part(depth)]
        while self._take("or"):
            parts.append(self._part(depth))
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def _part(self, depth: int) -> Condition:
        plains = [self._plain(depth)]
        while self._take("and"):
            plains.append(self._plain(depth))
        return plains[0] if len(plains) == 1 else All(tuple(plains))

    def _plain(self, depth: int) -> Condition:
        if depth > _DEEPEST:
            raise InputError(f"where is nested more than {_DEEPEST} deep")
        if self._take("not"):
            return Not(self._plain(depth + 1))
        if self._take("("):
            inner = self.condition(depth + 1)
            self._expect(")")
            return inner
        return self._comparison()

    def _comparison(self) -> Condition:
        name = self._name()
        if self._take("in"):
            self._expect("(")
            values = [self._value()]
            while self._take(","):
                values.append(self._value())
            self._expect(")")
            return Some(tuple(Compared(name, "=", value) for value in values))
        if self._take("contains"):
            return Contains(name, self._value())
        return Compared(name, self._sign(), self._value())

    def _name(self) -> str:
        kind, text, _ = self._peek()
        if kind == "word" and text not in ("and", "or", "not", "in", "contains", "true", "false"):
            self._next += 1
            return text
        if kind == "text" and self._next + 1 < len(self._tokens):  # a name with spaces, in quotes
            self._next += 1
            return _unquoted(text)
        raise self._wrong("the name of a field")

    def _sign(self) -> str:
        for sign in ("==", *SIGNS):
            if self._take(sign):
                return "=" if sign == "==" else sign
        raise self._wrong("=, !=, <, <=, >, >=, in or contains")

    def _value(self) -> Any:
        kind, text, _ = self._peek()
        if kind == "number" or kind == "text" or text in ("true", "false"):
            self._next += 1
            if kind == "number":
                return _number(text)
            return _unquoted(text) if kind == "text" else text == "true"
        raise self._wrong("a number, a text in quotes, true or false")

    def _peek(self) -> tuple[str, str, int]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("end", "", len(self._text))

    def _take(self, text: str) -> bool:
        kind, found, _ = self._peek()
        if found != text or kind in ("text", "number"):
            return False
        self._next += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._wrong(repr(text))

    def expect_end(self) -> None:
        if self._next < len(self._tokens):
            raise self._wrong("'and', 'or' or the end")

    def _wrong(self, expected: str) -> InputError:
        place = self._peek()[2]
        rest = self._text[place : place + 20]
        found = f"there is {rest!r}" if rest else "it ends"
        return InputError(
            f"where = {self._text[:200]!r}: after {place} characters {found}; expected {expected}", _EXAMPLE
        )


def _tokens(text: str) -> list[tuple[str, str, int]]:
    tokens, place, end = [], 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise InputError(
                f"where = {text[:200]!r}: {text[place : place + 20]!r} cannot be read", f"{_EXAMPLE}"
            )
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind], match.start(kind)))
        place = match.end()
    return tokens


def _number(text: str) -> float | int:
    # A whole number of more digits than a double has room for is not read as one: Python refuses very long ones.
    return float(text) if re.search(r"[.eE]", text) or len(text) > _LONGEST_WHOLE else int(text)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
