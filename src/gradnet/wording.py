"""Texts for people: nouns and verbs that agree with numbers, and names that a terminal only shows."""

from __future__ import annotations

import re

UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, separators of lines, and what changes the direction of writing."""


def count(n: int, noun: str) -> str:
    """A number with its noun, regular or ending in -y: "1 item", "2 items", "1,500 queries"."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def are(n: int) -> str:
    """The verb for so many: "is" or "are"."""
    return "is" if n == 1 else "are"


def visible(text: str) -> str:
    """A text on one line, of which a terminal does nothing but show it: \\x1b for an escape, \\u202e, \\n."""
    return UNSEEN.sub(lambda found: repr(found[0])[1:-1], text)
