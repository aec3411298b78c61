"""Rankings and ground truth for the tests of the scores: drawn by hypothesis, or put together by hand."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from manifind.io.ground_truth import GroundTruth

CLASSIC_ROLES = ("ok", "junk", "wrong")
REVISITED_ROLES = ("easy", "hard", "junk", "wrong")


class Lists(NamedTuple):
    """n: items. rankings: one list per query, of any length. lists: by name, the positions of each query."""

    n: int
    rankings: list[list[int]]
    lists: dict[str, list[list[int]]]

    @property
    def truth(self):
        return published(self.n, self.lists)


class Labelled(NamedTuple):
    """labels: of every item. query_items: an item for each ranking. rankings: one list per query, of any length."""

    labels: list[int]
    query_items: list[int]
    rankings: list[list[int]]


def published(n, lists):
    """Ground truth over the whole database of n images."""
    arrays = {name: [np.array(one, dtype=np.int64) for one in each] for name, each in lists.items()}
    m = len(lists["junk"])
    return GroundTruth(arrays, tuple(f"im{i}" for i in range(n)), tuple(f"q{i}" for i in range(m)))


def padded(rankings, beyond=0):
    """(m, k) with -1 behind rankings that are shorter than others, and `beyond` more columns of it."""
    ids = np.full((len(rankings), max(map(len, rankings)) + beyond), -1)
    for row, ranking in zip(ids, rankings, strict=True):
        row[: len(ranking)] = ranking
    return ids


def values(score):
    """Of each query in [0, 1], None where it has nothing to find."""
    return [None if np.isnan(value) else value / 100 for value in score.per_query.tolist()]


def assert_equal_to_loops(score, expected):
    """Every query's value is the expected one, and the score is the mean of those that have one."""
    assert [value is None for value in values(score)] == [value is None for value in expected]
    there = [value for value in expected if value is not None]
    np.testing.assert_allclose([v for v in values(score) if v is not None], there, rtol=0, atol=1e-12)
    assert abs(score.value - 100 * sum(there) / len(there)) < 1e-9
    assert score.n_queries == len(there)


@st.composite
def lists(draw, roles):
    """Lists in which somebody has something to find; some queries may not."""
    n, m = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    given = [draw(st.lists(st.sampled_from(roles), min_size=n, max_size=n)) for _ in range(m)]
    by_name = {
        name: [[item for item, role in enumerate(each) if role == name] for each in given]
        for name in roles
        if name != "wrong"
    }
    return Lists(n, [draw(cut_rankings(n)) for _ in range(m)], by_name)


@st.composite
def cut_rankings(draw, n):
    """The n items in any order, all of them or only the first few."""
    length = draw(st.one_of(st.just(n), st.integers(0, n)))
    return draw(st.permutations(range(n)))[:length]


@st.composite
def labelled(draw, full=False):
    """Items of few classes, some of one item only; queries any of them, some perhaps twice."""
    labels = draw(st.lists(st.integers(0, 3), min_size=2, max_size=12))
    n = len(labels)
    query_items = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=5))
    rankings = [draw(st.permutations(range(n)) if full else cut_rankings(n)) for _ in query_items]
    return Labelled(labels, query_items, rankings)


@st.composite
def every_item_asked(draw):
    """A full ranking for each item."""
    labels = draw(st.lists(st.integers(0, 3), min_size=2, max_size=9))
    n = len(labels)
    return Labelled(labels, list(range(n)), [draw(st.permutations(range(n))) for _ in range(n)])
