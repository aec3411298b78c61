"""Ids as people type them."""

from __future__ import annotations

from typing import Any

from gradnet.collection.collection import Collection
from gradnet.errors import InputError


def as_id(collection: Collection, text: str) -> Any:
    """The id that a text stands for: itself, or a whole number where the ids of the collection are such."""
    if collection.ids.dtype == object:
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no id of {collection.path}, whose ids are whole numbers", "give a number"
        ) from None
