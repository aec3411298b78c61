"""The user's ids: unique strings or unique integers, and everything else is refused by name."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.collection.ids import check_ids
from manifind.errors import InputError


@pytest.mark.parametrize(
    ("given_ids", "plain"),
    [
        (None, [0, 1, 2]),
        (["a", "b", "c"], ["a", "b", "c"]),
        (("a", "b", "c"), ["a", "b", "c"]),
        ([5, -7, 0], [5, -7, 0]),
        (range(3), [0, 1, 2]),
        (np.array([3, 2, 1], dtype=np.uint8), [3, 2, 1]),
        (np.array(["x", "y", "zz"]), ["x", "y", "zz"]),
        (np.array(["x", "y", "z"], dtype=object), ["x", "y", "z"]),
        ([np.int32(3), np.int64(2), 1], [3, 2, 1]),
        ([np.str_("a"), "b", "c"], ["a", "b", "c"]),
        (["1", "01", "1.0"], ["1", "01", "1.0"]),
        ([-(2**63), 2**63 - 1, 0], [-(2**63), 2**63 - 1, 0]),
        ({"a": 1, "b": 2, "c": 3}.keys(), ["a", "b", "c"]),
        (["🐱", "é", "e\u0301"], ["🐱", "é", "e\u0301"]),
        (["a" * 4096, " ", "\n"], ["a" * 4096, " ", "\n"]),
    ],
)
def test_strings_or_integers_of_any_make_become_a_plain_list(given_ids, plain):
    found = check_ids(given_ids, 3)
    assert found == plain
    assert all(type(value) in (str, int) for value in found)


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        (["a", "b"], "there are 2 ids for 3 items"),
        ([1, 2, 3, 4], "there are 4 ids for 3 items"),
        ([], "there are 0 ids for 3 items"),
        (["a", "b", "a"], "the id 'a' stands for more than one item"),
        (np.array([7, 8, 7]), "the id 7 stands for more than one item"),
        ([1, "b", 3], "there is a str: 'b'"),
        (["a", "b", 3], "there is a int: 3"),
        ([1.0, 2.0, 3.0], "there is a float: 1.0"),
        ([1, 2, 3.5], "there is a float: 3.5"),
        ([True, False, 3], "there is a bool: True"),
        (np.array([1.5, 2, 3]), "there is a float: 1.5"),
        ([b"a", b"b", b"c"], "there is a bytes: b'a'"),
        (["a", None, "c"], "there is a NoneType: None"),
        (np.arange(6).reshape(3, 2), "there is a list"),
        ([0, 1, 2**63], f"the id {2**63} does not fit into 64 bits"),
        (np.array([0, 1, 2**64 - 1], dtype=np.uint64), "does not fit into 64 bits"),
        (["a", "", "c"], "an id has 0 characters; expected 1 to 4096"),
        (["a", "b" * 4097, "c"], "an id has 4097 characters; expected 1 to 4096"),
        (["a", "\ud800", "c"], r"the id '\ud800' is not valid text"),
        (["a", "b\0", "c"], r"the id 'b\x00' is not valid text"),
        (5, "ids = 5"),
        (np.array(5), "ids = array(5)"),
        ("abc", "ids = 'abc'"),
        (b"abc", "ids = b'abc'"),
        ({"a"}, "ids = {'a'}"),
    ],
)
def test_ids_that_cannot_be_kept_are_refused_with_the_value(ids, problem):
    with pytest.raises(InputError) as refusal:
        check_ids(ids, 3)
    assert problem in refusal.value.problem


@given(ids=st.lists(st.text(st.characters(blacklist_characters="\0", codec="utf-8"), min_size=1), unique=True))
@settings(max_examples=60, derandomize=True)
def test_any_distinct_texts_are_taken_as_they_are(ids):
    assert check_ids(ids, len(ids)) == ids


def test_the_ids_are_not_written_to():
    ids = ["b", "a"]
    check_ids(ids, 2).append("c")
    assert ids == ["b", "a"]
