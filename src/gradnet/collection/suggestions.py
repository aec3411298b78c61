"""The names nearest to one that does not exist: what somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from heapq import heappush, heappushpop
from itertools import islice

_ENOUGH = 0.6  # how alike two names are, from 0 to 1; below, one is no misspelling of the other
_LONGEST = 200  # characters that are compared
MOST_COMPARED = 20_000


def closest(text: str, names: Sequence[str], n: int = 3, most_compared: int = MOST_COMPARED) -> list[str]:
    """Up to n of the names that `text` may be a misspelling of, best first; upper and lower case are alike.

    Of many names only those that begin or end as the text does are compared, so that the cost stays bounded.
    """
    wanted = text.casefold()[:_LONGEST]
    compared: Iterable[str] = names
    if len(names) > most_compared:
        head, tail = text[: max(1, len(text) // 2)], text[-max(1, len(text) // 2) :]
        compared = (name for name in names if name.startswith(head) or name.endswith(tail))
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    best: list[tuple[float, int, str]] = []
    for place, name in enumerate(islice(compared, most_compared)):
        matcher.set_seq1(name.casefold()[:_LONGEST])
        # The bar rises with what was found, and the two estimates from above are much cheaper than the ratio.
        bar = best[0][0] if len(best) == n else _ENOUGH
        if min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= bar and matcher.ratio() >= bar:
            (heappushpop if len(best) == n else heappush)(best, (matcher.ratio(), -place, name))
    return [name for _, _, name in sorted(best, reverse=True)]


def did_you_mean(names: Sequence[object]) -> str:
    """A question that offers one to three names."""
    shown = [repr(name)[:_LONGEST] for name in names]
    return f"did you mean {' or '.join([', '.join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)}?"


def listed(names: Iterable[str], most: int = 12) -> str:
    """Some names in their order, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(name[:_LONGEST] for name in every[:most]) + more
