"""Metadata from files: what a line says goes to its item, and a file that cannot be read is refused with its line."""

import json
import math
import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manifind.errors import FileFormatError
from manifind.io.tables import read_fields


@pytest.fixture
def refused(fresh):
    """The problem that a file with some content is refused for; file and way out are named."""

    def read(suffix, content):
        path = fresh(suffix, content)
        with pytest.raises(FileFormatError) as caught:
            read_fields(path)
        assert str(path) in caught.value.problem
        assert caught.value.hint
        assert len(str(caught.value)) < 1500
        return caught.value.problem

    return read


def test_objects_by_line_are_read_as_json_has_them(fresh):
    lines = [
        {"id": "a", "year": 1990, "tags": ["x", 2], "ok": True, "none": None, "猫": "🐱"},
        {"id": 7, "price": 0.5},
        {"id": "alone"},
    ]
    path = fresh(".jsonl", "\n\n".join(map(json.dumps, lines)) + "\n \n")
    assert read_fields(path) == {
        "a": {"year": 1990, "tags": ["x", 2], "ok": True, "none": None, "猫": "🐱"},
        "7": {"price": 0.5},
        "alone": {},
    }


@pytest.mark.parametrize(("suffix", "comma"), [(".csv", ","), (".tsv", "\t"), (".CSV", ",")])
def test_tables_are_read_with_numbers_as_numbers(fresh, suffix, comma):
    rows = [
        ["year", "id", "place", "price"],
        ["1990", "a/1.jpg", "Rome", "12.50"],
        ["-3", "007", "", "0.1"],
        ["1e5", "8", "007", "1.2.3"],
        ["0", "b", '"say ""x""\nand more"', "-0.0"],
        ["9" * 19, "c", "inf", "nan"],
    ]
    content = "\n".join(comma.join(row) for row in rows) + "\n\n"
    assert read_fields(fresh(suffix, content)) == {
        "a/1.jpg": {"year": 1990, "place": "Rome", "price": 12.5},
        "007": {"year": -3, "price": 0.1},
        "8": {"year": "1e5", "place": "007", "price": "1.2.3"},
        "b": {"year": 0, "place": 'say "x"\nand more', "price": -0.0},
        "c": {"year": "9" * 19, "place": "inf", "price": "nan"},
    }


def test_a_mark_of_the_byte_order_and_other_ends_of_lines_are_passed_over(fresh):
    assert read_fields(fresh(".csv", "\ufeffid,a\r\n1,2\r\n")) == {"1": {"a": 2}}
    assert read_fields(fresh(".csv", "id,a\r1,2\r")) == {"1": {"a": 2}}
    assert read_fields(fresh(".jsonl", '\ufeff{"id": 1}\r\n{"id": 2}')) == {"1": {}, "2": {}}


def test_a_header_alone_says_nothing_of_anybody(fresh):
    assert read_fields(fresh(".csv", "id,year\n")) == {}
    assert read_fields(fresh(".jsonl", "\n")) == {}


