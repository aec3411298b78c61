"""The .fvecs reader: rows of one length come back, anything else is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as arrays

from manifind.io.vectors import read_vectors

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def encoded(matrix: np.ndarray) -> bytes:
    lengths = np.full((len(matrix), 1), matrix.shape[1], "<i4")
    return np.hstack([lengths, matrix.astype("<f4").view("<i4")]).tobytes()


@given(matrix=arrays.arrays(np.float32, arrays.array_shapes(min_dims=2, max_dims=2, max_side=8)))
def test_every_matrix_comes_back_bit_for_bit(fresh, matrix):
    vectors = read_vectors(fresh(".fvecs", encoded(matrix)))
    assert vectors.rows.dtype == np.float32
    assert vectors.rows.shape == matrix.shape
    assert vectors.rows.flags.c_contiguous
    assert vectors.rows.tobytes() == matrix.tobytes()
    assert vectors.ids is None


@pytest.mark.parametrize("d", [0, -1, -(2**31), 2**31 - 1, 2, 4])
def test_a_dimension_that_does_not_fit_the_file_is_refused(fresh, refusal, d):
    content = d.to_bytes(4, "little", signed=True) + encoded(X)[4:]
    assert f"a first row of {d} numbers" in refusal(fresh(".fvecs", content))


def test_the_first_row_of_another_dimension_is_named(fresh, refusal):
    words = np.frombuffer(encoded(X), "<i4").reshape(4, 4).copy()
    words[2:, 0] = 7, 8
    assert "has 7 numbers in row 2 (counted from 0) but 3 in row 0" in refusal(fresh(".fvecs", words.tobytes()))
