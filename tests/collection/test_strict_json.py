"""JSON as a collection writes it: what Python's parser would let pass as a number is refused where it is read."""

import json
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import manifind
from collection.crafting import manifest_of, set_manifest
from collection.small_collection import edit
from manifind.collection.format import parse_json
from manifind.errors import CollectionError, InputError

NO_NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e309", "9" * 400, "-" + "9" * 400]
PLAIN = st.none() | st.booleans() | st.integers(-(10**300), 10**300) | st.text()
VALUES = st.recursive(
    PLAIN | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(value=VALUES)
@settings(derandomize=True)
def test_whatever_is_finite_comes_back(value):
    assert parse_json(json.dumps(value)) == value


@given(text=st.text(alphabet='{}[]":,0123456789.eE+-NaInfty ', max_size=30))
@example(text="[[1e400]]")
@example(text='{"a": -Infinity}')
@settings(max_examples=300, derandomize=True)
def test_any_text_gives_finite_numbers_or_a_value_error(text):
    try:
        value = parse_json(text)
    except ValueError:
        return
    json.dumps(value, allow_nan=False)


@pytest.mark.parametrize("number", NO_NUMBERS, ids=lambda text: text[:9])
@pytest.mark.parametrize("text", ["{}", '{{"a": [1, {}]}}', "[{}]"], ids=["alone", "inside", "listed"])
def test_a_number_that_is_not_finite_is_refused_wherever_it_stands(text, number):
    with pytest.raises(ValueError, match="number"):
        parse_json(text.format(number) if text != '{{"a": [1, {}]}}' else f'{{"a": [1, {number}]}}')


@pytest.mark.parametrize("depth", [101, 900, 100_000])
def test_what_is_nested_deep_is_refused_and_a_text_full_of_brackets_is_not(depth):
    with pytest.raises(ValueError, match="nested"):
        parse_json("[" * depth + "]" * depth)
    assert parse_json(json.dumps(["[" * depth])) == ["[" * depth]
    assert parse_json("[" * 100 + "]" * 100)


@pytest.mark.parametrize("number", NO_NUMBERS, ids=lambda text: text[:9])
@pytest.mark.parametrize("key", ["info", "settings", "versions", "indexes", "unknown"])
def test_a_manifest_with_a_number_that_is_not_finite_is_damaged(saved, refusal, key, number):
    if key == "unknown":
        edit(saved, "INSERT INTO manifest VALUES ('unknown', ?)", number)
    else:
        rest = json.dumps({**manifest_of(saved, key), "rest": 1})[1:]
        set_manifest(saved, key, f'{{"trust": {number}, {rest}')
    assert "is damaged" in refusal(saved)


@pytest.mark.parametrize("number", NO_NUMBERS, ids=lambda text: text[:9])
def test_metadata_with_a_number_that_is_not_finite_is_damaged_for_whoever_reads_it(living, number):
    edit(living, "UPDATE items SET metadata = ? WHERE position = 7", f'{{"year": {number}}}')
    collection = manifind.load(living)
    for read in (
        lambda: collection.metadata(["pictures/007.jpg"]),
        lambda: collection.search_ids(["pictures/008.jpg"], where="year > 1900"),
    ):
        with pytest.raises(CollectionError, match=r"the metadata in .* is damaged"):
            read()
    assert collection.metadata(["pictures/008.jpg"]) == [{"year": 1908}]


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, 10**5000], ids=["nan", "inf", "large", "huge"])
def test_what_could_not_be_read_again_is_not_written(model, tmp_path, value, monkeypatch):
    monkeypatch.setitem(model.info_, "energy_kept", value)
    with pytest.raises(InputError, match="info of this collection cannot be stored"):
        model.save(tmp_path / "c")
    assert list(tmp_path.iterdir()) == []
