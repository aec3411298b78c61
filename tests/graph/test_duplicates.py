"""Exact duplicates: equal values, and nothing else, are one point."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from manifind.graph import duplicates
from manifind.graph.duplicates import RowLookup, distinct_rows, row_keys
from reference.descriptors import distinct_by_loops, lookup_by_loops

few_values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 3e38, 1e-45])


def matrices(columns, min_rows=1):
    shape = st.tuples(st.integers(min_rows, 12), st.just(columns))
    return hnp.arrays(np.float32, shape, elements=few_values.map(np.float32))


@settings(max_examples=80)
@given(st.integers(1, 3).flatmap(matrices))
def test_distinct_rows_equal_the_loops(X):
    first, of_row = distinct_by_loops(X)
    distinct = distinct_rows(X)
    assert distinct.first.tolist() == first
    assert distinct.of_row.tolist() == of_row


@settings(max_examples=80)
@given(st.integers(1, 3).flatmap(lambda d: st.tuples(matrices(d), matrices(d, min_rows=0))))
def test_lookup_equals_the_loops(pair):
    database, X = pair
    assert RowLookup(database)(X).tolist() == lookup_by_loops(database, X)


def test_first_appearances_rise_and_rebuild_the_input():
    X = np.array([[2, 2], [1, 1], [2, 2], [0, 0], [1, 1]], dtype=np.float32)
    distinct = distinct_rows(X)
    assert distinct.first.tolist() == [0, 1, 3]
    assert distinct.of_row.tolist() == [0, 1, 0, 2, 1]
    np.testing.assert_array_equal(X[distinct.first][distinct.of_row], X)


def test_minus_zero_is_zero():
    X = np.array([[0.0, 1.0], [-0.0, 1.0]], dtype=np.float32)
    assert distinct_rows(X).of_row.tolist() == [0, 0]
    assert RowLookup(X[:1])(X[1:]).tolist() == [0]
    assert row_keys(X)[0] == row_keys(X)[1]


def test_the_smallest_difference_makes_two_points():
    X = np.ones((2, 3), dtype=np.float32)
    X[1, 2] = np.nextafter(np.float32(1), np.float32(2))
    assert distinct_rows(X).of_row.tolist() == [0, 1]
    assert RowLookup(X[:1])(X[1:]).tolist() == [-1]


def test_columns_in_another_order_make_another_point():
    X = np.array([[1, 2], [2, 1]], dtype=np.float32)
    assert distinct_rows(X).first.tolist() == [0, 1]


def test_lookup_answers_with_the_first_of_several_copies():
    database = np.array([[5], [7], [7], [5]], dtype=np.float32)
    assert RowLookup(database)(np.array([[7], [5], [6]], dtype=np.float32)).tolist() == [1, 0, -1]


def test_many_rows_of_small_integers_have_different_keys():
    X = np.stack(np.meshgrid(*[np.arange(-10, 11)] * 3), axis=-1).reshape(-1, 3).astype(np.float32)
    assert len(np.unique(row_keys(X))) == len(X)


def test_blocks_of_rows_do_not_change_the_answer(monkeypatch):
    X = np.random.default_rng(0).integers(0, 3, size=(50, 2)).astype(np.float32)
    whole, found = distinct_rows(X), RowLookup(X)(X[::-1])
    monkeypatch.setattr(duplicates, "_ROWS_PER_BLOCK", 7)
    np.testing.assert_array_equal(distinct_rows(X).of_row, whole.of_row)
    np.testing.assert_array_equal(RowLookup(X)(X[::-1]), found)


@pytest.mark.parametrize("n_keys", [1, 2])
def test_rows_that_share_a_key_by_accident_stay_distinct(n_keys, monkeypatch):
    X = np.random.default_rng(0).integers(-2, 3, size=(40, 2)).astype(np.float32)
    monkeypatch.setattr(duplicates, "row_keys", lambda X: (X[:, 0] > 0).astype(np.uint64) * np.uint64(n_keys - 1))
    first, of_row = distinct_by_loops(X)
    distinct = distinct_rows(X)
    assert distinct.first.tolist() == first
    assert distinct.of_row.tolist() == of_row


def test_rows_that_share_a_key_by_accident_are_still_found(monkeypatch):
    database = np.array([[1], [2], [3], [2]], dtype=np.float32)
    monkeypatch.setattr(duplicates, "row_keys", lambda X: np.zeros(len(X), dtype=np.uint64))
    X = np.array([[3], [2], [1], [9]], dtype=np.float32)
    assert RowLookup(database)(X).tolist() == [2, 1, 0, -1]


def test_the_input_is_not_written_to():
    X = np.array([[-0.0, 1.0], [0.0, 1.0]], dtype=np.float32)
    X.flags.writeable = False
    distinct_rows(X)
    RowLookup(X)(X)
    assert np.signbit(X[0, 0])
