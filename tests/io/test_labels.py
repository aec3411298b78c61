"""Labels in files: .npy arrays, and tables with a column `label`; anything else is refused."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.errors import FileFormatError
from manifind.io.tables import ItemLabels, read_labels

TABLE = "file,label\na.jpg,cat\nb.jpg,dog\n"


def npy(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array))
    return stream.getvalue()


def table(rows, delimiter=",") -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows(rows)
    return stream.getvalue()


def refusal(path: Path) -> FileFormatError:
    """Why a file is refused; the file is named, the message short."""
    with pytest.raises(FileFormatError) as caught:
        read_labels(path)
    assert str(path) in caught.value.problem
    assert len(str(caught.value)) < 1500
    return caught.value


def test_a_table_gives_labels_and_names(fresh):
    assert read_labels(fresh(".csv", TABLE)) == ItemLabels(["cat", "dog"], ["a.jpg", "b.jpg"])
    assert read_labels(fresh(".tsv", TABLE.replace(",", "\t"))) == read_labels(fresh(".csv", TABLE))


def test_a_path_may_be_a_string_and_its_suffix_in_capitals(fresh):
    assert read_labels(str(fresh(".CSV", TABLE))).values == ["cat", "dog"]


def test_a_table_without_names_gives_labels_alone(fresh):
    assert read_labels(fresh(".csv", "label\n3\n3\n")) == ItemLabels(["3", "3"], None)


@pytest.mark.parametrize("column", ["id", "file", "name", "Name", " FILE "])
def test_names_stand_under_any_of_three_headings_in_any_case(fresh, column):
    assert read_labels(fresh(".csv", f"Label ,{column}\ncat,a\n")) == ItemLabels(["cat"], ["a"])


def test_the_id_is_the_name_where_there_are_several(fresh):
    assert read_labels(fresh(".csv", "name,file,id,label\nn,f,i,cat\n")).names == ["i"]


def test_other_columns_and_blank_lines_are_ignored(fresh):
    text = "width,label,id,note\n3,cat,a,\n\n4,dog,b,x,too many\n"
    assert read_labels(fresh(".csv", text)) == ItemLabels(["cat", "dog"], ["a", "b"])


def test_spaces_a_byte_order_mark_and_windows_line_ends_do_not_matter(fresh):
    text = "\ufeff" + TABLE.replace(",", " , ").replace("\n", "\r\n")
    assert read_labels(fresh(".csv", text)) == ItemLabels(["cat", "dog"], ["a.jpg", "b.jpg"])


def test_quoted_cells_may_hold_delimiters_and_line_ends(fresh):
    text = table([["id", "label"], ["a,b", "two\nlines"], ['q"uote', "x"]])
    assert read_labels(fresh(".csv", text)) == ItemLabels(["two\nlines", "x"], ["a,b", 'q"uote'])


@pytest.mark.parametrize("dtype", ["i1", "u2", "<i4", ">i8", "u8"])
def test_an_array_of_whole_numbers_gives_them(fresh, dtype):
    assert read_labels(fresh(".npy", npy(np.array([3, 1, 3], dtype)))) == ItemLabels([3, 1, 3], None)


def test_an_array_of_strings_gives_them(fresh):
    assert read_labels(fresh(".npy", npy(["cat", "été", ""]))) == ItemLabels(["cat", "été", ""], None)


@settings(max_examples=100)
@given(
    rows=st.lists(
        st.tuples(st.text(max_size=6), st.text(max_size=6)), min_size=1, max_size=6, unique_by=lambda r: r[0].strip()
    ),
    suffix=st.sampled_from([".csv", ".tsv"]),
)
def test_any_text_is_read_back_without_the_spaces_around_it(fresh, rows, suffix):
    content = table([("id", "label"), *rows], "," if suffix == ".csv" else "\t")
    try:
        path = fresh(suffix, content)
    except UnicodeEncodeError:
        return  # half a surrogate pair cannot be written in the first place
    names, values = ([cell.strip() for cell in column] for column in zip(*rows, strict=True))
    if all(names) and all(values):
        assert read_labels(path) == ItemLabels(values, names)
    else:
        refusal(path)


def test_a_table_without_the_column_is_refused_with_those_it_has(fresh):
    error = refusal(fresh(".csv", "file,class\na,cat\n"))
    assert "starts with the columns file, class; expected `label`" in error.problem
    assert "id,label" in error.hint


def test_a_table_of_another_delimiter_is_refused_as_having_one_column(fresh):
    assert "starts with the columns file\tlabel;" in refusal(fresh(".csv", TABLE.replace(",", "\t"))).problem
    assert "starts with the columns file,label;" in refusal(fresh(".tsv", TABLE)).problem


@pytest.mark.parametrize("content", ["\n", "\n\n\n", " \n"])
def test_a_table_of_blank_lines_is_refused(fresh, content):
    assert "expected `label`" in refusal(fresh(".csv", content)).problem


@pytest.mark.parametrize("content", ["label\n", "id,label", "id,label\n\n"])
def test_a_header_alone_is_refused(fresh, content):
    error = refusal(fresh(".csv", content))
    assert "has a header only; expected one item a line" in error.problem
    assert error.hint


@pytest.mark.parametrize("line", ["c,", "c", "c,  "])
def test_an_item_without_a_label_is_refused_with_its_line(fresh, line):
    error = refusal(fresh(".csv", f"{TABLE}{line}\n"))
    assert ", line 4 has no label" in error.problem
    assert error.hint


def test_an_item_without_a_name_is_refused_with_its_line(fresh):
    assert ", line 4 has no file" in refusal(fresh(".csv", f"{TABLE},cat\n")).problem


def test_the_number_of_a_line_is_that_of_the_file(fresh):
    assert ", line 5 has no label" in refusal(fresh(".csv", f"{TABLE}\nc,\n")).problem


def test_a_name_twice_is_refused_with_both_rows(fresh):
    error = refusal(fresh(".csv", f"{TABLE}a.jpg,dog\n"))
    assert "'a.jpg' twice, in rows 0 and 2" in error.problem
    assert error.hint


@pytest.mark.parametrize(
    "content", [TABLE.encode("utf-16"), b"file,label\na,\xe9t\xe9\n", b'label\n"a"b\n', b'label\n"a']
)
def test_text_that_is_not_utf_8_or_not_a_table_is_refused(fresh, content):
    error = refusal(fresh(".csv", content))
    assert "line " in error.problem
    assert error.hint


def test_a_cell_beyond_all_measure_is_refused(fresh):
    assert "field larger than" in refusal(fresh(".csv", f"label\n{'x' * 200_000}\n")).problem


@pytest.mark.parametrize("shape", [(2, 2), (0,), (), (3, 1)])
def test_an_array_of_another_shape_is_refused_with_it(fresh, shape):
    error = refusal(fresh(".npy", npy(np.zeros(shape, int))))
    assert f"has shape {shape}; expected (n,), one label per item" in error.problem


def test_an_array_of_another_shape_is_refused_with_a_hint(fresh):
    assert refusal(fresh(".npy", npy(np.zeros((3, 1), int)))).hint


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros(3, bool), np.array([b"a"])])
def test_an_array_of_another_type_is_refused_with_it(fresh, array):
    error = refusal(fresh(".npy", npy(array)))
    assert array.dtype.str in error.problem
    assert "expected whole numbers or strings" in error.problem
    assert error.hint


def test_an_array_of_objects_is_refused_unopened(fresh):
    assert "Python objects" in refusal(fresh(".npy", npy(np.array(["a", 1], dtype=object)))).problem


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".npy"])
def test_an_empty_file_a_folder_and_a_missing_file_are_refused(fresh, tmp_path, suffix):
    assert "is empty (0 bytes); expected labels: .npy, .csv, .tsv" in refusal(fresh(suffix, b"")).problem
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    assert "is a folder" in refusal(folder).problem
    assert "does not exist" in refusal(tmp_path / f"missing{suffix}").problem


@pytest.mark.parametrize("array", [[2, 0, 1], ["a", "bc"]], ids=["numbers", "strings"])
def test_an_array_cut_at_any_length_is_refused(fresh, array):
    content = npy(array)
    for length in range(len(content)):
        refusal(fresh(".npy", content[:length]))


def changed(content: bytes, data: st.DataObject) -> bytes:
    edits = st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), min_size=1, max_size=6)
    copy = bytearray(content)
    for position, byte in data.draw(edits):
        copy[position] = byte
    return bytes(copy)


def refused_or_read(path: Path) -> None:
    try:
        values, names = read_labels(path)
    except FileFormatError:
        return
    assert len({type(value) for value in values}) == 1
    assert isinstance(values[0], str | int)
    assert names is None or len(set(names)) == len(names) == len(values)


SAMPLES = [(".csv", TABLE.encode()), (".npy", npy([2, 0, 1])), (".npy", npy(["a", "bc"]))]


@pytest.mark.parametrize(("suffix", "content"), SAMPLES, ids=["table", "numbers", "strings"])
@settings(max_examples=300)
@given(data=st.data())
def test_a_file_changed_anywhere_is_refused_or_read_as_labels(fresh, suffix, content, data):
    refused_or_read(fresh(suffix, changed(content, data)))


@settings(max_examples=200)
@given(content=st.one_of(st.binary(max_size=60), st.text(max_size=60)), suffix=st.sampled_from([".csv", ".tsv"]))
def test_any_bytes_and_any_text_behind_a_header_are_refused_or_read_as_labels(fresh, content, suffix):
    try:
        tail = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError:
        return
    refused_or_read(fresh(suffix, b"label\n" + tail))
