"""Tests of manifind.datasets.synthetic: counts, labels, four pieces, and queries in their letters."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from manifind.datasets.synthetic import WORD, make_letters
from manifind.errors import InputError
from manifind.graph.knn_graph import mutual_affinity
from manifind.index.exact import graph_neighbours


def test_counted_by_word_the_four_letters_have_n_points_together():
    letters = make_letters(1501, "word")
    assert letters.points.shape == (1501, 2)
    assert letters.points.dtype == np.float32
    assert letters.labels.shape == (1501,)


def test_counted_by_letter_each_letter_has_n_points():
    assert np.bincount(make_letters(300, "letter").labels).tolist() == [300] * 4


def test_counted_by_word_a_longer_letter_has_more_points():
    p, a, m, i = np.bincount(make_letters(1500, "word").labels)
    assert i < p < m
    assert i < a < m


def test_labels_follow_the_letters_from_left_to_right():
    letters = make_letters()
    assert np.unique(letters.labels).tolist() == list(range(len(WORD)))
    x = [letters.points[letters.labels == i, 0] for i in range(4)]
    assert all(left.max() < right.min() for left, right in pairwise(x))


def test_coordinates_are_centred_and_small_beside_one():
    points = make_letters().points
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    np.testing.assert_allclose(middle, 0, atol=0.005)
    assert np.linalg.norm(points, axis=1).max() < 0.25


@pytest.mark.parametrize(("count", "n_neighbors"), [("word", 20), ("letter", 80)])
def test_the_mutual_graph_has_one_piece_for_each_letter(count, n_neighbors):
    letters = make_letters(1500, count)
    ids, distances = graph_neighbours(letters.points, n_neighbors)
    n_pieces, piece = connected_components(mutual_affinity(ids, 1 / (1 + distances)), directed=False)
    assert n_pieces == 4
    assert len(set(zip(piece.tolist(), letters.labels.tolist(), strict=True))) == 4


def test_each_query_lies_inside_its_letter():
    letters = make_letters()
    for letter, query in enumerate(letters.queries):
        distances = np.linalg.norm(letters.points - query, axis=1)
        assert set(letters.labels[np.argsort(distances)[:15]]) == {letter}
        assert distances.min() < 0.005, "a third of a stroke's width away from every point"


def test_the_queries_are_not_among_the_points():
    letters = make_letters()
    assert not (letters.points[:, None] == letters.queries[None]).all(axis=2).any()


def test_the_same_seed_gives_the_same_points_and_another_seed_others():
    first, again, other = make_letters(seed=3), make_letters(seed=3), make_letters(seed=4)
    np.testing.assert_array_equal(first.points, again.points)
    assert not np.array_equal(first.points, other.points)
    np.testing.assert_array_equal(first.queries, other.queries)


def test_a_count_that_is_neither_word_nor_letter_is_refused():
    with pytest.raises(InputError, match="count = 'page'; expected 'word' or 'letter'"):
        make_letters(count="page")


def test_fewer_points_than_letters_are_refused():
    with pytest.raises(InputError, match="n_points = 3; expected at least 4"):
        make_letters(3)
