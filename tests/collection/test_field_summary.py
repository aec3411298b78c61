"""What the metadata of items hold: counted by hand, and in the same way whatever the order of the items."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifind.collection.field_summary import MOST_VALUES, summarize_fields

VALUES = st.one_of(
    st.integers(-5, 5), st.floats(-5, 5), st.booleans(), st.none(), st.text(max_size=3), st.lists(st.text(max_size=2))
)


def summary(values, name="field"):
    (found,) = summarize_fields([{name: value} for value in values])
    return found


def test_numbers_have_a_range_and_their_frequent_values():
    found = summary([1990, 1990, 1972.5, 2001])
    assert (found.kind, found.items, found.low, found.high) == ("number", 4, 1972.5, 2001)
    assert (found.different, found.values[0]) == (3, (1990, 2))


def test_texts_that_all_begin_with_a_day_are_dates():
    found = summary(["2019-07-31 12:30:00", "2018-01-02"])
    assert (found.kind, found.low, found.high) == ("date", "2018-01-02", "2019-07-31 12:30:00")
    assert summary(["2019-07-31", "about 1900"]).kind == "text"
    assert summary(["2019-07-311"]).kind == "text"


def test_a_list_counts_an_element_once_for_each_item():
    found = summary([["a", "b", "a"], ["a"], []])
    assert (found.kind, found.items, found.different, found.values) == ("list", 3, 2, [("a", 2), ("b", 1)])


def test_truths_are_no_numbers():
    assert summary([True, False, True]).values == [(True, 2), (False, 1)]
    assert summary([[True, 1, 1.0]]).different == 2


def test_what_is_different_for_nearly_every_item_lists_no_values():
    assert summary([f"name {number}" for number in range(MOST_VALUES + 1)]).values == []
    assert len(summary([f"name {number % 60}" for number in range(600)]).values) == MOST_VALUES
    assert summary(list(range(600))).values == []


def test_items_of_another_kind_than_most_do_not_count():
    found = summary(["a", "b", 3, None])
    assert (found.kind, found.items) == ("text", 2)


def test_fields_without_any_value_and_hidden_ones_are_left_out():
    assert summarize_fields([{"a": None, "b": 1, "c": {}}], hidden=["b"]) == []
    assert summarize_fields([]) == []


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES)), st.randoms())
def test_the_order_of_the_items_does_not_matter(items, random):
    shuffled = list(items)
    random.shuffle(shuffled)
    found, expected = ({one.name: one for one in summarize_fields(some)} for some in (shuffled, items))
    assert found.keys() == expected.keys()
    for name, one in found.items():
        kinds = {type(item[name]) for item in items if name in item}
        if len(kinds - {int, float}) + (len(kinds & {int, float}) > 0) == 1:  # else two kinds may be as frequent
            assert one[:4] == expected[name][:4]
            assert one.different == expected[name].different
            assert sum(n for _, n in one.values) >= one.different * (len(one.values) > 0)


@pytest.mark.parametrize("value", [np.float64(2.5), 10**30, -0.0])
def test_any_number_is_a_number(value):
    assert summary([value]).kind == "number"
