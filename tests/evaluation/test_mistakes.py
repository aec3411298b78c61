"""Mistakes of the caller are refused with the value and what was expected."""

import re

import numpy as np
import pytest

from evaluation.drawn import published
from manifind.errors import InputError
from manifind.evaluation.protocols import bullseye, evaluate_labels, evaluate_lists, mean_average_precision

LABELS = ["a", "a", "b", "b", "b"]
IDS = np.stack([np.roll(np.arange(5), -i) for i in range(5)])
CLASSIC = published(5, {"ok": [[0, 1], [2]], "junk": [[3], []]})
REVISITED = published(5, {"easy": [[0], []], "hard": [[], [1]], "junk": [[2], [3]]})


def refused(call, *arguments, **named):
    with pytest.raises(InputError) as refusal:
        call(*arguments, **named)
    return refusal.value


def changed(row, rank, item):
    ids = IDS.copy()
    ids[row, rank] = item
    return ids


def labels_of(ids, **named):
    return evaluate_labels(ids, LABELS, **named)


def classic_of(ids, **named):
    return evaluate_lists(ids, CLASSIC, **named)


def revisited_of(ids, **named):
    return evaluate_lists(ids, REVISITED, **named)


def bullseye_of(ids, **named):
    return bullseye(ids, LABELS, 2, **named)


OVER_LABELS = [labels_of, bullseye_of]
OVER_LISTS = [classic_of, revisited_of]


@pytest.mark.parametrize("evaluate", [*OVER_LABELS, *OVER_LISTS])
@pytest.mark.parametrize("ids", [np.arange(5), IDS[None], np.int64(3)], ids=["1-d", "3-d", "0-d"])
def test_rankings_of_other_dimensions_are_refused_with_their_shape(evaluate, ids):
    error = refused(evaluate, ids)
    assert f"rankings of shape {ids.shape} and type int64" in error.problem
    assert "expected (queries, k) whole numbers" in error.problem
    assert "one row per query" in error.hint


@pytest.mark.parametrize("evaluate", [*OVER_LABELS, *OVER_LISTS])
@pytest.mark.parametrize("dtype", [float, bool, str, object, complex])
def test_rankings_that_are_not_whole_numbers_are_refused_with_their_type(evaluate, dtype):
    error = refused(evaluate, IDS.astype(dtype))
    assert f"type {IDS.astype(dtype).dtype}; expected (queries, k) whole numbers" in error.problem


@pytest.mark.parametrize("evaluate", [*OVER_LABELS, *OVER_LISTS])
def test_rows_of_different_lengths_are_refused_as_such(evaluate):
    assert "whole numbers" in refused(evaluate, [[0, 1], [1]]).problem


def test_too_few_or_too_many_rows_are_refused_with_both_numbers():
    error = refused(labels_of, IDS[:3, :4])
    assert "rankings for 3 queries; expected 5" in error.problem
    assert error.hint == "rank every query once"
    assert "rankings for 1 query; expected 2" in refused(labels_of, IDS[:1], query_items=[0, 1]).problem
    assert "rankings for 3 queries; expected 2" in refused(classic_of, IDS[:3]).problem
    assert "rankings for 5 queries; expected 2" in refused(labels_of, IDS, query_labels=["a", "b"]).problem


def test_transposed_rankings_get_the_hint_to_transpose_them():
    for evaluate in OVER_LISTS:
        error = refused(evaluate, IDS[:2].T)
        assert "rankings for 5 queries; expected 2" in error.problem
        assert "transpose" in error.hint
    assert "transpose" in refused(labels_of, IDS[:3].T, query_items=[0, 1, 2]).hint


@pytest.mark.parametrize("evaluate", OVER_LABELS)
def test_an_item_twice_in_a_row_is_refused_with_both_ranks(evaluate):
    error = refused(evaluate, changed(3, 4, 4))  # 3 4 0 1 4
    assert "row 3 of the rankings has item 4 at ranks 2 and 5; expected every item once" in error.problem
    assert "repeated" in error.hint


@pytest.mark.parametrize("evaluate", OVER_LISTS)
@pytest.mark.parametrize("item", [0, 2, 3, 4])
def test_an_item_twice_is_refused_whether_it_is_right_wrong_or_junk(evaluate, item):
    row = [item, *(other for other in range(5) if other != item), item]
    error = refused(evaluate, np.array([row, [*range(5), -1]]))
    assert f"row 0 of the rankings has item {item} at ranks 1 and 6" in error.problem


def test_an_item_three_times_is_refused():
    assert "item 0 at ranks 1 and 3" in refused(classic_of, np.array([[0, 0, 0], [1, 2, 3]])).problem


