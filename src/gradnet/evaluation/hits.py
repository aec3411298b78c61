"""Where the right items stand in each ranking once what is ignored has been removed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradnet.arrays import Ints
from gradnet.errors import InputError
from gradnet.evaluation.judgements import Judgements
from gradnet.wording import count

NOTHING = -1
"""Fills the end of a row whose ranking is shorter than others."""

_MOST_ITEMS = 1 << 31  # where nobody says how many there are: a larger position is a mistake, not a database


class Hits(NamedTuple):
    """For each query the ranks, from 0 and rising, of the right items that its ranking has.

    n_relevant: (m,) how many are right, found or not. n_ranked: (m,) items left in each ranking.
    """

    ranks: list[Ints]
    n_relevant: Ints
    n_ranked: Ints


def find_hits(ids: Any, judgements: Judgements) -> Hits:
    """The ranks of what is right in every row of ids, after removing what is ignored.

    ids: (m, k) positions in the database, best first, nobody twice; rows may end in NOTHING.
    """
    ids = _checked(ids, judgements)
    n, known = judgements.n_items, None
    if n is None:  # a stray position must not cost memory
        known = np.unique(ids)
        n = len(known)
    place = np.full(n, NOTHING)
    ranks, n_ranked, n_relevant = [], [], []
    for number, (row, relevant, ignored) in enumerate(
        zip(ids, judgements.relevant, judgements.ignored, strict=True)
    ):
        n_relevant.append(len(relevant) - np.isin(ignored, relevant).sum())
        items = row = row[row != NOTHING]
        if known is not None:
            row, relevant, ignored = (_renumbered(one, known) for one in (row, relevant, ignored))
        place[row] = np.arange(len(row))  # of each item in this ranking
        _refuse_repeats(items, place[row], number)
        removed = _found(place, ignored)
        place[ignored] = NOTHING
        found = _found(place, relevant)
        ranks.append(found - np.searchsorted(removed, found))
        n_ranked.append(len(row) - len(removed))
        place[row] = NOTHING
    return Hits(ranks, np.array(n_relevant, dtype=np.int64), np.array(n_ranked, dtype=np.int64))


def _found(place: Ints, items: Ints) -> Ints:
    places = place[items]
    return np.sort(places[places != NOTHING])


def _renumbered(items: Ints, known: Ints) -> Ints:
    """Places of the items among the known ones; others leave."""
    return np.searchsorted(known, items[np.isin(items, known)])


def _checked(ids: Any, judgements: Judgements) -> Ints:
    ids, m = _as_matrix(ids), len(judgements.relevant)
    if len(ids) != m:
        hint = (
            "transpose them: the rows must be the queries" if ids.shape[1] == m else "rank every query once"
        )
        raise InputError(
            f"rankings for {count(len(ids), 'query')}; expected {m}, as the ground truth has", hint
        )
    lowest, highest = int(ids.min(initial=0)), int(ids.max(initial=0))
    if lowest < NOTHING:
        raise InputError(f"the rankings hold the position {lowest}; expected 0 or more", "count from 0")
    n = _MOST_ITEMS if judgements.n_items is None else judgements.n_items
    if highest >= n:
        raise InputError(
            f"the rankings hold the position {highest}, but the database has {count(n, 'item')}",
            "count positions from 0; items beyond those that the ground truth names are distractors: say how many",
        )
    positions: Ints = ids.astype(np.int64, copy=False)
    _refuse_gaps(positions)
    return positions


def _as_matrix(ids: Any) -> np.ndarray[Any, Any]:
    expected = "expected (queries, k) whole numbers"
    hint = f"give one row per query, each the positions of items, best first; fill short rows with {NOTHING}"
    try:
        matrix = np.asarray(ids)
    except ValueError as error:
        raise InputError(f"rankings of different lengths; {expected}", hint) from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "iu":
        raise InputError(f"rankings of shape {matrix.shape} and type {matrix.dtype}; {expected}", hint)
    return matrix


def _refuse_gaps(ids: Ints) -> None:
    ended = np.logical_or.accumulate(ids == NOTHING, axis=1)
    goes_on = (ended & (ids != NOTHING)).any(axis=1)
    if goes_on.any():
        raise InputError(
            f"row {int(goes_on.argmax())} of the rankings goes on after {NOTHING}; "
            f"expected {NOTHING} only at the end of a row",
            f"{NOTHING} fills rows that are shorter than others: put it behind the last item",
        )


def _refuse_repeats(items: Ints, last_places: Ints, number: int) -> None:
    twice = last_places != np.arange(len(items))
    if twice.any():
        first = int(twice.argmax())
        raise InputError(
            f"row {number} of the rankings has item {items[first]} at ranks {first + 1} "
            f"and {last_places[first] + 1}; "
            "expected every item once",
            "remove repeated items before scoring: each would be counted again",
        )
