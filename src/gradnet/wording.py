"""Numbers in sentences: nouns and verbs that agree with them."""

from __future__ import annotations


def count(n: int, noun: str) -> str:
    """A number with its noun, regular or ending in -y: "1 item", "2 items", "1,500 queries"."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def are(n: int) -> str:
    """The verb for so many: "is" or "are"."""
    return "is" if n == 1 else "are"
