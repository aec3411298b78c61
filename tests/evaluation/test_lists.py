"""Scores against published lists equal the definitions, walked down item by item."""

import itertools

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from evaluation.drawn import (
    CLASSIC_ROLES,
    REVISITED_ROLES,
    Lists,
    assert_equal_to_loops,
    lists,
    padded,
    published,
    values,
)
from manifind.evaluation.protocols import evaluate_lists
from manifind.evaluation.relevance import landmark_queries
from reference.scores import (
    landmarks_by_loops,
    levels_by_loops,
    oxford_ap_by_walking,
    precision_by_walking,
    recall_by_walking,
    revisited_precision_by_walking,
    trec_ap_by_walking,
)

CUTOFFS = (1, 3, 20)


def assert_all_measures(scores, rankings, right, ignored):
    """mAP by trapezoids and P@k, R@k equal the loops."""
    named = {score.measure: score for score in scores}
    assert list(named) == ["mAP", *(f"P@{k}" for k in CUTOFFS), *(f"R@{k}" for k in CUTOFFS)]
    asked = list(zip(rankings, right, ignored, strict=True))
    assert_equal_to_loops(named["mAP"], [oxford_ap_by_walking(*one) for one in asked])
    for k in CUTOFFS:
        assert_equal_to_loops(named[f"P@{k}"], [precision_by_walking(*one, k) for one in asked])
        assert_equal_to_loops(named[f"R@{k}"], [recall_by_walking(*one, k) for one in asked])


@given(problem=lists(CLASSIC_ROLES), beyond=st.integers(0, 2))
def test_classic_scores_equal_the_loops(problem, beyond):
    assume(any(problem.lists["ok"]))
    scores = evaluate_lists(padded(problem.rankings, beyond), problem.truth, cutoffs=CUTOFFS)
    right, junk = (list(map(set, problem.lists[name])) for name in ("ok", "junk"))
    assert_all_measures(scores, problem.rankings, right, junk)


@given(problem=lists(REVISITED_ROLES), beyond=st.integers(0, 2))
def test_revisited_scores_equal_the_loops_at_every_level(problem, beyond):
    easy, hard, junk = (problem.lists[name] for name in ("easy", "hard", "junk"))
    assume(any(easy) and any(hard))
    scores = evaluate_lists(padded(problem.rankings, beyond), problem.truth, cutoffs=CUTOFFS)
    named = {score.measure: score for score in scores}
    levels = ("easy", "medium", "hard")
    assert list(named) == [f"{name} {level}" for level in levels for name in ("mAP", "mP@1", "mP@3", "mP@20")]
    for level in levels:
        asked = [
            (ranking, *levels_by_loops(*three, level))
            for ranking, *three in zip(problem.rankings, easy, hard, junk, strict=True)
        ]
        assert_equal_to_loops(named[f"mAP {level}"], [oxford_ap_by_walking(*one) for one in asked])
        for k in CUTOFFS:
            expected = [revisited_precision_by_walking(*one, k) for one in asked]
            assert_equal_to_loops(named[f"mP@{k} {level}"], expected)


@st.composite
def landmark_problems(draw):
    """Official queries of up to three landmarks, some asked for more than once, and a ranking per image."""
    kinds = draw(lists(CLASSIC_ROLES))
    several = draw(st.lists(st.integers(0, len(kinds.rankings) - 1), min_size=1, max_size=6))
    several.sort(key=kinds.lists["ok"].__getitem__)  # the queries of a landmark follow each other
    by_name = {name: [kinds.lists[name][one] for one in several] for name in ("ok", "junk")}
    asked = landmarks_by_loops(by_name["ok"], by_name["junk"])
    assume(asked)
    rankings = [draw(st.permutations(range(kinds.n)))[: draw(st.integers(0, kinds.n)) or kinds.n] for _ in asked]
    return Lists(kinds.n, rankings, by_name)


