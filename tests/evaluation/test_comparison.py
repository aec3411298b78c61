"""The difference of two scores and its interval: by hand, at its limits, and its coverage on known data."""

import itertools

import numpy as np
import pytest

from manifind.errors import InputError
from manifind.evaluation.measures import Score
from manifind.evaluation.protocols import bullseye, compare, evaluate_labels


def score(values, weights=None, measure="mAP", rule="a rule", queries="not stated"):
    values = np.asarray(values, dtype=np.float64)
    weights = (~np.isnan(values)).astype(np.float64) if weights is None else np.asarray(weights, np.float64)
    return Score(measure, rule, queries, values, weights)


def random_pair(seed, m=40):
    rng = np.random.default_rng(seed)
    first = rng.uniform(0, 100, m)
    return score(first), score(np.clip(first + rng.normal(2, 10, m), 0, 100))


def test_a_score_against_itself_differs_by_nothing():
    first, _ = random_pair(0)
    found = compare(first, first)
    assert found == (0, 0, 0, 0.95, 0, 0, 40)
    assert found.confidence == 0.95


def test_equal_differences_have_an_interval_that_is_a_point():
    found = compare(score([30, 50, 70]), score([20, 40, 60]))
    assert (found.mean, found.low, found.high) == (10, 10, 10)
    assert (found.wins, found.losses, found.ties) == (3, 0, 0)


def test_one_query_has_an_interval_that_is_a_point():
    found = compare(score([30]), score([37]))
    assert (found.mean, found.low, found.high) == (-7, -7, -7)


def test_two_queries_have_the_interval_of_their_four_resamples():
    found = compare(score([10, 0]), score([0, 0]), confidence=0.4)  # means 0, 5, 5, 10: the middle half is 5
    assert (found.mean, found.low, found.high) == (5, 5, 5)
    wide = compare(score([10, 0]), score([0, 0]), confidence=0.9)
    assert (wide.mean, wide.low, wide.high) == (5, 0, 10)


def test_wins_losses_and_ties_are_counted_by_query():
    found = compare(score([1, 2, 3, 4, np.nan]), score([2, 2, 1, 1, np.nan]))
    assert (found.wins, found.losses, found.ties) == (2, 1, 1)
    assert found.mean == 1


def test_queries_with_nothing_to_find_do_not_matter():
    first, second = random_pair(1)
    holes = np.full(5, np.nan)
    with_holes = [score(np.concatenate([one.per_query, holes])) for one in (first, second)]
    assert compare(*with_holes) == compare(first, second)


def test_swapping_the_two_flips_the_sign_and_the_ends():
    first, second = random_pair(2)
    forth, back = compare(first, second), compare(second, first)
    assert back.mean == pytest.approx(-forth.mean)
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low))
    assert (back.wins, back.losses, back.ties) == (forth.losses, forth.wins, forth.ties)


def test_the_interval_depends_on_the_seed_and_on_nothing_else():
    first, second = random_pair(3)
    assert compare(first, second, seed=5) == compare(first, second, seed=5)
    assert compare(first, second, seed=5)[1:3] != compare(first, second, seed=6)[1:3]


def test_the_interval_widens_with_the_confidence_around_the_same_mean():
    first, second = random_pair(4)
    found = [compare(first, second, confidence) for confidence in (0.5, 0.8, 0.95, 0.99)]
    assert len({one.mean for one in found}) == 1
    for narrow, wide in itertools.pairwise(found):
        assert wide.low < narrow.low < narrow.mean < narrow.high < wide.high


def test_the_mean_is_the_difference_of_the_two_values():
    first, second = random_pair(5)
    assert compare(first, second).mean == pytest.approx(first.value - second.value)


def test_weights_give_the_difference_of_the_pooled_ratios():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [2, 5, 9])
    one, other = (np.stack([rng.permutation(16) for _ in range(16)]) for _ in range(2))
    first, second = (bullseye(ids, labels, 6) for ids in (one, other))
    hits = [(score.per_query / 100 * score.weights).sum() for score in (first, second)]
    found = compare(first, second)
    assert first.weights.sum() == 2**2 + 5**2 + 9**2
    assert found.mean == pytest.approx(100 * (hits[0] - hits[1]) / 110)
    assert found.low < found.mean < found.high


