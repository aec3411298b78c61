"""What users say of their items: a few named values each, kept as JSON and never run as anything."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gradnet.collection.database import DAMAGED
from gradnet.collection.ids import is_text
from gradnet.errors import CollectionError, InputError

Fields: TypeAlias = dict[str, Any]

_LONGEST = 1 << 16  # characters of one item's metadata
_LARGEST = 1 << 1023  # beyond a double, Python itself may refuse to write or to read a whole number
_PLAIN = (str, int, float, bool, type(None))


def metadata_texts(metadata: Sequence[Mapping[str, Any] | None] | None, n_items: int) -> list[str | None]:
    """One JSON text for each item, None where nothing is said of it."""
    if metadata is None:
        return [None] * n_items
    if isinstance(metadata, Mapping | str) or not isinstance(metadata, Sequence):
        raise InputError(
            f"metadata is a {type(metadata).__name__}; expected a list with one dictionary for each item"
        )
    if len(metadata) != n_items:
        raise InputError(f"there are {len(metadata)} entries of metadata for {n_items} items")
    return [_text(fields) for fields in metadata]


def read_metadata(text: str | None, where: str) -> Fields:
    """What is said of an item, from its text; where: named when it is damaged."""
    if text is None:
        return {}
    try:
        fields = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise CollectionError(f"the metadata in {where} is damaged: {error}", DAMAGED) from error
    if not isinstance(fields, dict):
        raise CollectionError(
            f"the metadata in {where} is damaged: {text[:60]!r} is no table of names", DAMAGED
        )
    return fields


def _text(fields: Mapping[str, Any] | None) -> str | None:
    if fields is None or fields == {}:
        return None
    if not isinstance(fields, Mapping):
        raise InputError(f"metadata of an item is {fields!r}; expected a dictionary of names and values")
    text = json.dumps(
        {_name(name): _value(name, value) for name, value in fields.items()}, ensure_ascii=False
    )
    if len(text) > _LONGEST:
        raise InputError(f"the metadata of an item has {len(text)} characters; expected at most {_LONGEST}")
    return text


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name or not is_text(name):
        raise InputError(f"a field of metadata is called {name!r}; expected a non-empty text")
    return name


def _value(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain_value(name, one) for one in value]
    return _plain_value(name, value)


def _plain_value(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, _PLAIN):
        raise InputError(
            f"the metadata {name!r} is a {type(value).__name__}: {repr(value)[:60]}",
            "give text, a number, true, false, nothing, or a list of these",
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"the metadata {name!r} is {value}", "leave it out where it is not known")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise InputError(f"the metadata {name!r} is a number of {value.bit_length()} bits", "give it as text")
    if isinstance(value, str) and not is_text(value):
        raise InputError(f"the metadata {name!r} is {value[:60]!r}, which is not valid text")
    return value


def _refuse_constant(name: str) -> Any:
    """NaN and its like, which JSON does not know and nobody can have written."""
    raise ValueError(f"{name} is no number")
