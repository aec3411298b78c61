"""Filters on metadata, such as `year >= 1990 and place in ("Rome", "Paris")`: parsed into a tree.

    condition  := part { "or" part }            part := plain { "and" plain }
    plain      := "not" plain | "(" condition ")" | NAME comparison VALUE | NAME "in" "(" VALUE { "," VALUE } ")"
    comparison := "=" | "!=" | "<" | "<=" | ">" | ">=" | "contains"
    VALUE      := a number, a text in single or double quotes, true, false

An item without the field satisfies no comparison, not even "!=". Texts are compared with texts and
numbers with numbers; "contains" looks for a text inside a text, or for a value in a list. A field that no item has, or
has with values of another kind, is a mistake rather than an empty answer; labels may be asked for before there are any.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from manifind.collection.metadata import LABEL_FIELDS
from manifind.errors import InputError
from manifind.text import closest, count, did_you_mean, listed

T = TypeVar("T")
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
class FieldComparison:
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


Condition: TypeAlias = FieldComparison | Contains | Not | All | Some


def kind(value: Any) -> str:
    """What a value can be compared with: "text", "number" or "truth", and nothing for all others."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else f"other {type(value).__name__}"


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
_RESERVED = ("and", "or", "not", "in", "contains", "true", "false")

_KINDS: dict[type, str] = {str: "text", int: "number", float: "number", bool: "truth", list: "list"}
ELEMENT_KINDS = frozenset({"texts", "numbers", "truths"})
_LABEL_KINDS = frozenset({"list", "texts"})
"""Of the elements of lists."""

_PLURALS = {"text": "texts", "number": "numbers", "truth": "true or false", "list": "lists"}
_ADVICE = {
    "text": "put the text in quotes, as in {name} = 'Rome'",
    "number": "compare it with a number without quotes, as in {name} >= 1990",
    "truth": "compare it with true or false, as in {name} = true",
    "list": "look into the lists, as in {name} contains 'red'",
}
_ELEMENT_ADVICE = {
    "texts": "a text in quotes, as in {name} contains 'red'",
    "numbers": "a number without quotes, as in {name} contains 3",
    "truths": "true or false, as in {name} contains true",
}


