"""The user's ids of items: unique strings, or unique integers; checked, or parsed as people type them."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from manifind.errors import InputError
from manifind.text import are, count

_MOST_CHARACTERS = 4096
_WHOLE = re.compile(r"-?0*[0-9]{1,19}")  # ASCII digits only, and not many more than 64 bits have room for


def parse_id(text: str, has_texts: bool, where: str) -> str | int:
    """The id that a typed text stands for: itself, or a whole number of 64 bits where the ids of `where` are such."""
    if has_texts:
        return text
    number = int(text) if _WHOLE.fullmatch(text) else None
    if number is None or not -(2**63) <= number < 2**63:
        hint = "give a number"
        raise InputError(f"there is no item {text[:200]!r} in {where}, whose ids are whole numbers of 64 bits", hint)
    return number


def as_list(ids: Any) -> list[Any]:
    """Some ids as a list; a single one is refused, since a text would be taken for its letters."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable) or getattr(ids, "ndim", 1) == 0:
        raise InputError(f"ids = {repr(ids)[:200]}; expected a list of ids", f"give a list: [{repr(ids)[:60]}]")
    return list(ids)


def check_ids(ids: Sequence[Any] | np.ndarray[Any, Any] | None, n_items: int) -> list[str] | list[int]:
    """The ids as a plain list, one per item; positions where none are given."""
    if ids is None:
        return list(range(n_items))
    without_order = isinstance(ids, (str, bytes, set, frozenset)) or not isinstance(ids, Iterable)
    if without_order or getattr(ids, "ndim", 1) == 0:
        raise InputError(f"ids = {ids!r}; expected one string or one integer per item")
    values = ids.tolist() if isinstance(ids, np.ndarray) else ids
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if len(plain) != n_items:
        hint = "give exactly one id per item"
        raise InputError(f"there {are(len(plain))} {count(len(plain), 'id')} for {count(n_items, 'item')}", hint)
    if not (all(type(v) is str for v in plain) or all(type(v) is int for v in plain)):
        odd = next(v for v in plain if type(v) not in (str, int) or type(v) is not type(plain[0]))
        raise InputError(f"ids must be all strings or all integers, and there is a {type(odd).__name__}: {odd!r}")
    seen: set[Any] = set()
    for value in plain:
        if value in seen:
            raise InputError(f"the id {value!r} stands for more than one item", "ids must be unique")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InputError(f"the id {value} does not fit into 64 bits", "use a string instead")
        if isinstance(value, str) and not 1 <= len(value) <= _MOST_CHARACTERS:
            raise InputError(f"an id has {len(value)} characters; expected 1 to {_MOST_CHARACTERS}")
        if isinstance(value, str) and not is_text(value):
            raise InputError(f"the id {value!r} is not valid text", "remove lone surrogates and null characters")
        seen.add(value)
    return plain


def is_text(value: str) -> bool:
    """Whether any database and any file can hold it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
