"""The .npy reader: what NumPy writes comes back, and a header is believed only when the file bears it out."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from manifind.io.vectors import read_vectors

X = np.arange(12, dtype=np.float32).reshape(4, 3)
PLAIN = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }"

REAL = st.one_of(
    arrays.floating_dtypes(), arrays.integer_dtypes(), arrays.unsigned_integer_dtypes(), arrays.boolean_dtypes()
)
MATRICES = REAL.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6)))


def with_header(header: str, data: bytes = X.tobytes(), version: int = 1) -> bytes:
    width = 2 if version == 1 else 4
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(width, "little") + header.encode() + data


def saved(fresh, array, **options):
    path = fresh(".npy")
    np.save(path, array, **options)
    return path


@given(matrix=MATRICES)
def test_every_real_matrix_comes_back_bit_for_bit(fresh, matrix):
    vectors = read_vectors(saved(fresh, matrix))
    assert vectors.rows.dtype == matrix.dtype
    assert vectors.rows.shape == matrix.shape
    assert vectors.rows.tobytes() == matrix.tobytes()
    assert vectors.ids is None


def test_the_rows_are_a_map_of_the_file_that_cannot_be_written_to(fresh):
    rows = read_vectors(saved(fresh, X)).rows
    assert isinstance(rows, np.memmap)
    assert not rows.flags.writeable


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    "header",
    [
        PLAIN,
        PLAIN + "\n",
        PLAIN.replace("'", '"'),
        PLAIN.replace("4, 3", "4L, 3L"),
        "{'shape':(4,3),'fortran_order':False,'descr':'<f4'}",
    ],
)
def test_headers_of_every_version_and_writer_are_read(fresh, version, header):
    rows = read_vectors(fresh(".npy", with_header(header, version=version))).rows
    np.testing.assert_array_equal(rows, X)


def test_rows_behind_a_header_of_odd_length_come_out_aligned(fresh):
    for padding in range(4):
        rows = read_vectors(fresh(".npy", with_header(PLAIN + " " * padding))).rows
        assert rows.flags.aligned
        np.testing.assert_array_equal(rows, X)


@pytest.mark.parametrize("shape", [(), (12,), (2, 2, 3), (1,) * 30])
def test_any_number_of_dimensions_but_two_is_refused(fresh, refusal, shape):
    assert "expected two dimensions" in refusal(saved(fresh, np.zeros(shape)))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_a_matrix_without_a_number_is_refused(fresh, refusal, shape):
    assert "holds no vectors" in refusal(saved(fresh, np.zeros(shape)))


def test_fortran_order_keeps_its_numbers_in_place(fresh):
    np.testing.assert_array_equal(read_vectors(saved(fresh, np.asfortranarray(X))).rows, X)


@pytest.mark.parametrize("dtype", ["c8", "U3", "S3", "M8[s]", "V4", [("a", "f4")]])
def test_a_type_that_is_not_a_real_number_is_refused(fresh, refusal, dtype):
    assert "expected real numbers" in refusal(saved(fresh, np.zeros((4, 3), dtype)))


@pytest.mark.parametrize("name", ["<f3", "<i99999999", "4", "", "<U0"])
def test_a_type_that_does_not_exist_is_refused(fresh, refusal, name):
    problem = refusal(fresh(".npy", with_header(PLAIN.replace("<f4", name))))
    assert "no valid header of a NumPy array" in problem or "expected real numbers" in problem


class Trap:
    """An object whose pickle makes a folder when it is opened."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_objects_are_refused_and_their_pickle_is_never_opened(fresh, refusal, tmp_path):
    path = saved(fresh, np.array([[Trap(tmp_path / "sprung")]], dtype=object), allow_pickle=True)
    assert "Python objects" in refusal(path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "content",
    [b"\x93NUMP", b"PK\x03\x04 not an array", b"\x93NUMPY\x04\x00" + bytes(80), b"\x93NUMPY\x01\x01" + bytes(80)],
)
def test_a_file_that_does_not_start_like_an_array_is_refused(fresh, refusal, content):
    assert "no valid header of a NumPy array" in refusal(fresh(".npy", content))


@pytest.mark.parametrize(
    "content",
    [with_header(""), b"\x93NUMPY\x01\x00", with_header(PLAIN)[:40], b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(80)],
)
def test_a_header_of_impossible_length_is_refused(fresh, refusal, content):
    assert "no valid header of a NumPy array" in refusal(fresh(".npy", content))


@pytest.mark.parametrize(
    "header",
    [
        PLAIN.replace("descr", "desc"),
        PLAIN.replace("False", "Perhaps"),
        PLAIN.replace("shape", "form"),
        PLAIN.replace("4, 3", "-4, -3"),
        PLAIN.replace("4, 3", "4, , 3"),
        PLAIN.replace("4, 3", "__import__('os'"),
        PLAIN.replace("4, 3", "4e1, 3"),
        "(" * 5000,
        "\\N{",
    ],
)
def test_a_header_that_says_something_else_is_refused(fresh, refusal, header):
    assert "no valid header of a NumPy array" in refusal(fresh(".npy", with_header(header)))


@pytest.mark.parametrize("shape", ["4, 4", "3, 3", "999999999999999999, 999999999999999999", "1000000000, 1000"])
def test_a_shape_that_the_file_does_not_bear_out_is_refused_without_memory_for_it(fresh, refusal, shape):
    path = fresh(".npy", with_header(PLAIN.replace("4, 3", shape)))
    tracemalloc.start()
    try:
        assert "48 follow the header" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
