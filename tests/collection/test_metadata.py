"""What users say of their items: it comes back as it was said, and what cannot be kept is refused by name."""

import json
import math
from collections import UserDict
from datetime import date
from enum import IntEnum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.collection.metadata import metadata_texts, read_metadata
from manifind.errors import CollectionError, InputError


class Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    ("fields", "back"),
    [
        ({"year": 1990}, {"year": 1990}),
        ({"year": np.int32(1990), "price": np.float32(0.5)}, {"year": 1990, "price": 0.5}),
        ({"ok": True, "not": np.False_}, {"ok": True, "not": False}),
        ({"place": np.str_("Rome")}, {"place": "Rome"}),
        ({"tags": ("a", 1, None, 2.5)}, {"tags": ["a", 1, None, 2.5]}),
        ({"tags": [np.int64(3)], "none": []}, {"tags": [3], "none": []}),
        ({"nothing": None}, {"nothing": None}),
        ({"猫": "🐱", "a\nb": "\t\u2028"}, {"猫": "🐱", "a\nb": "\t\u2028"}),
        ({"x'); DROP TABLE items;--": '"'}, {"x'); DROP TABLE items;--": '"'}),
        ({"level": Level.LOW}, {"level": 1}),
        ({"large": 10**300, "small": -(2**70)}, {"large": 10**300, "small": -(2**70)}),
        ({"tiny": 5e-324, "zero": -0.0}, {"tiny": 5e-324, "zero": -0.0}),
        (UserDict({"year": 1}), {"year": 1}),
        ({"text": "x" * 65_000}, {"text": "x" * 65_000}),
    ],
)
def test_what_is_said_comes_back(fields, back):
    (text,) = metadata_texts([fields], 1)
    assert read_metadata(text, "c") == back


def test_nothing_said_is_nothing_kept():
    assert metadata_texts(None, 3) == [None] * 3
    assert metadata_texts([None, {}, {"a": 1}], 3) == [None, None, '{"a": 1}']
    assert metadata_texts([], 0) == []
    assert read_metadata(None, "c") == {}


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"a": 1}, "metadata is a dict"),
        ("ab", "metadata is a str"),
        (iter([{}]), "metadata is a list_iterator"),
        ({1, 2}, "metadata is a set"),
        (5, "metadata is a int"),
        ([{}], "there is 1 entry of metadata for 2 items"),
        ([{}] * 3, "there are 3 entries of metadata for 2 items"),
        ([{}, ["a"]], "metadata of an item is ['a']"),
        ([{}, 5], "metadata of an item is 5"),
        ([{}, {"": 1}], "a field of metadata is called ''"),
        ([{}, {5: 1}], "a field of metadata is called 5"),
        ([{}, {None: 1}], "a field of metadata is called None"),
        ([{}, {"a\0": 1}], "a field of metadata is called"),
        ([{}, {"\ud800": 1}], "a field of metadata is called"),
        ([{}, {"a": float("nan")}], "the metadata 'a' is nan"),
        ([{}, {"a": -math.inf}], "the metadata 'a' is -inf"),
        ([{}, {"a": np.float32("nan")}], "the metadata 'a' is nan"),
        ([{}, {"a": [1, math.inf]}], "the metadata 'a' is inf"),
        ([{}, {"a": {"b": 1}}], "the metadata 'a' is a dict"),
        ([{}, {"a": [[1]]}], "the metadata 'a' is a list"),
        ([{}, {"a": {1}}], "the metadata 'a' is a set"),
        ([{}, {"a": b"x"}], "the metadata 'a' is a bytes"),
        ([{}, {"a": 1j}], "the metadata 'a' is a complex"),
        ([{}, {"a": date(2000, 1, 1)}], "the metadata 'a' is a date"),
        ([{}, {"a": np.datetime64("2000-01-01")}], "the metadata 'a' is a date"),
        ([{}, {"a": np.array([1])}], "the metadata 'a' is a ndarray"),
        ([{}, {"a": object()}], "the metadata 'a' is a object"),
        ([{}, {"a": "x\0"}], "the metadata 'a' is 'x\\x00'"),
        ([{}, {"a": "\udfff"}], "which is not valid text"),
        ([{}, {"a": 10**5000}], "the metadata 'a' is a number of 16610 bits"),
        ([{}, {"a": [-(10**400)]}], "the metadata 'a' is a number of"),
        ([{}, {"a": "x" * 70_000}], "the metadata of an item has 70009 characters"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_name(metadata, problem):
    with pytest.raises(InputError) as refused:
        metadata_texts(metadata, 2)
    assert problem in refused.value.problem
    assert len(str(refused.value)) < 1500


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "5", '"a"', "true", "[" * 100_000, '{"a":' * 100_000, '{"a": NaN}', "9" * 5000, "\0"],
    ids=lambda text: text[:12],
)
def test_a_text_that_is_no_metadata_is_damage_and_names_the_place(text):
    with pytest.raises(CollectionError, match=r"the metadata in /some/where is damaged") as refused:
        read_metadata(text, "/some/where")
    assert len(str(refused.value)) < 500
    assert refused.value.hint


def test_a_list_of_tables_of_a_dataframe_is_taken():
    records = [{"year": 1990, "place": "Rome"}, {"year": 1991, "place": None}]
    assert [json.loads(text) for text in metadata_texts(tuple(records), 2)] == records


VALID = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | VALID
ANYTHING = st.recursive(
    PLAIN | st.floats() | st.binary() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(fields=st.dictionaries(VALID.filter(bool), PLAIN | st.lists(PLAIN, max_size=3), max_size=4))
@settings(max_examples=150, derandomize=True)
def test_any_plain_values_come_back_as_they_were_said(fields):
    (text,) = metadata_texts([fields], 1)
    assert read_metadata(text, "c") == fields


@given(fields=ANYTHING)
@settings(max_examples=200, derandomize=True)
def test_anything_is_kept_as_json_that_all_can_read_or_refused(fields):
    try:
        (text,) = metadata_texts([fields], 1)
    except InputError:
        return
    if text is not None:
        text.encode()
        assert isinstance(json.loads(text, parse_constant=pytest.fail), dict)


def test_what_is_given_is_not_written_to():
    fields = {"tags": ["a"], "year": np.int64(3)}
    metadata_texts([fields], 1)
    assert fields == {"tags": ["a"], "year": np.int64(3)}
    assert type(fields["year"]) is np.int64
