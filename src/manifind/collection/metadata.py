"""Metadata of items: a few named values each, stored as JSON and never run as anything."""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from manifind.collection.format import damaged, parse_json
from manifind.collection.ids import is_text
from manifind.errors import InputError
from manifind.text import are, count

Fields: TypeAlias = dict[str, Any]

OWN_FIELDS = ("path", "sha256", "bytes", "modified", "width", "height", "format", "fingerprint", "exif")
"""Fields of a picture that `index` keeps, to know its file again; nobody else changes them.

exif: the names of further fields that were read from the file, and that nobody has set since.
"""

LABEL_FIELDS = ("tags", "albums")
"""Fields that may be filtered by before any item has them, as lists of texts: labels come and go."""

_LONGEST = 1 << 16  # characters of one item's metadata
_LONGEST_LABEL, _MOST_LABELS = 200, 100
_LARGEST = 1 << 1023  # beyond a double, Python itself may refuse to write or to read a whole number
_PLAIN = (str, int, float, bool, type(None))


def checked_fields(metadata: Sequence[Mapping[str, Any] | None] | None, n_items: int) -> list[Fields | None]:
    """The fields of each item with plain values; None where it has none."""
    if metadata is None:
        return [None] * n_items
    if isinstance(metadata, Mapping | str) or not isinstance(metadata, Sequence):
        raise InputError(f"metadata is a {type(metadata).__name__}; expected a list with one dictionary for each item")
    if len(metadata) != n_items:
        entries = f"{are(len(metadata))} {count(len(metadata), 'entry')} of metadata"
        raise InputError(f"there {entries} for {count(n_items, 'item')}")
    return [_checked(fields) for fields in metadata]


def metadata_texts(metadata: Sequence[Mapping[str, Any] | None] | None, n_items: int) -> list[str | None]:
    """One JSON text for each item, None where it has no metadata."""
    return [_text(fields) for fields in checked_fields(metadata, n_items)]


def merged_metadata(
    text: str | None, changes: Mapping[str, Any] | None, protected: Collection[str], item: str
) -> str | None:
    """The text of an item's metadata with some fields set, or taken away where their new value is None.

    protected: fields that must stay as they are. item: named in errors.
    """
    if not changes:
        return text
    fields = read_metadata(text, item)
    for name in protected:
        if name in changes and changes[name] != fields.get(name):
            raise InputError(
                f"the field {name!r} of {item} is kept by manifind, and cannot be set to {repr(changes[name])[:60]}",
                "give your own field another name",
            )
    if "sha256" in protected and isinstance(fields.get("exif"), list):
        fields["exif"] = [name for name in fields["exif"] if name not in changes]
    fields |= changes
    return _text({name: value for name, value in fields.items() if name not in changes or value is not None})


def with_labels(field: str, add: Sequence[str], remove: Sequence[str]) -> Callable[[Fields], Fields]:
    """What adds labels to a field that holds a list of texts, and takes others away; an empty list goes.

    Returns a function of an item's fields that returns the fields to set.
    """
    for name, labels in (("add", add), ("remove", remove)):
        if isinstance(labels, str) or not all(_is_label(one) for one in labels):
            problem = f"{name} = {repr(labels)[:200]}; expected a list of texts of 1 to {_LONGEST_LABEL} characters"
            raise InputError(problem, "leave out what is empty, and spaces around a label")
    if not add and not remove:
        raise InputError("no label is given to add or to remove", "give add, remove, or both")
    if both := set(add) & set(remove):
        raise InputError(f"the label {min(both)!r} is to be added and removed", "leave it out of one of them")

    def change(fields: Fields) -> Fields:
        before = fields.get(field, [])
        if not isinstance(before, list) or not all(isinstance(one, str) for one in before):
            problem = f"the field {field!r} of an item is {repr(before)[:60]}, and labels are a list of texts"
            raise InputError(problem, "choose another field, or set this one to a list first")
        kept = [one for one in before if one not in remove]
        after = [*kept, *(one for one in dict.fromkeys(add) if one not in kept)]
        if len(after) > _MOST_LABELS:
            raise InputError(f"an item would have {len(after)} {field}; at most {_MOST_LABELS} are kept")
        return {field: after or None}

    return change


def _is_label(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_LABEL and value == value.strip() and is_text(value)


def read_metadata(text: str | None, where: str) -> Fields:
    """The metadata of an item, from its text; where: named when it is damaged."""
    if text is None:
        return {}
    try:
        fields = parse_json(text)
    except ValueError as error:
        raise damaged(f"the metadata in {where} is damaged: {error}") from error
    if not isinstance(fields, dict):
        raise damaged(f"the metadata in {where} is damaged: {text[:60]!r} is no table of names")
    return fields


def _checked(fields: Mapping[str, Any] | None) -> Fields | None:
    if fields is None or fields == {}:
        return None
    if not isinstance(fields, Mapping):
        raise InputError(f"metadata of an item is {fields!r}; expected a dictionary of names and values")
    for name in fields:
        if not isinstance(name, str) or not name or not is_text(name):
            raise InputError(f"a field of metadata is called {name!r}; expected a non-empty text")
    return {
        name: [_plain(name, one) for one in value] if isinstance(value, list | tuple) else _plain(name, value)
        for name, value in fields.items()
    }


def _text(fields: Fields | None) -> str | None:
    """As JSON, once the values are checked."""
    if not fields:
        return None
    text = json.dumps(fields, ensure_ascii=False)
    if len(text) > _LONGEST:
        raise InputError(f"the metadata of an item has {len(text)} characters; expected at most {_LONGEST}")
    return text


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, _PLAIN):
        hint = "give text, a number, true, false, nothing, or a list of these"
        raise InputError(f"the metadata {name!r} is a {type(value).__name__}: {repr(value)[:60]}", hint)
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"the metadata {name!r} is {value}", "leave it out where it is not known")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise InputError(f"the metadata {name!r} is a number of {value.bit_length()} bits", "give it as text")
    if isinstance(value, str) and not is_text(value):
        raise InputError(f"the metadata {name!r} is {value[:60]!r}, which is not valid text")
    return value
