"""One score: its value, the rule it was counted by, where the queries were, and what each of them got."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradnet.arrays import Doubles
from gradnet.errors import InputError

QUERIES = ("in the graph", "unseen", "not stated")
"""Whether the queries were part of what the method was fitted on, which is an advantage."""


class Score(NamedTuple):
    """measure: its usual name, "mAP", "bullseye@40". rule: what was counted how, in words.

    queries: one of QUERIES. per_query: (m,) in percent, NaN where a query has nothing to find.
    weights: (m,) of each query in the value, 0 where NaN.
    cut: the length of the shortest ranking where they do not hold the whole database; what a cut ranking
        leaves out counts as not found. None where they are whole, or nobody knows how large that is.
    """

    measure: str
    rule: str
    queries: str
    per_query: Doubles
    weights: Doubles
    cut: int | None = None

    @property
    def value(self) -> float:
        """The weighted mean of the queries that have something to find, in percent."""
        counts = self.weights > 0
        return float(np.average(self.per_query[counts], weights=self.weights[counts]))

    @property
    def n_queries(self) -> int:
        """How many queries have something to find."""
        return int((self.weights > 0).sum())


def check_queries(queries: str) -> None:
    """Refuse what does not say where the queries were."""
    if queries not in QUERIES:
        raise InputError(f"queries = {queries!r}; expected one of {', '.join(map(repr, QUERIES))}")
