"""Metadata as Milvus keeps it: once as it was said, and once by kind, so that a condition never meets another kind.

{"said": {"year": 1990, "tags": ["red", 3]},
 "number": {"year": 1990}, "texts": {"tags": ["red"]}, "numbers": {"tags": [3]}}
"""

from __future__ import annotations

import json
import re
from typing import Any

from gradnet.collection.conditions import kind
from gradnet.collection.metadata import Fields
from gradnet.errors import InputError

_MOST_BYTES = 65_536  # of a JSON value of Milvus
_LARGEST_WHOLE = 1 << 53  # beyond, Milvus compares as doubles, and would take different numbers for the same


def kept_metadata(fields: Fields, id_: Any) -> dict[str, Any]:
    """The JSON value for one row."""
    kept: dict[str, Any] = {"said": fields}
    for name, value in fields.items():
        plural = "s" if isinstance(value, list) else ""
        for one in value if plural else [value]:
            if one is None:
                continue
            _refuse_large(name, one, id_)
            group = kept.setdefault(f"{kind(one)}{plural}", {})
            if plural:
                group.setdefault(key_of(name), []).append(one)
            else:
                group[key_of(name)] = one
    if len(json.dumps(kept, ensure_ascii=False).encode()) > _MOST_BYTES:
        raise InputError(
            f"what is said of {str(id_)[:60]!r} takes more than the {_MOST_BYTES} bytes that Milvus keeps, half of"
            " them for conditions",
            "say less of it",
        )
    return kept


def key_of(name: str) -> str:
    """A name in letters that stand for themselves everywhere; different for different names."""
    return re.sub("[^A-Za-z0-9_]", _escaped, name) or "%"


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02x}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _refuse_large(name: str, value: Any, id_: Any) -> None:
    if isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
        raise InputError(
            f"the metadata {name!r} of {str(id_)[:60]!r} is {str(value)[:40]}, a number that Milvus would round",
            "give it as text",
        )
