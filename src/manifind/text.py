"""Texts for people: counts that agree with their nouns, names that are safe on a terminal, the nearest known names."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from heapq import heappush, heappushpop

# Control characters, separators of lines, what changes the direction of writing, and what has no width.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


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


_ENOUGH = 0.6  # how alike two names are, from 0 to 1; below, one is no misspelling of the other
_LONGEST = 200  # characters that are compared
_SHARES = (5 / 6, 2 / 3, 1 / 3)  # of a text, that a name must begin or end with to be compared with it
_MOST_COMPARED = 20_000


def closest(text: str, names: Sequence[str], n: int = 3) -> list[str]:
    """Up to n of the names that `text` may be a misspelling of, best first; upper and lower case are alike."""
    return [names[place] for place in closest_places(text, names, n)]


def closest_places(text: str, names: Sequence[str], n: int = 3) -> list[int]:
    """The same as places among the names; of many names only the likely ones are compared."""
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(text.casefold()[:_LONGEST])
    best: list[tuple[float, int]] = []
    for place in _likely(text, names):
        matcher.set_seq1(names[place].casefold()[:_LONGEST])
        # The bar rises with what was found, and the two estimates from above are much cheaper than the ratio.
        bar = best[0][0] if len(best) == n else _ENOUGH
        if all(alike() >= bar for alike in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)):
            (heappushpop if len(best) == n else heappush)(best, (matcher.ratio(), -place))
    return [-place for _, place in sorted(best, reverse=True)]


def _likely(text: str, names: Sequence[str]) -> Iterable[int]:
    """The places of all names; of many, of those that begin or end as the text does.

    Wherever a single mistake is, what stands before it or behind it is right, and one of the two is long. What too many
    names begin or end with tells nothing.
    """
    if len(names) <= _MOST_COMPARED:
        return range(len(names))
    found: dict[int, None] = {}
    for share in _SHARES:
        length = max(1, int(share * len(text)))
        for has, part in ((str.endswith, text[-length:]), (str.startswith, text[:length])):
            places = [place for place, name in enumerate(names) if has(name, part)]
            if len(found) + len(places) <= _MOST_COMPARED:
                found.update(dict.fromkeys(places))
    return found


def did_you_mean(names: Sequence[object]) -> str:
    """A question that offers one to three names."""
    shown = [repr(name)[:_LONGEST] for name in names]
    return f"did you mean {' or '.join([', '.join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)}?"


def listed(names: Iterable[str], most: int = 12) -> str:
    """Some names in their order, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(name[:_LONGEST] for name in every[:most]) + more
