"""Labels become numbers, classes stand in an order that people expect."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifind.datasets.labelled import natural_key, number_labels
from manifind.errors import FileFormatError


@pytest.mark.parametrize(
    "ordered",
    [
        ["s1", "s2", "s10", "s40"],
        ["1.pgm", "2.pgm", "10.pgm"],
        ["a", "a1", "a1b", "a2", "a10", "b"],
        ["obj1__9", "obj1__10", "obj2__0"],
        ["1", "01x", "2", "10"],
        ["", "0", "a"],
    ],
)
def test_numbers_in_names_are_ordered_by_value(ordered):
    keys = [natural_key(name) for name in ordered]
    assert all(first < second for first, second in pairwise(keys))


@given(first=st.text(max_size=8), second=st.text(max_size=8))
def test_only_equal_names_have_equal_keys_and_any_two_can_be_compared(first, second):
    assert (natural_key(first) == natural_key(second)) == (first == second)
    assert natural_key(first) < natural_key(second) or natural_key(second) <= natural_key(first)


@given(numbers=st.lists(st.integers(0, 10**30), min_size=1))
def test_plain_numbers_are_ordered_as_numbers(numbers):
    assert sorted(map(str, numbers), key=natural_key) == list(map(str, sorted(numbers)))


def test_a_number_of_any_length_can_be_a_name():
    assert sorted(["9" * 5000, "1"], key=natural_key)[0] == "1"


@given(values=st.one_of(st.lists(kind, min_size=1) for kind in (st.text(min_size=1), st.integers())))
def test_every_label_is_the_number_of_its_class(values):
    labels, classes = number_labels(values, "here")
    assert [classes[label] for label in labels] == [str(value) for value in values]
    assert labels.dtype == np.int64
    assert len(set(classes)) == len(classes)
    assert set(labels.tolist()) == set(range(len(classes)))


def test_whole_numbers_keep_the_order_of_their_values():
    labels, classes = number_labels([7, -1, 30, 7], "here")
    assert labels.tolist() == [1, 0, 2, 1]
    assert classes == ("-1", "7", "30")


def test_an_empty_label_is_refused_with_its_place():
    with pytest.raises(FileFormatError, match=r"here has an empty label for item 1 \(counted from 0\)"):
        number_labels(["a", ""], "here")