@given(problem=landmark_problems())
def test_landmark_scores_equal_the_loops_in_the_documented_order(problem):
    asked = landmarks_by_loops(problem.lists["ok"], problem.lists["junk"])
    queries, right, ignored = zip(*asked, strict=True)
    assert landmark_queries(problem.truth).tolist() == list(queries)
    scores = evaluate_lists(padded(problem.rankings), problem.truth, protocol="landmarks", cutoffs=CUTOFFS)
    assert_all_measures(scores, problem.rankings, right, ignored)


def test_landmarks_stand_in_the_order_of_their_first_queries():
    truth = published(4, {"ok": [[2, 3], [0, 1], [2, 3]], "junk": [[0], [2], [1]]})
    assert landmark_queries(truth).tolist() == [2, 3, 0, 1]


def every_pattern():
    """Every order of right, wrong and junk items up to six ranks, with 0, 1 or 2 right ones not ranked."""
    for length, missing in itertools.product(range(7), range(3)):
        for pattern in itertools.product(CLASSIC_ROLES, repeat=length):
            if missing or "ok" in pattern:
                yield [*pattern, *["ok"] * missing], length


def test_trapezoids_equal_compute_ap_for_every_pattern_of_up_to_six_ranks():
    patterns = list(every_pattern())
    by_name = {name: [np.flatnonzero(np.array(p) == name) for p, _ in patterns] for name in ("ok", "junk")}
    rankings = [list(range(length)) for _, length in patterns]
    scores = evaluate_lists(padded(rankings), published(8, by_name), cutoffs=CUTOFFS)
    right, junk = ([set(one.tolist()) for one in by_name[name]] for name in ("ok", "junk"))
    assert_all_measures(scores, rankings, right, junk)
    rectangles = map(trec_ap_by_walking, rankings, right, junk)
    differing = sum(abs(a - b) > 1e-9 for a, b in zip(values(scores[0]), rectangles, strict=True))
    assert differing > len(patterns) / 2, "the patterns hardly tell trapezoids from rectangles"


@given(problem=lists(CLASSIC_ROLES), distractors=st.integers(1, 5), seed=st.integers(0, 99))
def test_distractors_are_wrong_wherever_they_stand(problem, distractors, seed):
    assume(any(problem.lists["ok"]))
    rng = np.random.default_rng(seed)
    rankings = []
    for ranking in problem.rankings:
        mixed = [*ranking, *range(problem.n, problem.n + distractors)]
        rankings.append(rng.permutation(mixed).tolist())
    scores = evaluate_lists(padded(rankings), problem.truth, cutoffs=CUTOFFS, distractors=distractors)
    right, junk = (list(map(set, problem.lists[name])) for name in ("ok", "junk"))
    assert_all_measures(scores, rankings, right, junk)


@given(problem=lists(CLASSIC_ROLES))
def test_lists_that_do_not_name_the_whole_database_give_the_same_values(problem):
    assume(any(problem.lists["ok"]))
    ids = padded(problem.rankings)
    whole = evaluate_lists(ids, problem.truth, cutoffs=CUTOFFS)
    for part in (problem.truth._replace(is_whole=False), problem.truth._replace(images=None)):
        for a, b in zip(whole, evaluate_lists(ids, part, cutoffs=CUTOFFS), strict=True):
            np.testing.assert_array_equal(a.per_query, b.per_query)


def test_seven_queries_over_a_hundred_thousand_images_equal_the_loops():
    n, m, rng = 100_000, 7, np.random.default_rng(0)
    ids = np.stack([rng.permutation(n) for _ in range(m)])
    chosen = [rng.choice(n, size=600, replace=False) for _ in range(m)]
    by_name = {"ok": [np.sort(c[:200]) for c in chosen], "junk": [np.sort(c[200:]) for c in chosen]}
    scores = evaluate_lists(ids, published(n, by_name), cutoffs=(1000,))
    for query in (0, 3, 6):
        one = ids[query].tolist(), *(set(by_name[name][query].tolist()) for name in ("ok", "junk"))
        expected = [oxford_ap_by_walking(*one), precision_by_walking(*one, 1000), recall_by_walking(*one, 1000)]
        np.testing.assert_allclose([score.per_query[query] / 100 for score in scores], expected, atol=1e-12)