@pytest.mark.parametrize(
    ("suffix", "content", "problem"),
    [
        (".jsonl", '{"id": 1}\n{"id": 1}\n', "line 2: the id '1' stands there twice"),
        (".jsonl", '{"id": 1}\n\n{"id": "1"}\n', "line 3: the id '1' stands there twice"),
        (".csv", "id,a\nx,1\nx,2\n", "line 3: the id 'x' stands there twice"),
        (".jsonl", '{"id": "' + "x" * 9999 + '"}\n' + '{"id": "' + "x" * 9999 + '"}', "stands there twice"),
        (".jsonl", '{"year": 1}', "line 1: there is no `id`"),
        (".jsonl", '{"id": null}', "line 1: there is no `id`"),
        (".jsonl", '{"id": true}', "line 1: there is no `id`"),
        (".jsonl", '{"id": 1.5}', "line 1: there is no `id`"),
        (".jsonl", '{"id": ["a"]}', "line 1: there is no `id`"),
        (".csv", "id,a\n,5\n", "line 2: there is no `id`"),
        (".jsonl", "[1]", "line 1: '[1]' is no object"),
        (".jsonl", '"' + "x" * 5000 + '"', "is no object"),
        (".jsonl", '{"id": 1}\n{"id": 2', "line 2: "),
        (".jsonl", '{"id": 1} {"id": 2}', "line 1: Extra data"),
        (".jsonl", "{'id': 1}", "line 1: "),
        (".jsonl", '{"id": 1, "a": NaN}', "line 1: NaN is no number of JSON"),
        (".jsonl", '{"id": 1, "a": [Infinity]}', "line 1: Infinity is no number of JSON"),
        (".jsonl", '{"id": 1, "a": -Infinity}', "line 1: -Infinity is no number of JSON"),
        (".jsonl", '{"id": 1, "a": 1e999}', "line 1: 1e999 is too large a number"),
        (".jsonl", '{"id": 1, "a": -' + "9" * 400 + ".0}", "is too large a number"),
        (".jsonl", '{"id": ' + "9" * 5000 + "}", "line 1: "),
        (".jsonl", "[" * 100_000, "line 1: "),
        (".jsonl", '{"id": 1, "a": ' + '{"a":' * 50_000, "line 1: "),
        (".jsonl", '{"id": "' + "x" * (1 << 20) + '"}', "line 1: it has more than 1,048,576 characters"),
        (".csv", "id,a\n1," + "x" * (1 << 20) + "\n", "line 2: it has more than 1,048,576 characters"),
        (".csv", "id,a\n1," + "x" * 140_000 + "\n", "line 2: field larger than field limit"),
        (".csv", "id,a\n1,2,3\n", "line 2: 3 columns, but the header has 2"),
        (".csv", "id,a\n1\n", "line 2: 1 column, but the header has 2"),
        (".csv", "name,a\n1,2\n", "has the columns 'name, a'"),
        (".csv", "id;a\n1;2\n", "has the columns 'id;a'"),
        (".csv", "id,a,a\n1,2,3\n", "expected different names"),
        (".csv", "id,id\n1,2\n", "expected different names"),
        (".csv", "id,\n1,2\n", "expected different names"),
        (".csv", "\nid,a\n", "has the columns ''"),
        (".csv", ",".join(f"c{number}" for number in range(5000)), "expected different names"),
        (".csv", 'id,a\n1,"x\n', "line 2: unexpected end of data"),
        (".csv", 'id,a\n1,"x"y\n', "line 2: "),
        (".tsv", "id,a\n1,2\n", "has the columns 'id,a'"),
        (".csv", b"id,a\n1,\xff\n", "is not UTF-8 text"),
        (".jsonl", b'{"id": "\xe9"}', "is not UTF-8 text"),
        (".csv", "id,a\n1,2\n".encode("utf-16"), "is not UTF-8 text"),
        (".csv", b"", "is empty (0 bytes)"),
        (".json", "{}", "has the suffix '.json'"),
        ("", "id,a\n", "has the suffix ''"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line(refused, suffix, content, problem):
    assert problem in refused(suffix, content)


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    for name, problem in [("none.csv", "does not exist"), ("pipe.csv", "regular"), ("folder.csv", "a folder")]:
        with pytest.raises(FileFormatError, match=problem):
            read_fields(tmp_path / name)


def test_a_file_that_never_ends_a_line_is_not_read_to_its_end(fresh):
    path = fresh(".jsonl")
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no room on the disk
    with pytest.raises(FileFormatError, match="line 1: it has more than"):
        read_fields(path)


def test_a_number_with_more_digits_than_a_double_can_hold_stays_a_text(fresh):
    digits = "9" * 400
    assert read_fields(fresh(".csv", f"id,a,b\n1,{digits}.0,{digits}\n")) == {"1": {"a": f"{digits}.0", "b": digits}}


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
NAMES = st.text(st.characters(codec="utf-8")).filter(lambda name: name != "id")


@given(
    fields_of=st.dictionaries(
        st.text(st.characters(codec="utf-8")), st.dictionaries(NAMES, PLAIN, max_size=3), max_size=4
    )
)
@settings(max_examples=80, derandomize=True)
def test_whatever_json_can_say_is_read_back(fresh, fields_of):
    lines = [json.dumps({"id": name, **fields}) for name, fields in fields_of.items()]
    assert read_fields(fresh(".jsonl", "\n".join(lines) + "\n")) == fields_of


def finite(value):
    if isinstance(value, dict | list):
        return all(map(finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


def read_or_refused(path):
    """Whether a file is read, into finite values by text, or refused in few words; nothing else is raised."""
    try:
        found = read_fields(path)
    except FileFormatError as error:
        return str(path) in error.problem and len(str(error)) < 1500
    return all(type(name) is str and finite(fields) for name, fields in found.items())


PIECES = st.sampled_from(
    ['"', "'", ",", "\n", "\r", "\t", "id", "1", "{", "}", "[", ":", "NaN", "1e999", "\\u0000", "\\ud800", "\0", "é"]
)


@given(
    suffix=st.sampled_from([".csv", ".tsv", ".jsonl"]),
    content=st.binary(min_size=1, max_size=60)
    | st.lists(PIECES, min_size=1, max_size=20).map(lambda pieces: "".join(pieces).encode())
    | st.text(min_size=1, max_size=30).map(
        lambda text: f'id,a\n1,{text}\n{{"id": 1, "a": "{text}"}}'.encode(errors="ignore")
    ),
)
@example(suffix=".jsonl", content=b'{"id": "\\ud800"}\n{"id": "\\ud800"}')
@example(suffix=".csv", content=b"id,a\n\0,\0")
@settings(max_examples=300, derandomize=True)
def test_any_file_is_read_or_refused(fresh, suffix, content):
    assert read_or_refused(fresh(suffix, content))
