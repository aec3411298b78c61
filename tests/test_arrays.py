"""What the door for descriptors lets in, as what, and what it says to the rest."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from manifind import arrays as check
from manifind.arrays import check_descriptors
from manifind.errors import InputError, ManifindError

REAL_TYPES = ["float16", "float32", "float64", "longdouble", "int8", "int32", "int64", "uint8", "uint64", "bool"]


@settings(max_examples=60)
@given(st.data())
def test_any_real_matrix_comes_out_as_float32_with_the_same_values(data):
    dtype = data.draw(st.sampled_from(REAL_TYPES).map(np.dtype))
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=6))
    elements = None
    if dtype.kind == "f":
        elements = st.floats(-1000, 1000, width=16)  # exact in every type of float
    X = data.draw(hnp.arrays(np.float64 if dtype == np.longdouble else dtype, shape, elements=elements))
    X = X.astype(dtype)
    before = X.copy()
    out = check_descriptors(X)
    assert out.dtype == np.float32
    assert out.flags.c_contiguous
    assert out.shape == shape
    np.testing.assert_array_equal(out, X.astype(np.float32))
    np.testing.assert_array_equal(X, before)


@settings(max_examples=40)
@given(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
def test_only_non_empty_matrices_are_accepted(shape):
    X = np.ones(shape, dtype=np.float32)
    if len(shape) == 2 and min(shape) > 0:
        assert check_descriptors(X).shape == shape
    else:
        with pytest.raises(InputError, match=r"X (has|is empty)"):
            check_descriptors(X)


def test_a_float32_matrix_in_c_order_is_returned_without_a_copy():
    X = np.ones((3, 2), dtype=np.float32)
    assert check_descriptors(X) is X


def test_a_read_only_matrix_is_accepted_and_stays_read_only():
    X = np.ones((3, 2), dtype=np.float32)
    X.flags.writeable = False
    out = check_descriptors(X)
    assert out is X
    assert not X.flags.writeable


@pytest.mark.parametrize("view", ["columns", "rows", "reversed", "transposed", "fortran", "big endian"])
def test_the_memory_layout_does_not_change_the_values(view):
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    X = {
        "columns": base[:, ::2],
        "rows": base[::2],
        "reversed": base[::-1, ::-1],
        "transposed": base.T,
        "fortran": np.asfortranarray(base),
        "big endian": base.astype(">f4"),
    }[view]
    expected = X.tolist()
    out = check_descriptors(X)
    assert out.flags.c_contiguous
    assert out.dtype == np.dtype("=f4")
    assert out.tolist() == expected
    assert X.tolist() == expected


def test_nested_lists_are_a_matrix():
    out = check_descriptors([[1, 2], [3, 4.5]])
    assert out.dtype == np.float32
    assert out.tolist() == [[1, 2], [3, 4.5]]


def test_objects_that_are_numbers_are_accepted():
    assert check_descriptors(np.array([[1, 2.5]], dtype=object)).tolist() == [[1, 2.5]]


@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity"), (1e39, "too large for float32")]
)
@pytest.mark.parametrize("dtype", [np.float64, np.longdouble])
def test_a_number_that_is_not_finite_in_float32_is_refused_with_its_place(value, word, dtype):
    X = np.zeros((5, 3), dtype=dtype)
    X[3, 1] = value
    with pytest.raises(InputError) as refusal:
        check_descriptors(X, name="queries")
    assert word in refusal.value.problem
    assert "queries" in refusal.value.problem
    assert "row 3, column 1" in refusal.value.problem
    assert refusal.value.hint


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_nan_and_infinity_are_refused_in_narrow_floats_too(dtype):
    for value in (np.nan, np.inf):
        with pytest.raises(InputError, match="row 0, column 1"):
            check_descriptors(np.array([[0, value]], dtype=dtype))


def test_the_place_is_right_beyond_the_first_block(monkeypatch):
    monkeypatch.setattr(check, "_ROWS_PER_BLOCK", 4)
    X = np.zeros((11, 2), dtype=np.float32)
    X[9, 0] = np.nan
    with pytest.raises(InputError, match="row 9, column 0"):
        check_descriptors(X)


def test_the_largest_float32_is_accepted():
    largest = np.finfo(np.float32).max
    assert check_descriptors(np.array([[float(largest)]]))[0, 0] == largest


@pytest.mark.parametrize("matrix", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_a_sparse_matrix_is_refused_with_the_way_out(matrix):
    with pytest.raises(InputError, match="sparse") as refusal:
        check_descriptors(matrix(np.eye(3)))
    assert "toarray" in refusal.value.hint


def test_complex_numbers_are_refused():
    with pytest.raises(InputError, match="Complex data not supported"):
        check_descriptors(np.ones((2, 2), dtype=np.complex64))


@pytest.mark.parametrize(
    "X",
    [
        np.array([["a", "b"]]),
        np.array([[b"a"]]),
        np.array([["a", 1]], dtype=object),
        np.array([["2020-01-01"]], dtype="datetime64[D]"),
        [[1.0, 2.0], [3.0]],
    ],
    ids=["strings", "bytes", "objects", "dates", "ragged"],
)
def test_what_is_not_a_matrix_of_numbers_is_refused_as_input_error(X):
    with pytest.raises(InputError, match="X "):
        check_descriptors(X)


def test_objects_that_cannot_be_numbers_are_a_type_error():
    with pytest.raises(TypeError, match="X must be numbers"):
        check_descriptors(np.array([[{}, []]], dtype=object))


def test_an_input_error_is_both_ours_and_a_value_error():
    with pytest.raises(ValueError) as refusal:
        check_descriptors(np.zeros(3))
    assert isinstance(refusal.value, ManifindError)


def test_one_dimension_is_answered_with_how_to_reshape():
    with pytest.raises(InputError, match=r"shape \(3,\)") as refusal:
        check_descriptors(np.zeros(3))
    assert "reshape" in refusal.value.hint.lower()


def test_the_wrong_dimension_is_refused_with_both_numbers():
    with pytest.raises(InputError, match=r"Q has 3 features.*expecting 4 features"):
        check_descriptors(np.zeros((2, 3)), name="Q", dimension=4)


def test_the_right_dimension_passes():
    assert check_descriptors(np.zeros((2, 3)), dimension=3).shape == (2, 3)


@pytest.mark.parametrize("name", ["X", "Q"])
def test_a_row_that_float32_would_take_for_zeros_is_refused(name):
    X = np.ones((9000, 2))
    X[8500] = [1e-300, -1e-46]
    with pytest.raises(
        InputError, match=f"row 8500 of {name} has no number larger than 1e-46, which is zero"
    ) as refusal:
        check_descriptors(X, name)
    assert "multiply" in refusal.value.hint


def test_a_tiny_number_beside_others_is_zero_and_a_row_of_zeros_is_one():
    X = np.array([[1e-300, 1.0], [0.0, 0.0], [1e-44, 0.0]])
    np.testing.assert_array_equal(check_descriptors(X), X.astype(np.float32))


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.bool]
)
def test_a_tensor_is_a_matrix(dtype):
    X = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    out = check_descriptors(X)
    assert out.dtype == np.float32
    assert out.tolist() == [[0, 1, 1], [1, 0, 1]]


def test_a_tensor_with_a_gradient_is_accepted_and_keeps_it():
    X = torch.ones(3, 2, requires_grad=True)
    out = check_descriptors(X * 2)
    assert out.tolist() == [[2, 2]] * 3
    assert check_descriptors(X).shape == (3, 2)
    assert X.requires_grad


def test_a_float32_tensor_is_not_copied():
    X = torch.ones(3, 2)
    assert np.shares_memory(check_descriptors(X), X.numpy())


def test_a_tensor_of_any_layout_keeps_its_values():
    X = torch.arange(12.0).reshape(3, 4)
    assert check_descriptors(X.T).tolist() == X.T.tolist()
    assert check_descriptors(X[:, ::2]).tolist() == X[:, ::2].tolist()


def test_a_sparse_tensor_is_refused_with_the_way_out():
    with pytest.raises(InputError, match="Q is a sparse tensor") as refusal:
        check_descriptors(torch.eye(3).to_sparse(), "Q")
    assert "to_dense" in refusal.value.hint


def test_nan_in_a_tensor_is_refused_with_its_place():
    with pytest.raises(InputError, match="NaN at row 1, column 0"):
        check_descriptors(torch.tensor([[0.0], [float("nan")]], requires_grad=True))


@settings(max_examples=40, deadline=None)
@given(
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=st.floats(-9, 9, width=16))
)
def test_a_data_frame_is_the_matrix_of_its_columns(values):
    frame = pd.DataFrame(values, index=[f"item {i}" for i in range(len(values))])
    np.testing.assert_array_equal(check_descriptors(frame), values)


def test_columns_of_several_types_are_a_matrix():
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False], "d": pd.array([3, 4], dtype="Int64")})
    assert check_descriptors(frame).tolist() == [[1, 0.5, 1, 3], [2, 1.5, 0, 4]]


def test_a_missing_value_of_a_data_frame_is_named_with_its_place():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.array([1, None], dtype="Int64")})
    with pytest.raises(InputError, match="NaN at row 1, column 1"):
        check_descriptors(frame)


def test_a_column_of_words_is_refused():
    with pytest.raises(InputError, match="cannot be read as a matrix of numbers"):
        check_descriptors(pd.DataFrame({"a": [1.0, 2.0], "name": ["x", "y"]}))


def test_checking_an_array_imports_neither_torch_nor_pandas():
    code = (
        "import sys, numpy as np; from manifind.arrays import check_descriptors; check_descriptors(np.ones((2, 2)));"
        "sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