def test_a_heavy_query_outweighs_a_light_one_in_every_resample():
    found = compare(score([10, 0], weights=[3, 1]), score([0, 0], weights=[3, 1]), confidence=0.4)
    assert found.mean == 7.5
    assert (found.low, found.high) == (7.5, 7.5)


def test_the_interval_holds_the_true_difference_about_as_often_as_it_says():
    rng = np.random.default_rng(7)
    held = 0
    for seed in range(300):
        second = rng.uniform(20, 60, 60)
        first = second + rng.normal(2, 8, 60)
        found = compare(score(first), score(second), seed=seed)
        held += found.low <= 2 <= found.high
    assert 0.88 <= held / 300 <= 0.99


def test_many_queries_are_resampled_in_blocks_to_the_same_interval(monkeypatch):
    first, second = random_pair(8)
    whole = compare(first, second)
    monkeypatch.setattr("manifind.evaluation.protocols._NUMBERS_PER_BLOCK", 1000)
    assert compare(first, second) == whole


def test_real_scores_of_two_rankings_can_be_compared():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, 30)
    good = np.stack([np.argsort(labels != label, kind="stable") for label in labels])
    poor = np.stack([rng.permutation(30) for _ in labels])
    for a, b in zip(evaluate_labels(good, labels), evaluate_labels(poor, labels), strict=True):
        found = compare(a, b)
        assert 0 < found.low < found.mean < found.high


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95, float("nan")])
def test_a_confidence_that_is_no_share_is_refused(confidence):
    first, second = random_pair(0)
    with pytest.raises(InputError, match=rf"confidence = {confidence}; expected .* between 0 and 1"):
        compare(first, second, confidence)


@pytest.mark.parametrize(("name", "other"), [("measure", "P@1"), ("rule", "another rule")])
def test_scores_counted_differently_are_refused_with_both_names(name, other):
    first, second = random_pair(0)
    with pytest.raises(InputError) as refusal:
        compare(first, second._replace(**{name: other}))
    assert f"the {name} of one score is {getattr(first, name)!r}" in refusal.value.problem
    assert repr(other) in refusal.value.problem
    assert "same rule" in refusal.value.hint


@pytest.mark.parametrize("swapped", [False, True])
def test_a_cut_ranking_is_not_compared_with_a_whole_one(swapped):
    ids, labels = np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]]), [0, 0, 0]
    pair = [evaluate_labels(one, labels)[0] for one in (ids, ids[:, :2])]
    with pytest.raises(InputError, match="cut at 1, the other is whole") as refusal:
        compare(*(pair[::-1] if swapped else pair))
    assert "same length" in refusal.value.hint


def test_rankings_cut_to_nothing_are_refused_with_their_length():
    ids = np.array([[0, 1], [1, 0]])
    nothing, whole = (evaluate_labels(one, [0, 0])[0] for one in (ids[:, :0], ids))
    with pytest.raises(InputError, match="cut at 0"):
        compare(nothing, whole)


def test_two_cut_rankings_are_compared():
    labels, rankings = [0, 0, 1, 1], ([[1, 2], [2, 0], [3, 0], [0, 1]], [[2, 3], [0, 2], [3, 0], [2, 0]])
    first, second = (evaluate_labels(np.array(ids), labels)[0] for ids in rankings)
    assert first.cut == second.cut == 2
    assert compare(first, second).mean == pytest.approx((100 + 50 + 100 + 0) / 4 - (0 + 100 + 100 + 100) / 4)


@pytest.mark.parametrize(
    "other", [score([1, 2, np.nan]), score([1, 2]), score([1, 2, 3, 4]), score([1, 2, 3], weights=[1, 1, 2])]
)
def test_scores_over_other_queries_are_refused(other):
    with pytest.raises(InputError, match=f"different queries .3 and {other.n_queries} that count"):
        compare(score([1, 2, 3]), other)
