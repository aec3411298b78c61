"""Small rankings whose scores are worked out as fractions; they tell well-known faults from the definitions."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from evaluation.drawn import padded, published
from manifind.evaluation.protocols import bullseye, evaluate_labels, evaluate_lists
from reference.scores import (
    bullseye_by_walking,
    faulty_ap_over_the_found,
    faulty_ap_with_junk_left_in,
    faulty_ap_with_precision_one_before_the_first,
    faulty_bullseye_with_the_query_twice,
    faulty_label_ap_with_the_query_in_it,
    faulty_trec_ap_over_the_found,
    oxford_ap_by_walking,
    same_label_by_loops,
    trec_ap_by_walking,
)

F = Fraction


class Case(NamedTuple):
    """One query over eight images; area: its AP by trapezoids, faulty: under faults a (early), b and d."""

    ranking: list[int]
    right: set[int]
    junk: set[int]
    area: F
    faulty: tuple[F, F, F]


CASES = {
    "first right one second, junk ahead of it, one right one not ranked": Case(
        [0, 1, 2, 4, 3, 5, 6],  # without junk 1 2 3 5 6: right ones at ranks 1 and 3 of three
        {2, 5, 7},
        {0, 4},
        F(1, 3) * ((F(0, 1) + F(1, 2)) / 2 + (F(1, 3) + F(2, 4)) / 2),  # 2/9
        (
            F(1, 3) * ((1 + F(1, 2)) / 2 + (F(1, 3) + F(2, 4)) / 2),  # 7/18
            F(1, 3) * ((F(0, 2) + F(1, 3)) / 2 + (F(1, 5) + F(2, 6)) / 2),  # 13/90
            F(1, 2) * ((F(0, 1) + F(1, 2)) / 2 + (F(1, 3) + F(2, 4)) / 2),  # 1/3
        ),
    ),
    "right one first once junk is gone": Case(
        [4, 2, 1, 5, 0, 3],  # without junk 2 1 5 0 3: ranks 0 and 2 of two
        {2, 5},
        {4},
        F(1, 2) * ((1 + F(1, 1)) / 2 + (F(1, 2) + F(2, 3)) / 2),  # 19/24
        (
            F(1, 2) * ((1 + F(1, 1)) / 2 + (F(1, 2) + F(2, 3)) / 2),
            F(1, 2) * ((F(0, 1) + F(1, 2)) / 2 + (F(1, 3) + F(2, 4)) / 2),  # 1/3
            F(1, 2) * ((1 + F(1, 1)) / 2 + (F(1, 2) + F(2, 3)) / 2),
        ),
    ),
    "the only right one last": Case(
        [0, 1, 2, 3],
        {3},
        set(),
        (F(0, 3) + F(1, 4)) / 2,  # 1/8
        ((1 + F(1, 4)) / 2, F(1, 8), F(1, 8)),
    ),
    "right ones first, most of them not ranked": Case(
        [6, 7],
        {4, 5, 6, 7},
        set(),
        F(1, 4) * (1 + (F(1, 1) + F(2, 2)) / 2),  # 1/2
        (F(1, 2), F(1, 2), F(1)),
    ),
    "nothing found": Case([0, 1], {5}, {1}, F(0), (F(0), F(0), F(0))),
}


def score_of(case, cutoffs=()):
    truth = published(8, {"ok": [sorted(case.right)], "junk": [sorted(case.junk)]})
    return evaluate_lists(np.array([case.ranking]), truth, cutoffs=cutoffs)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_average_precision_by_trapezoids(case):
    assert score_of(case)[0].value == pytest.approx(100 * float(case.area), abs=1e-10)
    assert oxford_ap_by_walking(case.ranking, case.right, case.junk) == pytest.approx(float(case.area))


def test_all_cases_at_once_have_the_mean_of_their_fractions():
    cases = CASES.values()
    truth = published(8, {"ok": [sorted(c.right) for c in cases], "junk": [sorted(c.junk) for c in cases]})
    score = evaluate_lists(padded([c.ranking for c in cases]), truth)[0]
    assert score.value == pytest.approx(100 * float(sum(c.area for c in cases) / len(CASES)), abs=1e-10)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_fractions_of_the_faulty_evaluators_are_theirs(case):
    evaluators = (faulty_ap_with_precision_one_before_the_first, faulty_ap_with_junk_left_in, faulty_ap_over_the_found)
    found = [evaluator(case.ranking, case.right, case.junk) for evaluator in evaluators]
    assert found == pytest.approx([float(value) for value in case.faulty])


def test_each_fault_of_average_precision_is_seen_by_the_first_case_alone():
    case = next(iter(CASES.values()))
    assert len({case.area, *case.faulty}) == 4


def test_precision_before_the_first_right_one_is_zero_unless_it_is_first():
    case = CASES["the only right one last"]
    assert score_of(case)[0].value == pytest.approx(100 / 8)
    assert faulty_ap_with_precision_one_before_the_first(case.ranking, case.right, case.junk) == 5 / 8


def test_precision_and_recall_at_k():
    case = CASES["first right one second, junk ahead of it, one right one not ranked"]
    scores = {score.measure: score.value for score in score_of(case, (1, 2, 4, 10))}
    expected = {
        "P@1": F(0, 1),
        "P@2": F(1, 2),
        "P@4": F(2, 4),
        "P@10": F(2, 10),  # five are left in the ranking; the other five places are wrong
        "R@1": F(0, 3),
        "R@2": F(1, 3),
        "R@4": F(2, 3),
        "R@10": F(2, 3),
    }
    for measure, value in expected.items():
        assert scores[measure] == pytest.approx(100 * float(value)), measure


def test_revisited_levels():
    truth = published(7, {"easy": [[0, 1]], "hard": [[2, 3]], "junk": [[4]]})
    scores = evaluate_lists(np.array([[4, 2, 5, 0, 6, 1, 3]]), truth, cutoffs=(1, 3, 10))
    expected = {
        # 5 0 6 1: ranks 1 and 3
        "mAP easy": F(1, 2) * ((F(0, 1) + F(1, 2)) / 2 + (F(1, 3) + F(2, 4)) / 2),
        "mP@1 easy": F(0, 1),
        "mP@3 easy": F(1, 3),
        "mP@10 easy": F(2, 4),  # the last right one is fourth
        # 2 5 0 6 1 3: ranks 0, 2, 4 and 5
        "mAP medium": F(1, 4)
        * ((1 + F(1, 1)) / 2 + (F(1, 2) + F(2, 3)) / 2 + (F(2, 4) + F(3, 5)) / 2 + (F(3, 5) + F(4, 6)) / 2),
        "mP@1 medium": F(1, 1),
        "mP@3 medium": F(2, 3),
        "mP@10 medium": F(4, 6),
        # 2 5 6 3: ranks 0 and 3
        "mAP hard": F(1, 2) * ((1 + F(1, 1)) / 2 + (F(1, 3) + F(2, 4)) / 2),
        "mP@1 hard": F(1, 1),
        "mP@3 hard": F(1, 3),
        "mP@10 hard": F(2, 4),
    }
    assert [score.measure for score in scores] == list(expected)
    for score in scores:
        assert score.value == pytest.approx(100 * float(expected[score.measure])), score.measure


def test_revisited_precision_is_shortened_to_the_last_right_one_that_is_found():
    truth = published(6, {"easy": [[0, 1, 2]], "hard": [[]], "junk": [[]]})
    scores = evaluate_lists(np.array([[0, 1, 4]]), published(6, {**truth.lists, "hard": [[5]]}), cutoffs=(10,))
    assert scores[1].measure == "mP@10 easy"
    assert scores[1].value == 100, "two of the first two: the third right one is not ranked"


def test_landmark_protocol():
    truth = published(6, {"ok": [[0, 1, 3], [0, 1, 3], [5]], "junk": [[2], [2], []]})
    rankings = [
        [0, 2, 4, 1, 5, 3],  # 4 1 5 3: ranks 1 and 3 of two
        [1, 0, 3, 2, 4, 5],  # 0 3 4 5: perfect
        [4, 3, 2, 1, 5],  # 4 1 5: rank 1 of two
    ]
    score = evaluate_lists(padded(rankings), truth, protocol="landmarks")[0]
    expected = [
        F(1, 2) * ((F(0, 1) + F(1, 2)) / 2 + (F(1, 3) + F(2, 4)) / 2),
        F(1),
        F(1, 2) * ((F(0, 1) + F(1, 2)) / 2),
    ]
    assert score.per_query.tolist() == pytest.approx([100 * float(value) for value in expected])


LABELS = ["cat", "cat", "cat", "dog", "dog", "owl"]
ANSWERS = [
    [3, 0, 1, 4, 5, 2],  # without the query 3 1 4 5 2: second and fifth of two
    [3, 0],  # second of two; the other cat is not ranked
    [0, 1, 2, 3, 4, 5],
    [5, 4, 3],
    [3],
    [0, 5],  # the only owl has nothing to find
]
LABEL_AP = [F(1, 2) * (F(1, 2) + F(2, 5)), F(1, 2) * F(1, 2), F(1, 2) * (F(1, 1) + F(2, 2)), F(1, 1) * F(1, 2), F(1, 1)]


def test_average_precision_over_labels():
    score = evaluate_labels(padded(ANSWERS), LABELS)[0]
    assert score.per_query[:5].tolist() == pytest.approx([100 * float(value) for value in LABEL_AP])
    assert np.isnan(score.per_query[5])
    assert score.weights.tolist() == [1, 1, 1, 1, 1, 0]
    assert score.n_queries == 5
    assert score.value == pytest.approx(100 * float(sum(LABEL_AP) / 5))


def test_faulty_evaluators_give_other_average_precisions_over_labels():
    right, ignored = same_label_by_loops(LABELS, 0)
    assert trec_ap_by_walking(ANSWERS[0], right, ignored) == pytest.approx(float(LABEL_AP[0]))
    with_query = F(1, 3) * (F(1, 2) + F(2, 3) + F(3, 6))
    assert faulty_label_ap_with_the_query_in_it(ANSWERS[0], 0, LABELS) == pytest.approx(float(with_query))
    assert with_query != LABEL_AP[0]
    over_found = faulty_trec_ap_over_the_found(ANSWERS[1], *same_label_by_loops(LABELS, 1))
    assert over_found == 1 / 2 != float(LABEL_AP[1])


def test_average_precision_over_labels_of_queries_from_outside_keeps_every_item():
    score = evaluate_labels(np.array([[3, 0, 1], [4, 0, 3]]), LABELS, query_labels=["cat", "dog"])[0]
    expected = [F(1, 3) * (F(1, 2) + F(2, 3)), F(1, 2) * (F(1, 1) + F(2, 3))]
    assert score.per_query.tolist() == pytest.approx([100 * float(value) for value in expected])


SHAPES = [0, 0, 0, 1, 1]
SHAPE_RANKINGS = [[0, 3, 1, 2, 4], [1, 0, 2, 3, 4], [3, 2, 4, 0, 1], [3, 0, 4, 1, 2], [4, 3, 0, 1, 2]]
BULLSEYES = {
    # the query, then 3 1 | 0 2 | 3 4 | 0 4 | 3 0
    "counted": ([2, 3, 1, 2, 2], [3, 3, 3, 2, 2]),
    # 3 1 2 | 0 2 3 | 3 4 0 | 0 4 1 | 3 0 1
    "left-out": ([2, 2, 1, 1, 1], [3, 3, 3, 2, 2]),
    "left-out-others": ([2, 2, 1, 1, 1], [2, 2, 2, 1, 1]),
}


@pytest.mark.parametrize("rule", BULLSEYES)
def test_bullseye(rule):
    score = bullseye(np.array(SHAPE_RANKINGS), SHAPES, 3, rule)
    hits, possible = BULLSEYES[rule]
    assert score.per_query.tolist() == pytest.approx([100 * h / p for h, p in zip(hits, possible, strict=True)])
    assert score.value == pytest.approx(100 * float(F(sum(hits), sum(possible))))
    walked = [bullseye_by_walking(r, q, SHAPES, 3, rule) for q, r in enumerate(SHAPE_RANKINGS)]
    assert walked == list(zip(hits, possible, strict=True))


def test_a_bullseye_that_counts_the_query_twice_gives_another_number():
    twice = [faulty_bullseye_with_the_query_twice(r, q, SHAPES, 3) for q, r in enumerate(SHAPE_RANKINGS)]
    assert [hits for hits, _ in twice] == [2, 3, 2, 2, 3]
    assert F(sum(hits for hits, _ in twice), 13) == F(12, 13) != F(10, 13)


def test_the_counted_bullseye_finds_the_query_even_where_its_ranking_lacks_it():
    last = [[i for i in row if i != query] + [query] for query, row in enumerate(SHAPE_RANKINGS)]
    without = [row[:-1] for row in last]
    for ids in (last, without):
        assert bullseye(np.array(ids), SHAPES, 3).value == pytest.approx(100 * 10 / 13)
    assert bullseye(np.array(SHAPE_RANKINGS), SHAPES, 1).value == pytest.approx(100 * 5 / 13)
