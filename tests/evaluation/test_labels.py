"""Scores over labels: by hand, by loops, and at their limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradnet.errors import InputError
from gradnet.evaluation.labels import average_precisions, bullseye, mean_average_precision


def rankings(n, seed):
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(n) for _ in range(n)])


def ap_by_loops(ranking, query, labels):
    found, total, rank = 0, 0.0, 0
    for item in ranking:
        if item == query:
            continue
        rank += 1
        if labels[item] == labels[query]:
            found += 1
            total += found / rank
    relevant = sum(label == labels[query] for label in labels) - 1
    return total / relevant if relevant else float("nan")


def test_average_precision_by_hand():
    labels = np.array([0, 0, 1, 0])
    ids = np.array([[0, 2, 1, 3], [1, 0, 3, 2], [2, 0, 1, 3], [3, 2, 0, 1]])
    expected = [(1 / 2 + 2 / 3) / 2, 1.0, np.nan, (1 / 2 + 2 / 3) / 2]
    np.testing.assert_allclose(average_precisions(ids, labels), expected)
    assert mean_average_precision(ids, labels) == pytest.approx(100 * np.nanmean(expected))


@given(n=st.integers(2, 25), classes=st.integers(1, 5), seed=st.integers(0, 99))
def test_average_precision_equals_the_loops_wherever_the_query_stands(n, classes, seed):
    labels = np.random.default_rng(seed).integers(0, classes, n)
    ids = rankings(n, seed)
    expected = [ap_by_loops(ids[q], q, labels) for q in range(n)]
    np.testing.assert_allclose(average_precisions(ids, labels), expected)


def test_a_perfect_ranking_scores_100_under_both_rules():
    labels = np.repeat([0, 1, 2], 4)
    ids = np.stack([np.argsort(labels != labels[q], kind="stable") for q in range(12)])
    assert mean_average_precision(ids, labels) == 100
    assert bullseye(ids, labels, 4) == 100


def test_bullseye_by_hand_counts_the_query_wherever_its_ranking_has_it():
    labels = np.array([0, 0, 1, 1])
    first = np.array([[0, 2, 1, 3], [1, 0, 2, 3], [2, 3, 0, 1], [3, 0, 2, 1]])
    last = np.array([[2, 1, 3, 0], [0, 2, 3, 1], [3, 0, 1, 2], [0, 2, 1, 3]])
    for ids in (first, last):
        assert bullseye(ids, labels, 2) == pytest.approx(100 * (1 + 2 + 2 + 1) / 8)
    assert bullseye(first, labels, 1) == 50


@given(n=st.integers(2, 25), seed=st.integers(0, 99), data=st.data())
def test_bullseye_equals_the_loops(n, seed, data):
    window = data.draw(st.integers(1, n))
    labels = np.random.default_rng(seed).integers(0, 3, n)
    ids = rankings(n, seed)
    hits = sizes = 0
    for q in range(n):
        head = [q, *(i for i in ids[q] if i != q)][:window]
        hits += sum(labels[i] == labels[q] for i in head)
        sizes += sum(label == labels[q] for label in labels)
    assert bullseye(ids, labels, window) == pytest.approx(100 * hits / sizes)


def test_rankings_that_do_not_fit_the_labels_are_refused():
    with pytest.raises(InputError, match="full ranking"):
        average_precisions(np.zeros((3, 2), dtype=int), np.zeros(3, dtype=int))
    with pytest.raises(InputError, match="at least 5"):
        bullseye(np.zeros((3, 3), dtype=int), np.zeros(3, dtype=int), 5)
