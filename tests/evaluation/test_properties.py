"""What every score must obey, whatever the ranking."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evaluation.drawn import CLASSIC_ROLES, REVISITED_ROLES, every_item_asked, labelled, lists, padded, published
from manifind.evaluation.protocols import bullseye, evaluate_labels, evaluate_lists

CUTOFFS = (1, 2, 5)
RULES = ("counted", "left-out", "left-out-others")


@st.composite
def any_lists(draw):
    """Classic or revisited lists that every level can be scored by."""
    problem = draw(st.one_of(lists(CLASSIC_ROLES), lists(REVISITED_ROLES)))
    assume(all(any(each) for name, each in problem.lists.items() if name != "junk"))
    return problem


def scores_of(problem, rankings=None):
    return evaluate_lists(padded(rankings or problem.rankings), problem.truth, cutoffs=CUTOFFS)


def assert_same_values(scores, others):
    for a, b in zip(scores, others, strict=True):
        assert a.measure == b.measure
        np.testing.assert_allclose(a.per_query, b.per_query, rtol=0, atol=1e-10, err_msg=a.measure)
        np.testing.assert_array_equal(a.weights, b.weights)


def assert_sound(score):
    """Values in percent; the score is their weighted mean; who weighs nothing has no value."""
    counts = ~np.isnan(score.per_query)
    np.testing.assert_array_equal(score.weights > 0, counts)
    assert (score.weights >= 0).all()
    assert (score.per_query[counts] >= 0).all()
    assert (score.per_query[counts] <= 100 + 1e-12).all()
    mean = (score.per_query * score.weights)[counts].sum() / score.weights.sum()
    assert score.value == pytest.approx(mean, abs=1e-10)
    assert score.n_queries == counts.sum()


@given(problem=any_lists())
def test_scores_over_lists_are_weighted_means_of_percentages(problem):
    for score in scores_of(problem):
        assert_sound(score)
        assert set(score.weights.tolist()) <= {0.0, 1.0}


@given(problem=every_item_asked(), window=st.integers(1, 9), rule=st.sampled_from(RULES))
def test_scores_over_labels_are_weighted_means_of_percentages(problem, window, rule):
    assume(len(set(problem.labels)) < len(problem.labels))
    ids = np.array(problem.rankings)
    for score in [*evaluate_labels(ids, problem.labels), bullseye(ids, problem.labels, window, rule)]:
        assert_sound(score)


ORDERS = {
    "mAP": ("ok", "junk", "wrong"),
    "mAP easy": ("easy", "hard", "junk", "wrong"),
    "mAP medium": ("hard", "easy", "junk", "wrong"),
    "mAP hard": ("hard", "easy", "junk", "wrong"),
}


def ordered(problem, roles):
    """A ranking per query in which the roles follow each other."""
    rankings = []
    for query in range(len(problem.rankings)):
        named = {name: each[query] for name, each in problem.lists.items()}
        judged = [item for one in named.values() for item in one]
        named["wrong"] = [item for item in range(problem.n) if item not in judged]
        rankings.append([item for role in roles for item in named[role]])
    return rankings


@given(problem=any_lists())
def test_right_ones_first_score_100(problem):
    for name in [score.measure for score in scores_of(problem) if score.measure in ORDERS]:
        scores = {s.measure: s for s in scores_of(problem, ordered(problem, ORDERS[name]))}
        assert scores[name].value == pytest.approx(100)
        level = name.removeprefix("mAP")
        if level:
            for k in CUTOFFS:
                assert scores[f"mP@{k}{level}"].value == pytest.approx(100)
        else:
            assert scores["P@1"].value == 100


@given(problem=any_lists())
def test_right_ones_last_score_as_little_as_any_full_ranking_can(problem):
    full = [[*ranking, *(item for item in range(problem.n) if item not in ranking)] for ranking in problem.rankings]
    for score in [score for score in scores_of(problem, full) if score.measure in ORDERS]:
        last = ordered(problem, ORDERS[score.measure][::-1])
        worst = {s.measure: s for s in scores_of(problem, last)}[score.measure]
        counts = score.weights > 0
        assert (worst.per_query <= score.per_query + 1e-10)[counts].all()


def test_perfect_rankings_reach_the_ceiling_of_every_measure_over_labels():
    labels = np.repeat([0, 1, 2], [4, 2, 6])
    ids = np.stack([np.argsort(labels != label, kind="stable") for label in labels])
    scores = {score.measure: score.value for score in evaluate_labels(ids, labels, cutoffs=(1, 5))}
    assert scores["mAP"] == scores["P@1"] == scores["R@5"] == pytest.approx(100)
    assert bullseye(ids, labels, 6, "counted").value == 100
    assert bullseye(ids, labels, 5, "left-out-others").value == 100
    assert bullseye(ids, labels, 12, "left-out").value == pytest.approx(100 * (4 * 3 + 2 * 1 + 6 * 5) / 56)


@pytest.mark.parametrize("size", [2, 3, 20])
def test_leaving_the_query_out_but_dividing_by_the_class_size_has_a_ceiling_below_100(size):
    labels = np.repeat([0, 1], size)
    ids = np.stack([np.argsort(labels != label, kind="stable") for label in labels])
    assert bullseye(ids, labels, 2 * size, "left-out").value == pytest.approx(100 * (size - 1) / size)


@given(problem=lists(CLASSIC_ROLES), data=st.data())
def test_moving_a_right_item_up_never_lowers_average_precision(problem, data):
    query = data.draw(st.integers(0, len(problem.rankings) - 1))
    right, ranking = problem.lists["ok"][query], problem.rankings[query]
    places = [place for place, item in enumerate(ranking) if place and item in right]
    assume(places)
    place = data.draw(st.sampled_from(places))
    target = data.draw(st.integers(0, place - 1))
    better = [item for item in ranking if item != ranking[place]]
    better.insert(target, ranking[place])
    moved = [*problem.rankings[:query], better, *problem.rankings[query + 1 :]]
    for before, after in zip(scores_of(problem), scores_of(problem, moved), strict=True):
        assert after.per_query[query] >= before.per_query[query] - 1e-10, after.measure


@given(problem=any_lists(), data=st.data())
def test_the_numbers_of_the_items_do_not_matter(problem, data):
    new = data.draw(st.permutations(range(problem.n)))
    renumbered = problem._replace(
        rankings=[[new[item] for item in ranking] for ranking in problem.rankings],
        lists={name: [sorted(new[item] for item in one) for one in each] for name, each in problem.lists.items()},
    )
    assert_same_values(scores_of(problem), scores_of(renumbered))


@given(problem=every_item_asked(), window=st.integers(1, 9), rule=st.sampled_from(RULES), data=st.data())
def test_the_numbers_of_labelled_items_do_not_matter(problem, window, rule, data):
    n = len(problem.labels)
    assume(len(set(problem.labels)) < n)
    new = np.array(data.draw(st.permutations(range(n))))
    old = np.argsort(new)
    ids, labels = np.array(problem.rankings), np.array(problem.labels)
    renumbered, new_labels = new[ids[old]], labels[old]
    before = [*evaluate_labels(ids, labels), bullseye(ids, labels, window, rule)]
    after = [*evaluate_labels(renumbered, new_labels), bullseye(renumbered, new_labels, window, rule)]
    back = [score._replace(per_query=score.per_query[new], weights=score.weights[new]) for score in after]
    assert_same_values(before, back)


@given(problem=any_lists())
def test_taking_junk_out_of_the_rankings_by_hand_changes_nothing(problem):
    without = [
        [item for item in ranking if item not in junk]
        for ranking, junk in zip(problem.rankings, problem.lists["junk"], strict=True)
    ]
    assert_same_values(scores_of(problem), scores_of(problem, without))


@given(problem=lists(CLASSIC_ROLES), data=st.data())
def test_putting_junk_anywhere_changes_nothing(problem, data):
    assume(any(problem.lists["ok"]))
    rankings = []
    for ranking, junk in zip(problem.rankings, problem.lists["junk"], strict=True):
        mixed = [item for item in ranking if item not in junk]
        for item in junk:
            mixed.insert(data.draw(st.integers(0, len(mixed))), item)
        rankings.append(mixed)
    assert_same_values(scores_of(problem), scores_of(problem, rankings))


@given(problem=any_lists())
def test_wrong_items_behind_the_last_change_no_average_precision(problem):
    def is_wrong(item, query):
        return not any(item in each[query] for each in problem.lists.values())

    longer = [
        [*ranking, *(i for i in range(problem.n) if i not in ranking and is_wrong(i, query))]
        for query, ranking in enumerate(problem.rankings)
    ]
    before = [score for score in scores_of(problem) if "mAP" in score.measure]
    after = [score for score in scores_of(problem, longer) if "mAP" in score.measure]
    assert_same_values(before, after)


@given(problem=lists(CLASSIC_ROLES))
def test_the_whole_is_the_mean_of_the_queries_scored_alone(problem):
    assume(all(problem.lists["ok"]))
    together = scores_of(problem)
    for query, ranking in enumerate(problem.rankings):
        alone = problem._replace(
            rankings=[ranking], lists={name: [each[query]] for name, each in problem.lists.items()}
        )
        for whole, one in zip(together, scores_of(alone), strict=True):
            assert one.value == pytest.approx(whole.per_query[query], abs=1e-10)


@given(problem=labelled(full=True), data=st.data())
def test_the_place_of_the_query_in_its_own_ranking_changes_nothing(problem, data):
    assume(any(problem.labels.count(problem.labels[query]) > 1 for query in problem.query_items))
    moved = []
    for query, ranking in zip(problem.query_items, problem.rankings, strict=True):
        others = [item for item in ranking if item != query]
        if data.draw(st.booleans()):
            others.insert(data.draw(st.integers(0, len(others))), query)
        moved.append(others)
    before, after = (
        evaluate_labels(padded(rankings), problem.labels, query_items=problem.query_items)
        for rankings in (problem.rankings, moved)
    )
    assert_same_values(before, after)
    assert [score.rule for score in before] == [score.rule for score in after]


@given(problem=every_item_asked(), window=st.integers(1, 9), rule=st.sampled_from(RULES), data=st.data())
def test_the_place_of_the_query_does_not_change_the_bullseye(problem, window, rule, data):
    assume(len(set(problem.labels)) < len(problem.labels))
    moved = []
    for query, ranking in enumerate(problem.rankings):
        others = [item for item in ranking if item != query]
        others.insert(data.draw(st.integers(0, len(others))), query)
        moved.append(others)
    before, after = (bullseye(np.array(r), problem.labels, window, rule) for r in (problem.rankings, moved))
    assert_same_values([before], [after])


@given(problem=lists(CLASSIC_ROLES))
def test_queries_without_hard_images_score_the_same_at_easy_medium_and_under_the_classic_rule(problem):
    easy, junk = problem.lists["ok"], problem.lists["junk"]
    assume(any(easy))
    nothing_hard = [[] for _ in easy]
    truth = published(
        problem.n, {"easy": [*easy, []], "hard": [*nothing_hard, [0]], "junk": [*junk, []]}
    )  # the query behind them only gives the hard level something to score
    scores = {s.measure: s for s in evaluate_lists(padded([*problem.rankings, [0]]), truth)}
    expected = scores_of(problem)[0].per_query
    np.testing.assert_array_equal(scores["mAP easy"].per_query[:-1], expected)
    np.testing.assert_array_equal(scores["mAP medium"].per_query[:-1], expected)
    assert np.isnan(scores["mAP hard"].per_query[:-1]).all()
