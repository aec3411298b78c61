"""The words of a score's rule say what was counted, and only what was."""

import numpy as np
import pytest

from evaluation.drawn import padded, published
from manifind.evaluation.measures import QUERIES
from manifind.evaluation.protocols import bullseye, evaluate_labels, evaluate_lists, mean_average_precision

LABELS = [0, 0, 0, 1, 1, 1]
FULL = [np.roll(np.arange(6), -i).tolist() for i in range(6)]
CUT = [row[:4] for row in FULL]
CLASSIC = published(6, {"ok": [[0, 1], [0, 1], [2, 3]], "junk": [[5], [5], []]})
REVISITED = published(6, {"easy": [[0, 1]], "hard": [[2]], "junk": [[5]]})


def scores_under_every_rule(queries="not stated"):
    ids = np.array(FULL)
    return [
        *evaluate_labels(ids, LABELS, queries=queries),
        *evaluate_labels(ids, LABELS, query_labels=LABELS, queries=queries),
        mean_average_precision(ids, LABELS, queries=queries),
        *(bullseye(ids, LABELS, 3, rule, queries=queries) for rule in ("counted", "left-out", "left-out-others")),
        *evaluate_lists(ids[:3], CLASSIC, queries=queries),
        *evaluate_lists(ids[:4], CLASSIC, queries=queries, protocol="landmarks"),
        *evaluate_lists(ids[:1], REVISITED, queries=queries),
    ]


@pytest.mark.parametrize("queries", QUERIES)
def test_where_the_queries_were_is_carried_into_every_score(queries):
    assert {score.queries for score in scores_under_every_rule(queries)} == {queries}


def test_nothing_is_stated_about_the_queries_unless_somebody_states_it():
    assert mean_average_precision(np.array(FULL), LABELS).queries == "not stated"


def test_full_rankings_are_not_called_cut():
    assert [score.measure for score in scores_under_every_rule() if score.cut is not None] == []


def test_every_rule_says_what_is_right_and_how_it_is_counted():
    for score in scores_under_every_rule():
        judged, counted = score.rule.split("; ")
        assert "right" in judged
        assert counted


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda ids: evaluate_labels(ids, LABELS),
        lambda ids: evaluate_labels(ids, LABELS, query_labels=LABELS),
        lambda ids: evaluate_lists(ids[:3], CLASSIC),
        lambda ids: evaluate_lists(ids[:4], CLASSIC, protocol="landmarks"),
        lambda ids: evaluate_lists(ids[:1], REVISITED),
    ],
    ids=["labels", "labels of queries", "classic", "landmarks", "revisited"],
)
def test_cut_rankings_are_called_so_under_every_measure_and_the_rule_stays_the_same(evaluate):
    for full, cut in zip(evaluate(np.array(FULL)), evaluate(np.array(CUT)), strict=True):
        assert full.cut is None
        assert cut.cut in (1, 2, 3, 4)
        assert cut.rule == full.rule


def test_the_cut_is_the_shortest_ranking_without_what_is_ignored():
    ragged = [FULL[0], [1, 2, 3, 0], FULL[2], FULL[3], FULL[4], FULL[5]]
    assert evaluate_labels(padded(ragged), LABELS)[0].cut == 3
    assert evaluate_labels(padded(ragged), LABELS, query_labels=LABELS)[0].cut == 4
    assert evaluate_lists(padded([FULL[0], [1, 2, 3, 4, 5], FULL[2]]), CLASSIC)[0].cut == 4


def test_a_ranking_that_lacks_only_what_is_ignored_is_full():
    without_query = [[item for item in row if item != query] for query, row in enumerate(FULL)]
    assert evaluate_labels(np.array(without_query), LABELS)[0].cut is None
    without_junk = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], FULL[2]]
    assert evaluate_lists(padded(without_junk), CLASSIC)[0].cut is None


def test_rankings_without_the_distractors_are_cut():
    assert evaluate_lists(np.array(FULL[:3]), CLASSIC, distractors=2)[0].cut == 5


def test_nobody_knows_whether_rankings_of_a_database_of_unknown_size_are_cut():
    for truth in (CLASSIC._replace(is_whole=False), CLASSIC._replace(images=None)):
        assert evaluate_lists(np.array(CUT[:3]), truth)[0].cut is None


def test_a_bullseye_over_rankings_just_wide_enough_is_not_called_cut():
    assert bullseye(np.array(CUT), LABELS, 3).cut is None


def test_label_scores_say_whether_the_query_was_left_out():
    assert "the query left out" in evaluate_labels(np.array(FULL), LABELS)[0].rule
    outside = evaluate_labels(np.array(FULL), LABELS, query_labels=LABELS)[0].rule
    assert "the queries are not in the database" in outside
    assert "left out" not in outside


@pytest.mark.parametrize(
    ("rule", "reported", "unsaid"),
    [
        ("counted", ["counted", "divided by the class size"], ["left out", "minus one"]),
        ("left-out", ["left out", "divided by the class size"], ["counted", "minus one"]),
        ("left-out-others", ["left out", "class size minus one"], ["counted"]),
    ],
)
def test_a_bullseye_names_its_rule_and_window(rule, reported, unsaid):
    score = bullseye(np.array(FULL), LABELS, 3, rule)
    assert score.measure == f"bullseye@3 {rule}"
    assert all(words in score.rule for words in reported)
    assert not any(words in score.rule for words in unsaid)


def test_the_two_kinds_of_average_precision_are_told_apart():
    rectangles = evaluate_labels(np.array(FULL), LABELS)[0]
    areas = evaluate_lists(np.array(FULL[:3]), CLASSIC)[0]
    assert rectangles.measure == areas.measure == "mAP"
    assert "trapezoids" in areas.rule
    assert "trapezoids" not in rectangles.rule
    for score in (rectangles, areas):
        assert "over all that is right" in score.rule


def test_lists_say_what_is_right_and_what_is_removed():
    classic = evaluate_lists(np.array(FULL[:3]), CLASSIC)[0].rule
    assert "good and ok are right, junk removed" in classic
    assert "own image not removed" in classic
    landmarks = evaluate_lists(np.array(FULL[:4]), CLASSIC, protocol="landmarks")[0].rule
    assert "is a query and left out" in landmarks
    by_level = {s.measure: s.rule for s in evaluate_lists(np.array(FULL[:1]), REVISITED)}
    assert "easy are right, hard and junk removed" in by_level["mAP easy"]
    assert "easy and hard are right, junk removed" in by_level["mAP medium"]
    assert "hard are right, easy and junk removed" in by_level["mAP hard"]
    assert "at most the last right rank" in by_level["mP@5 medium"]
