"""The .mat reader of vectors: both published layouts, columns that become rows, and files that lie."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from manifind.errors import MissingExtraError
from manifind.io.vectors import read_vectors
from reference.files import (
    CELL,
    DOUBLE,
    MI_DOUBLE,
    MI_UINT8,
    array,
    by_hand,
    deflated,
    element,
    mat5,
    mat73,
    published_by_iscen,
)

X = np.arange(12, dtype=np.float32).reshape(4, 3)
Q = X[:2] + 0.5


def saved73(path, **matrices):
    pytest.importorskip("h5py")
    with mat73(path) as mat:
        for name, matrix in matrices.items():
            mat.numbers(name, matrix)
    return path


WRITERS = {
    "compressed": mat5,
    "stored": lambda path, **matrices: mat5(path, compressed=False, **matrices),
    "7.3": saved73,
}


@pytest.fixture(params=WRITERS.values(), ids=WRITERS.keys())
def write(request):
    return request.param


def test_columns_of_x_and_q_become_rows_and_queries_of_the_same_type(fresh, write):
    for dtype in (np.float32, np.float64):
        vectors = read_vectors(write(fresh(".mat"), X=X.T.astype(dtype), Q=Q.T.astype(dtype)))
        assert vectors.rows.dtype == vectors.queries.dtype == dtype
        np.testing.assert_array_equal(vectors.rows, X)
        np.testing.assert_array_equal(vectors.queries, Q)
        assert vectors.ids is None


@settings(max_examples=50)
@given(
    matrix=st.sampled_from(["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6))
    ),
    name=st.sampled_from(sorted(WRITERS)),
)
def test_every_real_matrix_comes_back_number_for_number(fresh, matrix, name):
    vectors = read_vectors(WRITERS[name](fresh(".mat"), X=matrix))
    assert vectors.rows.dtype == matrix.dtype
    np.testing.assert_array_equal(vectors.rows, matrix.T)
    assert vectors.queries is None


def test_the_reader_of_version_5_agrees_with_scipy(fresh):
    path = mat5(fresh(".mat"), X=np.random.default_rng(0).standard_normal((3, 5)), Q=np.ones((3, 2), np.int16))
    theirs = scipy.io.loadmat(path)
    ours = read_vectors(path)
    np.testing.assert_array_equal(ours.rows, theirs["X"].T)
    np.testing.assert_array_equal(ours.queries, theirs["Q"].T)
    assert ours.queries.dtype == theirs["Q"].dtype


def test_doubles_that_matlab_stores_in_bytes_come_out_as_doubles(fresh):
    content = by_hand(array("X", DOUBLE, (2, 3), element(MI_UINT8, bytes(range(6)))))
    vectors = read_vectors(fresh(".mat", content))
    assert vectors.rows.dtype == np.float64
    np.testing.assert_array_equal(vectors.rows, [[0, 1], [2, 3], [4, 5]])


def test_a_file_of_the_other_byte_order_is_read(fresh):
    numbers = element(MI_DOUBLE, np.arange(6, dtype=">f8").tobytes(), ">")
    content = by_hand(array("X", DOUBLE, (2, 3), numbers, ">"), order=">")
    np.testing.assert_array_equal(read_vectors(fresh(".mat", content)).rows, [[0, 1], [2, 3], [4, 5]])


def test_other_variables_are_left_alone_whatever_they_are(fresh):
    nested = array("other", CELL, (1, 1), array("", CELL, (1, 1), array("", CELL, (1, 1), b"?")))
    unknown = array("handle", 16, (1, 1), b"no one knows")
    wanted = array("X", DOUBLE, (1, 1), element(MI_DOUBLE, bytes(8)))
    assert read_vectors(fresh(".mat", by_hand(nested, deflated(unknown), wanted))).rows.shape == (1, 1)


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"Q": Q.T}, "has no matrix X"),
        ({"Y": X.T}, "has no matrix X"),
        ({"X": np.empty((3, 0))}, "holds no vectors"),
        ({"X": np.ones((2, 3, 4))}, "expected two dimensions"),
        ({"X": X.T.astype(complex)}, "holds complex128; expected real numbers"),
        ({"X": "text"}, "'X' in"),
        ({"X": {"a": 1}}, "'X' in"),
        ({"X": X.T, "Q": np.ones((2, 5))}, "has 2 columns; expected 3"),
        ({"X": X.T, "Q": "none"}, "'Q' in"),
    ],
)
def test_variables_that_hold_no_clear_vectors_are_refused(fresh, refusal, variables, problem):
    assert problem in refusal(mat5(fresh(".mat"), **variables))


def test_the_same_holds_for_version_7_3(fresh, refusal):
    assert "has no matrix X" in refusal(saved73(fresh(".mat"), Q=Q.T))
    assert "expected two dimensions" in refusal(saved73(fresh(".mat"), X=np.empty((3, 0))))
    assert "expected 3" in refusal(saved73(fresh(".mat"), X=X.T, Q=np.ones((2, 5))))
    assert "expected real numbers" in refusal(saved73(fresh(".mat"), X=X.T.astype(complex)))


def test_version_4_and_other_formats_are_refused(fresh, refusal):
    path = fresh(".mat")
    with path.open("wb") as stream:
        scipy.io.savemat(stream, {"X": X.T}, format="4")
    assert "header of version 5" in refusal(path)
    assert "header of version 5" in refusal(fresh(".mat", b"X = [1 2 3]"))


NUMBERS = element(MI_DOUBLE, bytes(48))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (array("X", DOUBLE, (2, 4), NUMBERS), "cannot reshape array of size 6"),
        (array("X", DOUBLE, (2, 2), NUMBERS), "cannot reshape array of size 6"),
        (array("X", DOUBLE, (-2, -3), NUMBERS), "has the shape (-2, -3)"),
        (array("X", DOUBLE, (6,), NUMBERS), "'X' has the shape (6,)"),
        (array("X", DOUBLE, (2, 3), element(8, bytes(48))), "crashes: its process was ended by SIGSEGV"),
        (array("X", DOUBLE, (2, 3), b""), "could not read bytes"),
        (array("X", 5, (2, 3), NUMBERS), "could not read bytes"),
        (array("X", 99, (2, 3), NUMBERS), "cannot be read as a MATLAB file"),
        (array("X", CELL, (1, 2), NUMBERS), "Expecting matrix here"),
        (array("X", CELL, (2**20, 2**10), NUMBERS), "would grow from"),
        (array("X" * 70, DOUBLE, (2, 3), NUMBERS), "has no matrix X"),
        (array("X", DOUBLE, (2, 3), NUMBERS) * 2, "two variables of one name"),
        (element(MI_DOUBLE, bytes(8)), "type 9 where a variable should be"),
        (deflated(element(MI_DOUBLE, bytes(8))), "Expecting miMATRIX type here, got 9"),
        (deflated(array("X", DOUBLE, (2, 3), NUMBERS))[:-3], "are missing at its end"),
        (array("X", DOUBLE, (2**15, 2**15), element(MI_UINT8, b"")), "would grow from"),
        (deflated(array("X", DOUBLE, (2**15, 2**15), element(MI_UINT8, b""))), "would grow from"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(fresh, refusal, content, problem):
    assert problem in refusal(fresh(".mat", by_hand(content)))


def test_a_compressed_variable_with_a_wrong_checksum_is_refused(fresh, refusal):
    content = bytearray(deflated(array("X", DOUBLE, (2, 3), NUMBERS)))
    content[-1] ^= 1
    assert "incorrect data check" in refusal(fresh(".mat", by_hand(bytes(content))))


def test_cells_inside_cells_without_end_are_refused_and_crash_nothing(fresh, refusal):
    head = array("", CELL, (1, 1), b"")
    layers, inside = [], 0
    for _ in range(100_000):
        layers.append(head[:4] + (len(head) - 8 + inside).to_bytes(4, "little") + head[8:])
        inside += len(head)
    content = array("X", CELL, (1, 1), b"".join(reversed(layers)))
    assert "crashes: its process was ended by SIGSEGV" in refusal(fresh(".mat", by_hand(deflated(content))))


def test_cells_that_are_nested_deeper_than_any_list_are_refused(fresh, refusal):
    nested = array("", DOUBLE, (1, 1), element(MI_DOUBLE, bytes(8)))
    for _ in range(8):
        nested = array("", CELL, (1, 1), nested)
    assert "arrays inside arrays" in refusal(fresh(".mat", by_hand(array("X", CELL, (1, 1), nested))))


def test_a_bomb_is_refused_without_memory_for_it(fresh, refusal):
    path = mat5(fresh(".mat"), X=np.zeros((20_000, 15_000), np.uint8))
    tracemalloc.start()
    try:
        assert "would grow from" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("column", [True, False])
def test_the_global_vectors_of_iscen_are_read(fresh, column):
    pytest.importorskip("h5py")
    images, queries = [X[:2], X[2:3], X[1:4]], [X[:1], X]
    vectors = read_vectors(published_by_iscen(fresh(".mat"), images, queries, column=column))
    np.testing.assert_array_equal(vectors.rows, [one.mean(0) for one in images])
    np.testing.assert_array_equal(vectors.queries, [one.mean(0) for one in queries])
    assert vectors.rows.dtype == np.float32
    assert vectors.ids is None


def test_the_layout_is_told_by_content_and_not_by_name(fresh):
    pytest.importorskip("h5py")
    path = fresh("_gem_X_Q.mat")
    assert read_vectors(published_by_iscen(path, [X], [X])).rows.shape == (1, 3)


def test_two_global_vectors_for_one_image_are_refused(fresh, refusal):
    pytest.importorskip("h5py")
    path = fresh(".mat")
    with mat73(path) as mat:
        group = mat.file.create_group("glob")
        mat.cells("V", [X[:1].T, X[:2].T], group)
        mat.cells("Q", [X[:1].T], group)
    assert "'glob/V'" in refusal(path)


def test_without_h5py_the_extra_is_named_and_version_5_needs_none(fresh, monkeypatch, no_child):
    path = saved73(fresh(".mat"), X=X.T)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match="needs h5py") as caught:
        read_vectors(path)
    assert caught.value.hint == 'pip install "manifind[data]"'
    assert read_vectors(mat5(fresh(".mat"), X=X.T)).rows.shape == X.shape