@pytest.mark.parametrize("evaluate", OVER_LABELS)
def test_a_position_beyond_the_database_is_refused_with_both_numbers(evaluate):
    error = refused(evaluate, changed(1, 2, 5))
    assert "the rankings hold the position 5, but the database has 5 items" in error.problem
    assert "from 0" in error.hint


def test_positions_of_distractors_are_refused_until_somebody_says_how_many():
    ids = np.array([[6, 0, 1, 2], [1, 2, 5, 0]])
    assert "position 6, but the database has 5 items" in refused(classic_of, ids).problem
    assert "position 6, but the database has 6 items" in refused(classic_of, ids, distractors=1).problem
    assert "distractors" in refused(classic_of, ids).hint
    assert classic_of(ids, distractors=2)[0].n_queries == 2


def test_an_absurd_position_is_refused_even_where_nobody_knows_the_size_of_the_database():
    ids = np.array([[1 << 40, 0], [1, 2]])
    error = refused(evaluate_lists, ids, CLASSIC._replace(is_whole=False))
    assert str(1 << 40) in error.problem


@pytest.mark.parametrize("evaluate", OVER_LABELS)
def test_a_negative_position_other_than_the_filler_is_refused(evaluate):
    assert "the rankings hold the position -2; expected 0 or more" in refused(evaluate, changed(0, 3, -2)).problem


@pytest.mark.parametrize("evaluate", OVER_LABELS)
def test_the_filler_in_front_of_an_item_is_refused_with_its_row(evaluate):
    error = refused(evaluate, changed(2, 1, -1))
    assert "row 2 of the rankings goes on after -1" in error.problem
    assert "behind the last item" in error.hint


@pytest.mark.parametrize("evaluate", [*OVER_LABELS, *OVER_LISTS])
@pytest.mark.parametrize("queries", ["seen", "", "Unseen"])
def test_a_word_that_does_not_say_where_the_queries_were_is_refused(evaluate, queries):
    ids = IDS if evaluate in OVER_LABELS else IDS[:2]
    error = refused(evaluate, ids, queries=queries)
    assert error.problem == f"queries = {queries!r}; expected one of 'in the graph', 'unseen', 'not stated'"


@pytest.mark.parametrize("evaluate", [labels_of, *OVER_LISTS])
@pytest.mark.parametrize("cutoff", [0, -3])
def test_a_cutoff_below_one_is_refused(evaluate, cutoff):
    ids = IDS if evaluate in OVER_LABELS else IDS[:2]
    assert (
        refused(evaluate, ids, cutoffs=(1, cutoff)).problem
        == f"cutoff = {cutoff}; expected a whole number of at least 1"
    )


@pytest.mark.parametrize("evaluate", [labels_of, *OVER_LISTS])
def test_a_cutoff_that_is_no_whole_number_is_refused(evaluate):
    ids = IDS if evaluate in OVER_LABELS else IDS[:2]
    assert "1.5" in refused(evaluate, ids, cutoffs=(1.5,)).problem


def test_a_window_that_is_no_whole_number_is_refused():
    assert "1.5" in refused(bullseye, IDS, LABELS, 1.5).problem


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_below_one_is_refused(window):
    assert refused(bullseye, IDS, LABELS, window).problem == f"window = {window}; expected a whole number of at least 1"


@pytest.mark.parametrize("rule", ["count", "", "left out"])
def test_a_rule_that_does_not_exist_is_refused_with_those_that_do(rule):
    error = refused(bullseye, IDS, LABELS, 2, rule)
    assert error.problem == f"rule = {rule!r}; expected one of 'counted', 'left-out', 'left-out-others'"


def test_rankings_too_narrow_for_the_window_are_refused_with_the_k_to_search_with():
    others = np.stack([[i for i in row if i != query] for query, row in enumerate(IDS)])
    error = refused(bullseye, others[:, :2], LABELS, 4)
    assert "a ranking has 2 items besides the query; expected at least 3 for this window" in error.problem
    assert "k = 4" in error.hint
    assert bullseye(others[:, :3], LABELS, 4).n_queries == 5
    assert "at least 4" in refused(bullseye, others[:, :3], LABELS, 4, "left-out").problem
    assert "at least 4" in refused(bullseye, others[:, :3], LABELS, 99).problem, "there are only four others"
    one_short = np.where(np.arange(5)[:, None] == [1], [[*range(4)]], others)
    one_short[3, 3] = -1
    assert "a ranking has 3 items" in refused(bullseye, one_short, LABELS, 5).problem


