"""A database to search in: exactly where it is small, through an inverted file where it is large."""

from __future__ import annotations

from functools import cached_property

from gradnet.arrays import Floats
from gradnet.graph.inverted_file import CODES, InvertedFile, Quality
from gradnet.graph.neighbours import Metric, longest_square, nearest
from gradnet.ranking import Ranking

EXACT_UP_TO = 20_000
"""Items that "auto" searches exactly: there is nothing to build, and nothing to miss."""

_LARGEST_SQ8 = 1 << 31  # bytes of codes; beyond, "auto" takes product quantisation
_MOST_OF_ALL = 8  # a ranking of more than this part of the database is made exactly


class Space:
    """The rows of a database under a metric, and how they are searched.

    index: "exact", "sq8" or "pq"; "auto" chooses by size. k: how many neighbours the recall is measured for.
    """

    def __init__(self, database: Floats, metric: Metric, index: str, k: int) -> None:
        self.database, self.metric = database, metric
        codes = _codes(database) if index == "auto" else index
        self._compressed = InvertedFile(database, metric, codes, k) if codes in CODES else None

    def nearest(self, queries: Floats, k: int) -> Ranking:
        """The k best rows for every query: scores and order as `graph.neighbours.nearest` has them."""
        if self._compressed is None or k > len(self.database) // _MOST_OF_ALL:
            return nearest(queries, self.database, k, self.metric, self._longest)
        return self._compressed.nearest(queries, k)

    def roughly_nearest(self, queries: Floats, k: int) -> Ranking:
        """As `nearest`, but fine codes are taken at their word: for weights, where a hair does not matter."""
        compressed = self._compressed
        if compressed is None or compressed.quality.codes != "sq8" or k > len(self.database) // _MOST_OF_ALL:
            return self.nearest(queries, k)
        return compressed.nearest_by_codes(queries, k)

    @cached_property
    def _longest(self) -> float:
        return longest_square(self.database)

    @property
    def quality(self) -> Quality | None:
        """Recall and size of the compressed index; None where the search is exact."""
        return None if self._compressed is None else self._compressed.quality


def _codes(database: Floats) -> str:
    if len(database) <= EXACT_UP_TO:
        return "exact"
    return "sq8" if database.size <= _LARGEST_SQ8 else "pq"
