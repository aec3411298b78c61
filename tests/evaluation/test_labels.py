"""Scores over labels and the three rules of the bullseye equal the definitions, walked down item by item."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evaluation.drawn import assert_equal_to_loops, every_item_asked, labelled, padded
from manifind.evaluation.protocols import bullseye, evaluate_labels, mean_average_precision
from reference.scores import (
    bullseye_by_walking,
    precision_by_walking,
    recall_by_walking,
    same_label_by_loops,
    trec_ap_by_walking,
)

CUTOFFS = (1, 2, 5, 20)
RULES = ("counted", "left-out", "left-out-others")


def assert_all_measures(scores, rankings, judged):
    """mAP by rectangles and P@k, R@k equal the loops. judged: (right, ignored) of each query."""
    named = {score.measure: score for score in scores}
    assert list(named) == ["mAP", *(f"P@{k}" for k in CUTOFFS), *(f"R@{k}" for k in CUTOFFS)]
    cases = [(ranking, *two) for ranking, two in zip(rankings, judged, strict=True)]
    assert_equal_to_loops(named["mAP"], [trec_ap_by_walking(*one) for one in cases])
    for k in CUTOFFS:
        assert_equal_to_loops(named[f"P@{k}"], [precision_by_walking(*one, k) for one in cases])
        assert_equal_to_loops(named[f"R@{k}"], [recall_by_walking(*one, k) for one in cases])


@given(problem=labelled(), beyond=st.integers(0, 2))
def test_scores_of_the_asked_items_equal_the_loops(problem, beyond):
    judged = [same_label_by_loops(problem.labels, query) for query in problem.query_items]
    assume(any(right for right, _ in judged))
    ids = padded(problem.rankings, beyond)
    scores = evaluate_labels(ids, problem.labels, query_items=problem.query_items, cutoffs=CUTOFFS)
    assert_all_measures(scores, problem.rankings, judged)


@given(problem=labelled(), beyond=st.integers(0, 2), data=st.data())
def test_scores_of_queries_from_outside_equal_the_loops(problem, beyond, data):
    m, n = len(problem.rankings), len(problem.labels)
    query_labels = data.draw(st.lists(st.integers(0, 5), min_size=m, max_size=m))
    judged = [({i for i in range(n) if problem.labels[i] == label}, set()) for label in query_labels]
    assume(any(right for right, _ in judged))
    ids = padded(problem.rankings, beyond)
    scores = evaluate_labels(ids, problem.labels, query_labels=query_labels, cutoffs=CUTOFFS)
    assert_all_measures(scores, problem.rankings, judged)


@given(problem=every_item_asked())
def test_every_item_is_asked_for_where_nobody_says_which(problem):
    judged = [same_label_by_loops(problem.labels, query) for query in problem.query_items]
    assume(any(right for right, _ in judged))
    ids = np.array(problem.rankings)
    scores = evaluate_labels(ids, problem.labels, cutoffs=CUTOFFS)
    assert_all_measures(scores, problem.rankings, judged)
    alone = mean_average_precision(ids, problem.labels, queries="unseen")
    assert (alone.measure, alone.rule, alone.value) == ("mAP", scores[0].rule, scores[0].value)
    assert alone.queries == "unseen"


@pytest.mark.parametrize("rule", RULES)
@given(problem=every_item_asked(), data=st.data())
def test_bullseye_equals_the_loops_for_classes_of_any_size(rule, problem, data):
    assume(len(set(problem.labels)) < len(problem.labels))
    n = len(problem.labels)
    window = data.draw(st.integers(1, n + 2))
    score = bullseye(np.array(problem.rankings), problem.labels, window, rule)
    walked = [
        bullseye_by_walking(ranking, query, problem.labels, window, rule)
        for query, ranking in enumerate(problem.rankings)
    ]
    hits, possible = zip(*walked, strict=True)
    assert score.value == pytest.approx(100 * sum(hits) / sum(possible), abs=1e-10)
    assert score.weights.tolist() == list(possible)
    for value, (hit, most) in zip(score.per_query, walked, strict=True):
        assert value == pytest.approx(100 * hit / most) if most else np.isnan(value)


@pytest.mark.parametrize("rule", RULES)
@given(problem=labelled(full=True), data=st.data())
def test_bullseye_of_the_asked_items_equals_the_loops(rule, problem, data):
    labels = problem.labels
    assume(any(labels.count(labels[query]) > 1 for query in problem.query_items))
    window = data.draw(st.integers(1, len(labels) + 2))
    score = bullseye(np.array(problem.rankings), labels, window, rule, query_items=problem.query_items)
    walked = [
        bullseye_by_walking(ranking, query, labels, window, rule)
        for query, ranking in zip(problem.query_items, problem.rankings, strict=True)
    ]
    hits, possible = zip(*walked, strict=True)
    assert score.value == pytest.approx(100 * sum(hits) / sum(possible), abs=1e-10)
    assert score.weights.tolist() == list(possible)


@pytest.mark.parametrize("rule", RULES)
@given(problem=every_item_asked(), data=st.data())
def test_bullseye_of_rankings_just_wide_enough_is_that_of_the_full_ones(rule, problem, data):
    n = len(problem.labels)
    assume(len(set(problem.labels)) < n)
    window = data.draw(st.integers(1, n))
    full = np.array(problem.rankings)
    others = min(window - (rule == "counted"), n - 1)
    cut = [[i for i in row if i != q][:others] for q, row in enumerate(full.tolist())]
    whole, narrow = (bullseye(ids, problem.labels, window, rule) for ids in (full, padded(cut)))
    assert narrow == whole._replace(per_query=narrow.per_query, weights=narrow.weights)
    np.testing.assert_array_equal(narrow.per_query, whole.per_query)
    np.testing.assert_array_equal(narrow.weights, whole.weights)


LABELS = [7, 3, 7, 3, 9]
ALIKE = [
    np.array(LABELS, dtype=np.uint8),
    np.array(LABELS, dtype=np.int64) - 8,
    np.array(LABELS).astype(str),
    np.array(LABELS).astype(bytes),
    ["cat", "dog", "cat", "dog", "owl"],
    ["été", "日本", "été", "日本", ""],
]


@pytest.mark.parametrize("labels", ALIKE, ids=str)
def test_only_whether_labels_are_equal_matters(labels):
    ids = np.random.default_rng(0).permuted(np.tile(np.arange(5), (5, 1)), axis=1)
    expected = evaluate_labels(ids, LABELS)
    for score, other in zip(expected, evaluate_labels(ids, labels), strict=True):
        np.testing.assert_array_equal(score.per_query, other.per_query)


def test_true_and_false_may_be_labels():
    ids = np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]])
    assert mean_average_precision(ids, [True, False, True]).value == mean_average_precision(ids, [1, 0, 1]).value


def test_labels_of_items_and_queries_are_the_same_classes_whatever_their_widths():
    ids = np.array([[0, 1, 2]])
    for label in (np.array(["b"]), np.array(["b"], dtype="U40"), np.array([b"b"])):
        score = evaluate_labels(ids, ["a", "b", "long"], query_labels=label)[0]
        assert score.per_query.tolist() == [50]
    assert evaluate_labels(ids, np.array([1, 2, 3], "u1"), query_labels=[3])[0].value == pytest.approx(100 / 3)


def test_a_query_of_a_label_that_no_item_has_finds_nothing_and_does_not_count():
    scores = evaluate_labels(np.array([[0, 1], [1, 0]]), ["a", "b"], query_labels=["a", "z"])
    assert [score.weights.tolist() for score in scores] == [[1, 0]] * len(scores)
    assert scores[0].value == 100


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64, ">i4"])
def test_rankings_may_be_of_any_whole_numbers(dtype):
    ids = np.array([[1, 0, 2], [0, 2, 1], [0, 1, 2]])
    expected = evaluate_labels(ids, [0, 0, 0])[0].per_query
    np.testing.assert_array_equal(evaluate_labels(ids.astype(dtype), [0, 0, 0])[0].per_query, expected)
    np.testing.assert_array_equal(evaluate_labels(ids.tolist(), [0, 0, 0])[0].per_query, expected)


def test_rankings_and_labels_are_not_written_to():
    ids, labels = np.array([[1, 0, 2], [0, 2, 1], [0, 1, 2]]), np.array([0, 0, 1])
    for array in (ids, labels):
        array.flags.writeable = False
    evaluate_labels(ids, labels)
    bullseye(ids, labels, 2)
    assert ids.tolist() == [[1, 0, 2], [0, 2, 1], [0, 1, 2]]
    assert labels.tolist() == [0, 0, 1]


def test_large_labels_of_items_and_queries_are_told_apart_whatever_their_types():
    large = 2**53
    unsigned = np.array([large + 1], dtype=np.uint64)
    score = evaluate_labels(np.array([[0, 1]]), np.array([large, large + 1]), query_labels=unsigned)[0]
    assert score.value == 50
