"""Best first: by falling score, then by rising position."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.ranking import Ranking, best_first


def best_by_loops(scores, positions, k):
    rows = [
        sorted(zip(row, places, strict=True), key=lambda pair: (-pair[0], pair[1]))[:k]
        for row, places in zip(scores.tolist(), positions.tolist(), strict=True)
    ]
    return [[place for _, place in row] for row in rows], [[score for score, _ in row] for row in rows]


def test_three_candidates_by_hand():
    scores = np.array([[0.5, 0.9, 0.5], [1, 2, 3]], dtype=np.float32)
    positions = np.array([[7, 4, 2], [10, 30, 20]])
    found = best_first(scores, positions, 2)
    assert found.ids.tolist() == [[4, 2], [20, 30]]
    np.testing.assert_array_equal(found.scores, np.array([[0.9, 0.5], [3, 2]], dtype=np.float32))


@given(data=st.data(), m=st.integers(1, 4), c=st.integers(1, 12), levels=st.integers(1, 12))
@settings(max_examples=150, derandomize=True)
def test_best_first_equals_the_loops_whatever_ties(data, m, c, levels):
    k = data.draw(st.integers(1, c))
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    scores = (rng.integers(0, levels, size=(m, c)) / 4 - 1).astype(np.float32)  # few levels: many ties
    positions = np.array([rng.permutation(100)[:c] for _ in range(m)])
    found = best_first(scores, positions, k)
    ids, best = best_by_loops(scores, positions, k)
    assert found.ids.tolist() == ids
    assert found.scores.tolist() == best


@given(seed=st.integers(0, 10**6))
@settings(max_examples=50, derandomize=True)
def test_the_order_of_the_candidates_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    scores, positions = rng.integers(0, 3, size=(1, 9)).astype(np.float32), rng.permutation(9)[None]
    order = rng.permutation(9)
    one, other = best_first(scores, positions, 6), best_first(scores[:, order], positions[:, order], 6)
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.scores, other.scores)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_keep_their_type_and_never_increase(dtype):
    scores = np.random.default_rng(0).normal(size=(5, 20)).astype(dtype)
    found = best_first(scores, np.tile(np.arange(20), (5, 1)), 20)
    assert found.scores.dtype == dtype
    assert (np.diff(found.scores, axis=1) <= 0).all()


def test_minus_zero_ties_with_zero_and_minus_infinity_comes_last():
    scores = np.array([[-np.inf, 0.0, -0.0]], dtype=np.float32)
    assert best_first(scores, np.array([[0, 2, 1]]), 3).ids.tolist() == [[1, 2, 0]]


def test_a_ranking_unpacks_into_ids_and_scores():
    ids, scores = Ranking(np.array([[1]]), np.array([[0.5]], dtype=np.float32))
    assert ids.tolist() == [[1]]
    assert scores.tolist() == [[0.5]]


def test_the_candidates_are_not_written_to():
    scores, positions = np.array([[1.0, 2.0]], dtype=np.float32), np.array([[1, 0]])
    scores.flags.writeable = positions.flags.writeable = False
    best_first(scores, positions, 1)
    assert scores.tolist() == [[1, 2]]
    assert positions.tolist() == [[1, 0]]