def parse_where(text: str) -> Condition:
    """The condition that a text stands for; an InputError that shows the place where it cannot be read."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"where = {text!r}; expected a condition on metadata", _EXAMPLE)
    if len(text) > _LONGEST:
        raise InputError(f"where has {len(text)} characters; expected at most {_LONGEST}")
    return _Parser(text).whole()


def field_kinds(items: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """The fields that items have, each with the kinds of its values, and of the elements of its lists in the plural."""
    seen: set[tuple[str, type]] = set()
    for fields in items:
        seen.update(zip(fields, map(type, fields.values()), strict=True))
    kinds: dict[str, set[str]] = {name: set() for name, _ in seen}
    for name, type_ in seen & {(name, type_) for name in kinds for type_ in _KINDS}:
        kinds[name].add(_KINDS[type_])
        if type_ is list:
            elements = {type(one) for fields in items if isinstance(fields.get(name), list) for one in fields[name]}
            kinds[name] |= {f"{_KINDS[one]}s" for one in elements & _KINDS.keys() - {list}}
    return kinds


def check_fields(condition: Condition, known: Mapping[str, Collection[str]]) -> None:
    """Refuse a condition on a field that is not known from `field_kinds`, or on one that has values of other kinds."""
    for part in _comparisons(condition):
        kinds = known.get(part.name, _LABEL_KINDS if part.name in LABEL_FIELDS else ())
        if not kinds and part.name not in known:
            raise _unknown_field(part.name, known)
        if not _fitting(part, set(kinds)):
            raise _other_kind(part, kinds)


def _comparisons(condition: Condition) -> Iterator[FieldComparison | Contains]:
    if isinstance(condition, FieldComparison | Contains):
        yield condition
    else:
        for part in (condition.part,) if isinstance(condition, Not) else condition.parts:
            yield from _comparisons(part)


def _fitting(part: FieldComparison | Contains, kinds: set[str]) -> bool:
    """Whether a comparison can hold of values of some kinds; of lists whose elements are not known, it can."""
    own = kind(part.value)
    if isinstance(part, FieldComparison):
        return own in kinds
    elements = kinds & ELEMENT_KINDS
    return f"{own}s" in elements or ("list" in kinds and not elements) or (own == "text" and own in kinds)


def _unknown_field(name: str, known: Mapping[str, Collection[str]]) -> InputError:
    if not known:
        hint = "leave the filter out, or give the items metadata first"
        return InputError(f"where asks for the field {name[:200]!r}, and no item has any metadata", hint)
    names, meant = sorted(known), closest(name, sorted(known), 1)
    hint = did_you_mean(meant) if meant else "filter by one of these"
    return InputError(f"no item has a metadata field {name[:200]!r}; there are {listed(map(_typed, names))}", hint)


def _other_kind(part: FieldComparison | Contains, kinds: Collection[str]) -> InputError:
    name, there = _typed(part.name), sorted(set(kinds) - ELEMENT_KINDS)
    if not there:
        problem = f"the metadata field {name} has no value in any item, so nothing can be compared with it"
        return InputError(problem, "leave that part of the filter out")
    elements = sorted(ELEMENT_KINDS & set(kinds))
    plurals, advice = dict(_PLURALS), _ADVICE[there[0]]
    if isinstance(part, Contains) and elements:
        plurals["list"] = f"lists of {' and '.join(_PLURALS[one[:-1]] for one in elements)}"
        advice = f"look for {_ELEMENT_ADVICE[elements[0]]}"
    does = "looks in it for" if isinstance(part, Contains) else "compares it with"
    value = str(part.value).lower() if kind(part.value) == "truth" else f"the {kind(part.value)} {part.value!r}"
    return InputError(
        f"the metadata field {name} holds {' and '.join(plurals[one] for one in there)}, "
        f"and the filter {does} {value[:200]}",
        advice.format(name=name),
    )


def _typed(name: str) -> str:
    """A name as it stands in a condition: in quotes where it would be read as something else."""
    token = _TOKEN.fullmatch(name)
    return name if token and token.lastgroup == "word" and name not in _RESERVED else repr(name)


class _Parser:
    """Reads a condition from left to right. Tokens are (kind, value, place), the last of the kind "end"."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._next = text, _tokens(text), 0

    def whole(self) -> Condition:
        condition = self._condition(0)
        if self._peek()[0] != "end":
            raise self._wrong("'and', 'or' or the end")
        return condition

    def _condition(self, depth: int) -> Condition:
        return self._joined("or", Some, lambda: self._joined("and", All, lambda: self._plain(depth)))

    def _joined(self, separator: str, kind: type[All | Some], read: Callable[[], Condition]) -> Condition:
        parts = self._separated(separator, read)
        return parts[0] if len(parts) == 1 else kind(tuple(parts))

    def _separated(self, separator: str, read: Callable[[], T]) -> list[T]:
        found = [read()]
        while self._take(separator):
            found.append(read())
        return found

    def _plain(self, depth: int) -> Condition:
        if depth > _DEEPEST:
            raise InputError(f"where is nested more than {_DEEPEST} deep")
        if self._take("not"):
            return Not(self._plain(depth + 1))
        if self._take("("):
            inner = self._condition(depth + 1)
            self._expect(")")
            return inner
        return self._comparison()

    def _comparison(self) -> Condition:
        name = self._name()
        if self._take("in"):
            self._expect("(")
            values = self._separated(",", self._value)
            self._expect(")")
            return Some(tuple(FieldComparison(name, "=", value) for value in values))
        if self._take("contains"):
            return Contains(name, self._value())
        return FieldComparison(name, self._sign(), self._value())

    def _name(self) -> Any:
        kind, value, _ = self._peek()
        is_quoted = kind == "text" and self._tokens[self._next + 1][0] != "end"  # a name with spaces
        if not is_quoted and (kind != "word" or value in _RESERVED):
            raise self._wrong("the name of a field")
        self._next += 1
        return value

    def _sign(self) -> str:
        for sign in ("==", *SIGNS):
            if self._take(sign):
                return "=" if sign == "==" else sign
        raise self._wrong("=, !=, <, <=, >, >=, in or contains")

    def _value(self) -> Any:
        kind, value, _ = self._peek()
        if kind not in ("number", "text") and value not in ("true", "false"):
            raise self._wrong("a number, a text in quotes, true or false")
        self._next += 1
        return value == "true" if kind == "word" else value

    def _peek(self) -> tuple[str, Any, int]:
        return self._tokens[self._next]

    def _take(self, text: str) -> bool:
        kind, value, _ = self._peek()
        is_it = kind in ("sign", "word") and value == text
        self._next += is_it
        return is_it

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._wrong(repr(text))

    def _wrong(self, expected: str) -> InputError:
        place = self._peek()[2]
        rest = self._text[place : place + 20]
        found = f"there is {rest!r}" if rest else "it ends"
        problem = f"where = {self._text[:200]!r}: after {count(place, 'character')} {found}; expected {expected}"
        return InputError(problem, _EXAMPLE)


def _tokens(text: str) -> list[tuple[str, Any, int]]:
    tokens, place, end = [], 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise InputError(f"where = {text[:200]!r}: {text[place : place + 20]!r} cannot be read", _EXAMPLE)
        kind = str(match.lastgroup)
        read = {"number": _number, "text": _unquoted}.get(kind, str)
        tokens.append((kind, read(match[kind]), match.start(kind)))
        place = match.end()
    return [*tokens, ("end", "", len(text))]


def _number(text: str) -> float | int:
    # A whole number of more digits than a double has room for is not read as one: Python refuses very long ones.
    return float(text) if re.search(r"[.eE]", text) or len(text) > _LONGEST_WHOLE else int(text)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
