"""Ids as people type them: on a command line, and in the address of a page."""

from __future__ import annotations

import re
from typing import Any

from gradnet.collection.version import Version
from gradnet.errors import InputError

_WHOLE = re.compile(r"-?0*[0-9]{1,19}")  # ASCII digits only, and not many more than 64 bits have room for


def parse_id(version: Version, text: str) -> Any:
    """The id that a text stands for: itself, or a whole number of 64 bits where the ids of the collection are such."""
    if version.holdings.has_texts:
        return text
    number = int(text) if _WHOLE.fullmatch(text) else None
    if number is None or not -(2**63) <= number < 2**63:
        raise InputError(
            f"{text[:200]!r} is no id of {version.directory}, whose ids are whole numbers of 64 bits",
            "give a number",
        )
    return number