@pytest.mark.parametrize(
    "labels",
    [
        np.zeros((5, 1), dtype=int),
        np.zeros(5),
        [0, 1, 0.5, 1, 0],
        np.array(LABELS, dtype=object),
        [],
        "aabbb",
        [None] * 5,
    ],
    ids=["column", "floats", "a fraction", "objects", "none", "one string", "nothing"],
)
@pytest.mark.parametrize("evaluate", [mean_average_precision, lambda ids, labels: bullseye(ids, labels, 2)])
def test_labels_of_a_wrong_kind_are_refused_with_shape_and_type(evaluate, labels):
    array = np.asarray(labels)
    error = refused(evaluate, IDS, labels)
    assert f"labels of shape {array.shape} and type {array.dtype}" in error.problem
    assert "expected (n,) whole numbers or strings" in error.problem
    assert "one label for every item" in error.hint


def test_labels_of_items_and_queries_of_different_kinds_are_refused():
    error = refused(labels_of, IDS, query_labels=[0, 0, 1, 1, 1])
    assert "expected both numbers or both strings" in error.problem


def test_labels_in_bytes_beyond_ascii_are_refused_beside_strings():
    refused(evaluate_labels, IDS, "ä ä b b b".encode("latin-1").split(), query_labels=LABELS)


def test_asked_items_and_labels_of_queries_together_are_refused():
    error = refused(labels_of, IDS, query_items=[0, 1, 2, 3, 4], query_labels=LABELS)
    assert "both given" in error.problem
    assert error.hint == "leave one of them out"


@pytest.mark.parametrize("query_items", [[[0, 1, 2, 3, 4]], [0.0] * 5, ["a"] * 5, 3])
def test_query_items_that_are_no_positions_are_refused(query_items):
    array = np.asarray(query_items)
    error = refused(labels_of, IDS, query_items=query_items)
    assert f"query_items has shape {array.shape} and type {array.dtype}; expected (m,) positions" in error.problem


def test_an_asked_item_beyond_the_last_is_refused_with_its_position():
    error = refused(labels_of, IDS, query_items=[0, 1, 2, 3, 5])
    assert "item 5 of 5; expected positions from 0 to 4" in error.problem


def test_a_negative_asked_item_is_refused_with_its_position():
    assert "item -1 of 5" in refused(labels_of, IDS, query_items=[0, 1, 2, 3, -1]).problem


def test_a_protocol_that_does_not_exist_is_refused_with_those_that_do():
    error = refused(classic_of, IDS[:2], protocol="landmark")
    assert error.problem == "protocol = 'landmark'; expected one of 'official', 'landmarks'"


def test_a_negative_number_of_distractors_is_refused():
    assert refused(classic_of, IDS[:2], distractors=-1).problem == "distractors = -1; expected 0 or more"


def test_revisited_lists_have_no_landmark_protocol():
    error = refused(revisited_of, IDS[:2], protocol="landmarks")
    assert "the ground truth has the lists easy, hard, junk; expected ok, junk" in error.problem
    assert "revisited" in error.hint


def test_lists_of_no_known_protocol_are_refused_with_their_names():
    strange = published(5, {"good": [[0]], "bad": [[1]], "junk": [[]]})
    error = refused(evaluate_lists, IDS[:1], strange)
    assert "the ground truth has the lists good, bad, junk; expected ok, junk" in error.problem


def test_landmarks_of_one_image_each_are_refused():
    error = refused(evaluate_lists, IDS[:2], published(5, {"ok": [[0], []], "junk": [[], []]}), protocol="landmarks")
    assert "no landmark has two images that are right" in error.problem
    assert "several images of a landmark" in error.hint


@pytest.mark.parametrize(
    ("evaluate", "truth"),
    [
        (evaluate_labels, [0, 1, 2, 3, 4]),
        (lambda ids, labels: bullseye(ids, labels, 2, "left-out-others"), [0, 1, 2, 3, 4]),
        (lambda ids, truth: evaluate_lists(ids, truth), published(5, {"ok": [[]] * 5, "junk": [[0]] * 5})),
    ],
    ids=["labels", "bullseye", "lists"],
)
def test_nothing_to_find_at_all_is_refused(evaluate, truth):
    assert re.search("no query has anything to find", refused(evaluate, IDS, truth).problem)


def test_no_query_at_all_is_refused():
    error = refused(labels_of, np.empty((0, 5), dtype=int), query_items=np.empty(0, dtype=int))
    assert "nothing to score" in error.problem


def test_no_query_at_all_is_refused_by_the_bullseye():
    refused(bullseye_of, np.empty((0, 5), dtype=int), query_items=np.empty(0, dtype=int))
