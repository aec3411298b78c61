"""What the metadata of a collection hold: for each field its kind, its range, and its most frequent values."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from manifind.collection.filters import kind as kind_of

MOST_VALUES = 50
"""Values of a field that are listed; of one with more, the most frequent."""

_TELLING = 0.5  # of its items may have a value of their own: beyond, a list of values says nothing
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")


class FieldSummary(NamedTuple):
    """A field of the metadata.

    kind: "number", "text", "truth", "date" (texts that begin like 2019-07-31) or "list"; the most frequent one where
    items differ, and then all else is of the items that have that kind. items: how many these are. low, high: of
    numbers and dates. different: how many values there are, of lists how many elements. values: the most frequent
    ones with how many items have them; none where nearly each item has its own.
    """

    name: str
    kind: str
    items: int
    low: Any
    high: Any
    different: int
    values: list[tuple[Any, int]]


def summarize_fields(items: Iterable[Mapping[str, Any]], hidden: Iterable[str] = ()) -> list[FieldSummary]:
    """All fields that some items have, in the order of their names. hidden: fields to leave out."""
    left_out, by_field = set(hidden), dict[str, dict[str, list[Any]]]()
    for fields in items:
        for name, value in fields.items():
            kind = "list" if isinstance(value, list) else kind_of(value)
            if name not in left_out and not kind.startswith("other"):
                by_field.setdefault(name, {}).setdefault(kind, []).append(value)
    return [_summary(name, by_field[name]) for name in sorted(by_field)]


def _summary(name: str, by_kind: Mapping[str, list[Any]]) -> FieldSummary:
    kind = max(by_kind, key=lambda one: len(by_kind[one]))
    values = by_kind[kind]
    if kind == "text" and all(_DATE.match(value) for value in values):
        kind = "date"
    elements = values
    if kind == "list":
        elements = [one for value in values for one in {repr(one): one for one in value if _is_plain(one)}.values()]
    counts = Counter((type(one) is bool, one) for one in elements)  # else True would be counted as 1
    has_range = kind in ("number", "date")
    low, high = (min(values), max(values)) if has_range else (None, None)
    is_telling = len(counts) <= MOST_VALUES or (kind != "number" and len(counts) <= _TELLING * len(values))
    frequent = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0][1])))[:MOST_VALUES] if is_telling else []
    listed = [(value, n) for (_, value), n in frequent]
    return FieldSummary(name, kind, len(values), low, high, len(counts), listed)


def _is_plain(value: Any) -> bool:
    return not kind_of(value).startswith("other")
