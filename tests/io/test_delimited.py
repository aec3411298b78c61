"""The .csv and .tsv reader: headers and ids, and errors that point at the line and the column."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from manifind.io.vectors import read_vectors


@given(
    matrix=arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6)),
    header=st.booleans(),
    ids=st.booleans(),
    table=st.sampled_from([(".csv", ","), (".tsv", "\t")]),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_every_matrix_comes_back_number_for_number(fresh, matrix, header, ids, table, newline):
    suffix, delimiter = table
    lines = [[repr(float(number)) for number in row] for row in matrix]
    if ids:
        lines = [[f"item {i}", *line] for i, line in enumerate(lines)]
    if ids or header:
        lines.insert(0, ["ID"] * ids + [f"x{column}" for column in range(matrix.shape[1])])
    vectors = read_vectors(fresh(suffix, newline.join(map(delimiter.join, lines))))
    assert vectors.rows.dtype == np.float64
    np.testing.assert_array_equal(vectors.rows, matrix)
    assert vectors.ids == ([f"item {i}" for i in range(len(matrix))] if ids else None)


@pytest.mark.parametrize(
    ("column", "ids"),
    [
        (["3", "-1", "0"], [3, -1, 0]),
        (["007", "08", "9"], ["007", "08", "9"]),
        (["7", "8", "x"], ["7", "8", "x"]),
        (["1_0", "2", "3"], ["1_0", "2", "3"]),
        (["1" * 19, "2", "3"], ["1" * 19, "2", "3"]),
        ([" a", '"b,""c"', "é"], [" a", 'b,"c', "é"]),
    ],
)
def test_ids_are_integers_only_if_every_one_is_written_as_one(fresh, column, ids):
    vectors = read_vectors(fresh(".csv", "Id,x\n" + "\n".join(f"{name},1" for name in column)))
    assert vectors.ids == ids


def test_blank_lines_and_a_byte_order_mark_are_skipped(fresh):
    vectors = read_vectors(fresh(".csv", "\ufeff\nid,x,y\n\na,1,2\n\n\nb,3,4\n\n"))
    assert vectors.ids == ["a", "b"]
    np.testing.assert_array_equal(vectors.rows, [[1, 2], [3, 4]])


def test_a_header_without_id_leaves_the_rows_without_ids(fresh):
    vectors = read_vectors(fresh(".csv", "x,y\n1,2\n"))
    assert vectors == (pytest.approx(np.array([[1, 2]])), None, None)


def test_not_finite_numbers_are_left_for_the_check_of_descriptors(fresh):
    np.testing.assert_array_equal(
        read_vectors(fresh(".csv", "nan,inf\n1,-inf\n")).rows, [[np.nan, np.inf], [1, -np.inf]]
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1,2\n3,four\n", "line 2, column 2: 'four' is not a number"),
        ("id,x\na,1\n\nb,zwei\n", "line 4, column 2: 'zwei' is not a number"),
        ("id,x\na,\n", "line 2, column 2: '' is not a number"),
        ("1,2\n1_5,2\n", "line 2, column 1: '1_5' is not a number"),
        ("cat.jpg,1,2\ndog.jpg,3,4\n", "line 1, column 1: 'cat.jpg' is not a number"),
        (",0,1\n0,1,2\n", "line 1, column 1: '' is not a number"),
        (",\n1,2\n", "line 1, column 1: '' is not a number"),
        ("x\n1;2\n", "line 2, column 1: '1;2' is not a number"),
        ("1,2\n" + "z" * 10_000 + ",2\n", "line 2, column 1: 'zzz"),
    ],
)
def test_what_is_not_a_number_is_shown_with_its_line_and_column(fresh, refusal, text, problem):
    assert problem in refusal(fresh(".csv", text))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1,2\n\n3\n", "line 3: 1 column, but line 1 has 2"),
        ("id,x\na,1,2\n", "line 2: 3 columns, but line 1 has 2"),
        ('1,"2\n2"\n3', "line 2, column 2: '2\\n2' is not a number"),
    ],
)
def test_ragged_lines_are_named(fresh, refusal, text, problem):
    assert problem in refusal(fresh(".csv", text))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\n\n", "only blank lines"),
        ("id,x\n", "holds no vectors"),
        ("id\na\nb\n", "holds no vectors"),
        ("x,id\n1,2\n", "the column `id` is not the first"),
        ("0,1,2\n5,6,7\n", "counts from 0 to 2"),
        ("id,x\na,1\nb,2\na,3\n", "has the id 'a' twice, in rows 0 and 2"),
        ("id,x\n1,1\n1,2\n", "has the id 1 twice, in rows 0 and 1"),
        ("id,x\na,1\n,2\n", "empty id in row 1"),
        ('1,"2\n', "line 1: unexpected end of data"),
        ('1,"2"3\n', "line 1: ',' expected"),
        ("1," + "2" * 200_000, "line 1: field larger than field limit"),
        (b"1,2\n3,\xff\n", "not UTF-8"),
        ("1,2\n".encode("utf-16"), "not UTF-8"),
    ],
)
def test_tables_that_hold_no_clear_vectors_are_refused(fresh, refusal, text, problem):
    assert problem in refusal(fresh(".csv", text))


def test_two_columns_may_start_with_the_vector_0_1(fresh):
    np.testing.assert_array_equal(read_vectors(fresh(".csv", "0,1\n2,3\n")).rows, [[0, 1], [2, 3]])


def test_a_million_numbers_are_read_in_seconds(fresh):
    line = ",".join(f"{number:.8g}" for number in np.random.default_rng(0).standard_normal(128)) + "\n"
    path = fresh(".csv", line * 8000)
    start = time.perf_counter()
    assert read_vectors(path).rows.shape == (8000, 128)
    assert time.perf_counter() - start < 5  # about 0.5 s on two idle cores
