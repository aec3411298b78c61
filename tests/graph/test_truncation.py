"""Truncation: the union of what each query could want."""

import numpy as np
import pytest

from manifind.graph.duplicates import truncate
from reference.graphs import clusters
from reference.neighbours import nearest_by_loops


def test_the_nearest_of_two_queries_by_hand():
    X = np.array([[0], [10], [1], [11], [5]], dtype=np.float32)
    assert truncate(X, np.array([[0], [10.4]], dtype=np.float32), 2).tolist() == [0, 1, 2, 3]
    assert truncate(X, np.array([[4]], dtype=np.float32), 1).tolist() == [4]


@pytest.mark.parametrize("top", [1, 5, 20])
def test_truncation_equals_the_loops(top):
    X, Q = clusters(120, 4, 5, seed=0), clusters(6, 4, 5, seed=0)
    ids, _ = nearest_by_loops(Q, X, top, "euclidean")
    assert truncate(X, Q, top).tolist() == sorted(set(ids.ravel().tolist()))


@pytest.mark.parametrize("top", [30, 31, 500])
def test_a_top_of_everything_keeps_everything(top):
    X = clusters(30, 3, 2, seed=1)
    assert truncate(X, X[:1], top).tolist() == list(range(30))


def test_equal_distances_are_kept_by_position():
    X = np.array([[1], [-1], [1], [-1]], dtype=np.float32)
    assert truncate(X, np.zeros((1, 1), dtype=np.float32), 2).tolist() == [0, 1]
