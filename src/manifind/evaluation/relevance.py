"""Which items are relevant to each query, and where they stand in its ranking."""

from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Ints
from manifind.errors import InputError
from manifind.io.ground_truth import CLASSIC, REVISITED, GroundTruth
from manifind.text import count


class Relevance(NamedTuple):
    """What counts for each query; whoever is in neither list is wrong."""

    relevant: list[Ints]  # one array of distinct positions in the database per query; queries may share one
    ignored: list[Ints]  # one array per query: removed from the ranking before anything is counted, right or not
    n_items: int | None  # size of the database; None where the ground truth does not say
    rule: str  # the same in words


def classic(truth: GroundTruth) -> Relevance:
    """Oxford5k and Paris6k: good and ok images are right, junk is removed; the query's own image is right too."""
    _expect(truth, CLASSIC)
    rule = "good and ok are right, junk removed, the query's own image not removed"
    return Relevance(truth.lists["ok"], truth.lists["junk"], _n_items(truth), rule)


LEVELS = {
    "easy": (["easy"], ["junk", "hard"], "easy are right, hard and junk removed"),
    "medium": (["easy", "hard"], ["junk"], "easy and hard are right, junk removed"),
    "hard": (["hard"], ["junk", "easy"], "hard are right, easy and junk removed"),
}
"""The lists that are right at each level of the revisited evaluation, those that are removed, and both in words."""


def revisited(truth: GroundTruth, level: str) -> Relevance:
    """ROxford and RParis at one of LEVELS: what is right at the other level is removed, and so is junk."""
    _expect(truth, REVISITED)
    right, removed, rule = LEVELS[level]
    relevant, ignored = (
        [np.concatenate(lists) for lists in zip(*(truth.lists[name] for name in names), strict=True)]
        for names in (right, removed)
    )
    return Relevance(relevant, ignored, _n_items(truth), rule)


def landmarks(truth: GroundTruth) -> Relevance:
    """Every right image of a landmark in turn is a query and left out; the landmark's junk is removed.

    For parts of Oxford5k or Paris6k that hold few of the official queries. The queries are
    `landmark_queries`, in this order.
    """
    found = _landmarks(truth)
    relevant = [right for right, _ in found for _ in right]
    ignored = [np.append(junk, query) for right, junk in found for query in right]
    rule = "every right image of a landmark is a query and left out, the landmark's junk removed"
    return Relevance(relevant, ignored, _n_items(truth), rule)


def landmark_queries(truth: GroundTruth) -> Ints:
    """Positions of the right images, landmark by landmark as the ground truth has them, rising inside each."""
    return np.concatenate([right for right, _ in _landmarks(truth)])


def _landmarks(truth: GroundTruth) -> list[tuple[Ints, Ints]]:
    """What is right and what is junk for each landmark: queries that have the same images right are one."""
    _expect(truth, CLASSIC)
    by_images: dict[bytes, tuple[Ints, Ints]] = {}
    for right, junk in zip(truth.lists["ok"], truth.lists["junk"], strict=True):
        if len(right) > 1:  # a single image would have nothing left to find
            by_images.setdefault(right.tobytes(), (right, junk))
    if not by_images:
        raise InputError(
            "no landmark has two images that are right; expected at least one",
            "the landmark protocol needs a part of the set that holds several images of a landmark",
        )
    return list(by_images.values())


def same_label(labels: Ints, query_items: Ints | None = None) -> Relevance:
    """Items of the query's label are right, the query itself is left out.

    labels: (n,). query_items: positions of the queries among the items; None: every item, in order.
    """
    n = len(labels)
    query_items = np.arange(n) if query_items is None else query_items
    outside = query_items[(query_items < 0) | (query_items >= n)]
    if len(outside):
        raise InputError(f"a query asks for item {outside[0]} of {n}; expected positions from 0 to {n - 1}")
    members = _members(labels)
    relevant = [members[label] for label in labels[query_items].tolist()]
    return Relevance(relevant, list(query_items[:, None]), n, "same label is right")


def label_of_query(labels: Ints, query_labels: Ints) -> Relevance:
    """Items of the query's label are right; queries are not part of the database, so nobody is left out."""
    members, nobody = _members(labels), np.empty(0, dtype=np.int64)
    relevant = [members.get(label, nobody) for label in query_labels.tolist()]
    rule = "same label is right, the queries are not in the database"
    return Relevance(relevant, [nobody] * len(relevant), len(labels), rule)


