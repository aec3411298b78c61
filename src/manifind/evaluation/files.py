"""Rankings and ground truth from files: names are looked up, and everything becomes positions."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifind.arrays import Ints
from manifind.errors import FileFormatError, InputError
from manifind.evaluation.relevance import NOTHING, landmark_queries
from manifind.io.ground_truth import GroundTruth, bare_name, read_ground_truth
from manifind.io.tables import SUFFIXES as LABEL_SUFFIXES
from manifind.io.tables import ItemLabels, RankedLists, read_labels, read_ranking

_LONGEST = 18  # digits that fit in 64 bits


class JudgedQueries(NamedTuple):
    """What a ranking is scored against, and the names that it may use; None where there are only positions."""

    truth: GroundTruth | ItemLabels
    items: Sequence[str] | None  # the name of each item of the database
    queries: Sequence[str] | None  # the name of each query
    is_whole: bool  # whether an item that is not among `items` is a mistake, or simply wrong


def read_judged_queries(path: str | os.PathLike[str], protocol: str = "official") -> JudgedQueries:
    """Ground truth of a file or a folder: published lists, or labels where the suffix is one of theirs."""
    if Path(path).suffix.lower() in LABEL_SUFFIXES:
        labels = read_labels(path)
        names = labels.names or [str(position) for position in range(len(labels.values))]
        return JudgedQueries(labels, names, names, True)
    truth = read_ground_truth(path)
    queries: Sequence[str] | None = truth.queries
    if protocol == "landmarks" and truth.images is not None:
        queries = [truth.images[position] for position in landmark_queries(truth).tolist()]
    return JudgedQueries(truth, truth.images, queries, truth.is_whole)


class Answers(NamedTuple):
    """Rankings as positions."""

    ids: Ints  # (m, k), rows filled with NOTHING
    query_items: Ints | None  # with labels, the item each row answers


def read_answers(path: str | os.PathLike[str], judged: JudgedQueries, distractors: int = 0) -> Answers:
    """Rankings of a file as positions, in the order of the queries.

    distractors: where there are any, names that the ground truth does not know are theirs.
    """
    ranked, where = read_ranking(path), str(path)
    lists, query_items = _in_order(ranked, judged, where)
    if ranked.are_names:
        named = _looked_up(lists, judged, where, distractors > 0)
        ids = np.full((len(named), max(map(len, named))), NOTHING)
        for row, one in zip(ids, named, strict=True):
            row[: len(one)] = one
        return Answers(ids, query_items)
    if not judged.is_whole:
        problem = f"{where} has positions, but this ground truth does not list the whole database"
        raise FileFormatError(problem, "give names instead: a TREC run, or an .npy of strings")
    positions = np.stack(lists)
    fits = np.can_cast(positions.dtype, np.int64)  # else what is too large must not wrap around
    return Answers(positions.astype(np.int64) if fits else positions, query_items)


def _in_order(ranked: RankedLists, judged: JudgedQueries, where: str) -> tuple[list[Any], Ints | None]:
    """The lists in the order of the ground truth's queries; with labels, whichever items were asked for."""
    if ranked.queries is None:
        return ranked.items, None
    names = judged.queries
    if names is None:
        problem = f"{where} names its queries, but the ground truth does not"
        raise FileFormatError(problem, "give an .npy with one row per query")
    known = Names(names)
    if isinstance(judged.truth, ItemLabels):
        query_items = [known.position(name, f"the query {name!r} of {where}") for name in ranked.queries]
        return ranked.items, np.array(query_items)
    row_of: dict[int, int] = {}
    for row, name in enumerate(ranked.queries):
        query = known.find(name)
        if query in row_of:
            raise FileFormatError(
                f"{where} ranks the query {names[query]!r} twice, as {ranked.queries[row_of[query]]!r} and {name!r}",
                "keep one of the two",
            )
        if query is not None:  # runs may hold queries that this ground truth does not judge
            row_of[query] = row
    order = [known.position(name, "") for name in names]  # a landmark's image may be a query twice
    missing = [name for name, query in zip(names, order, strict=True) if query not in row_of]
    if missing:
        problem = f"{where} does not rank the query {missing[0]!r} of the ground truth, nor {len(missing) - 1} others"
        raise FileFormatError(problem, "rank every query, under the names that the ground truth has")
    return [ranked.items[row_of[query]] for query in order], None


def _looked_up(lists: list[Any], judged: JudgedQueries, where: str, has_others: bool) -> list[list[int]]:
    if judged.items is None:
        return [[_as_position(name, where) for name in one] for one in lists]
    known = Names(judged.items)
    if judged.is_whole and not has_others:
        return [[known.position(name, f"the item {name!r} of {where}") for name in one] for one in lists]
    # Whoever the ground truth does not mention is wrong, but still takes a rank.
    return [[known.position_or_new(name) for name in one] for one in lists]


class Names:
    """Positions by name: as it is written, or else without folder and picture suffix where that is clear."""

    def __init__(self, names: Sequence[str]) -> None:
        self._exact: dict[str, int] = {}
        self._bare: dict[str, set[int]] = {}
        for position, name in enumerate(names):
            first = self._exact.setdefault(name, position)
            self._bare.setdefault(bare_name(name), set()).add(first)
        self._next = len(names)

    def find(self, name: str) -> int | None:
        """The position of the name, or None."""
        if name in self._exact:
            return self._exact[name]
        alike = self._bare.get(bare_name(name), set())
        return next(iter(alike)) if len(alike) == 1 else None

    def position(self, name: str, what: str) -> int:
        """The position of the name; an unknown one is refused as `what`."""
        found = self.find(name)
        if found is None:
            raise InputError(
                f"{what} is not among the {len(self._exact)} names on the other side, "
                f"such as {next(iter(self._exact))!r}",
                "use the same names in the ranking and in the ground truth",
            )
        return found

    def position_or_new(self, name: str) -> int:
        """The position of the name, or one behind all others, the same each time."""
        found = self.find(name)
        if found is None:
            found = self._exact[name] = self._next
            self._bare.setdefault(bare_name(name), set()).add(found)
            self._next += 1
        return found


def _as_position(name: str, where: str) -> int:
    if not name.isdecimal() or len(name) > _LONGEST:
        problem = f"{where} has the item {name[:100]!r}, but the ground truth names no images"
        raise FileFormatError(problem, "write the position of each item, counted from 0")
    return int(name)