def _members(labels: Ints) -> dict[int, Ints]:
    """Positions of the items of each label, rising."""
    order = np.argsort(labels, kind="stable")
    values, starts = np.unique(labels[order], return_index=True)
    return dict(zip(values.tolist(), np.split(order, starts[1:]), strict=True))


def _n_items(truth: GroundTruth) -> int | None:
    return len(truth.images) if truth.is_whole and truth.images is not None else None


def _expect(truth: GroundTruth, names: tuple[str, ...]) -> None:
    if set(truth.lists) != set(names):
        problem = f"the ground truth has the lists {', '.join(truth.lists)}; expected {', '.join(names)}"
        raise InputError(problem, "Oxford5k and Paris6k have ok and junk, the revisited sets easy, hard and junk")


NOTHING = -1  # fills the end of a row whose ranking is shorter than others
_MOST_ITEMS = 1 << 31  # where nobody says how many there are: a larger position is a mistake, not a database


class Hits(NamedTuple):
    """Where the right items stand in the ranking of each query."""

    ranks: list[Ints]  # from 0 and rising, of those that the ranking has
    n_relevant: Ints  # (m,) how many are right, found or not
    n_ranked: Ints  # (m,) items left in each ranking


def find_hits(ids: Any, relevance: Relevance) -> Hits:
    """The ranks of what is right in every row of ids, after removing what is ignored.

    ids: (m, k) positions in the database, best first, nobody twice; rows may end in NOTHING.
    """
    ids = _checked(ids, relevance)
    n, known = relevance.n_items, None
    if n is None:  # a stray position must not cost memory
        known = np.unique(np.concatenate([ids.ravel(), *relevance.relevant, *relevance.ignored]))
        n = len(known)
    is_right, is_counted, last_place = np.zeros(n, dtype=bool), np.ones(n, dtype=bool), np.empty(n, dtype=np.int64)
    ranks, n_ranked, n_relevant = [], [], []
    for number, (row, relevant, ignored) in enumerate(zip(ids, relevance.relevant, relevance.ignored, strict=True)):
        items = row = row[row != NOTHING]
        if known is not None:
            row, relevant, ignored = (np.searchsorted(known, one) for one in (row, relevant, ignored))
        last_place[row] = np.arange(len(row))
        _refuse_repeats(items, last_place[row], number)
        is_right[relevant], is_counted[ignored] = True, False
        counted = row[is_counted[row]]
        ranks.append(np.flatnonzero(is_right[counted]))
        n_ranked.append(len(counted))
        n_relevant.append(is_counted[relevant].sum())
        is_right[relevant], is_counted[ignored] = False, True
    return Hits(ranks, np.array(n_relevant, dtype=np.int64), np.array(n_ranked, dtype=np.int64))


def _checked(ids: Any, relevance: Relevance) -> Ints:
    ids, m = _as_matrix(ids), len(relevance.relevant)
    if len(ids) != m:
        hint = "transpose them: the rows must be the queries" if ids.shape[1] == m else "rank every query once"
        raise InputError(f"rankings for {count(len(ids), 'query')}; expected {m}, as the ground truth has", hint)
    lowest, highest = int(ids.min(initial=0)), int(ids.max(initial=0))
    if lowest < NOTHING:
        raise InputError(f"the rankings hold the position {lowest}; expected 0 or more", "count from 0")
    n = _MOST_ITEMS if relevance.n_items is None else relevance.n_items
    if highest >= n:
        raise InputError(
            f"the rankings hold the position {highest}, but the database has {count(n, 'item')}",
            "count positions from 0; items beyond those that the ground truth names are distractors: say how many",
        )
    positions: Ints = ids.astype(np.int64, copy=False)
    ended = np.logical_or.accumulate(positions == NOTHING, axis=1)
    goes_on = (ended & (positions != NOTHING)).any(axis=1)
    if goes_on.any():
        raise InputError(
            f"row {int(goes_on.argmax())} of the rankings goes on after {NOTHING}; "
            f"expected {NOTHING} only at the end of a row",
            f"{NOTHING} fills rows that are shorter than others: put it behind the last item",
        )
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


def _refuse_repeats(items: Ints, last_places: Ints, number: int) -> None:
    twice = last_places != np.arange(len(items))
    if twice.any():
        first = int(twice.argmax())
        raise InputError(
            f"row {number} of the rankings has item {items[first]} at ranks {first + 1} and {last_places[first] + 1}; "
            "expected every item once",
            "remove repeated items before scoring: each would be counted again",
        )
