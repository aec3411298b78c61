"""The .parquet reader: lists or columns become rows, and nothing missing is filled in."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gradnet.errors import MissingExtraError
from gradnet.formats import checks, parquet, read_vectors

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

X = np.arange(12, dtype=np.float32).reshape(4, 3)
LISTS = [
    lambda kind, d: pa.list_(kind),
    lambda kind, d: pa.large_list(kind),
    lambda kind, d: pa.list_(kind, d),
]
DTYPES = ["f2", "f4", "f8", "i1", "i8", "u2", "u8", "?"]
MATRICES = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6))
)


def saved(fresh, columns, **options):
    path = fresh(".parquet")
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)
    return path


def lists(matrix=X, make=LISTS[0]):
    return pa.array(list(matrix), make(pa.from_numpy_dtype(matrix.dtype), matrix.shape[1]))


@given(matrix=MATRICES, make=st.sampled_from(LISTS), rows_per_group=st.integers(1, 4))
def test_every_matrix_comes_back_from_lists(fresh, matrix, make, rows_per_group):
    vectors = read_vectors(saved(fresh, {"vector": lists(matrix, make)}, row_group_size=rows_per_group))
    assert vectors.rows.dtype == matrix.dtype
    np.testing.assert_array_equal(vectors.rows, matrix)
    assert vectors.ids is None


@given(matrix=MATRICES)
def test_every_matrix_comes_back_from_columns(fresh, matrix):
    vectors = read_vectors(
        saved(fresh, {f"x.{c}": np.ascontiguousarray(matrix[:, c]) for c in range(matrix.shape[1])})
    )
    assert vectors.rows.dtype == matrix.dtype
    np.testing.assert_array_equal(vectors.rows, matrix)


@pytest.mark.parametrize(
    "ids",
    [
        pa.array(["d", "c", "é", "a"]),
        pa.array(["d", "c", "b", "a"], pa.large_string()),
        pa.array(["d", "c", "b", "a"]).dictionary_encode(),
        pa.array([4, 3, 2, 2**63], pa.uint64()),
    ],
)
def test_strings_and_integers_come_back_as_ids_beside_lists_and_columns(fresh, ids):
    for columns in ({"v": lists()}, {"x": X[:, 0], "y": X[:, 1]}):
        vectors = read_vectors(saved(fresh, {**columns, "ID": ids}))
        assert vectors.ids == ids.to_pylist()
        assert vectors.rows.shape == (4, 3 if "v" in columns else 2)


def test_rows_keep_their_order_over_many_batches(fresh, monkeypatch):
    monkeypatch.setattr(parquet, "_ROWS_PER_BATCH", 7)
    matrix = np.random.default_rng(0).standard_normal((100, 3))
    vectors = read_vectors(saved(fresh, {"v": lists(matrix), "id": np.arange(100)}, row_group_size=9))
    np.testing.assert_array_equal(vectors.rows, matrix)
    assert vectors.ids == list(range(100))


def test_other_columns_beside_the_lists_are_left_alone(fresh):
    columns = {
        "url": ["a"] * 4,
        "label": [1] * 4,
        "tags": [["x"]] * 4,
        "v": lists(),
        "__index_level_0__": [0] * 4,
    }
    np.testing.assert_array_equal(read_vectors(saved(fresh, columns)).rows, X)


def test_the_index_that_pandas_adds_is_not_a_dimension(fresh):
    columns = {"x": X[:, 0], "y": X[:, 1], "__index_level_0__": [9, 9, 9, 9]}
    np.testing.assert_array_equal(read_vectors(saved(fresh, columns)).rows, X[:, :2])


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"v": lists(), "w": lists()}, "several columns of lists of numbers, ['v', 'w']"),
        ({"x": [1.0], "s": ["a"]}, "besides numbers it has ['s: string']"),
        ({"t": [["a"]]}, "has no column of lists of numbers"),
        ({"id": [1]}, "has no column of lists of numbers"),
        ({"id": [1], "Id": [1], "x": [1]}, "has the columns id and Id"),
        ({"x": pa.array([], pa.float32())}, "holds no vectors: its shape is (0, 1)"),
        ({"v": pa.array([], pa.list_(pa.float32()))}, "holds no vectors: its shape is (0, 0)"),
        ({"v": pa.array([], pa.list_(pa.float32(), 3))}, "holds no vectors"),
        ({"v": pa.array([[], []], pa.list_(pa.float32()))}, "holds no vectors: its shape is (2, 0)"),
        ({"v": [[1, 2], [3, 4], [5]]}, "has 1 numbers in row 2 (counted from 0) but 2 in row 0"),
        ({"v": [[1, 2], None, [5, 6]]}, "the column 'v'"),
        ({"v": [[1, 2], None, [5, 6]]}, "is null in row 1 (counted from 0)"),
        ({"v": [[1, 2], [3, 4], [None, 6]]}, "is null in row 2 (counted from 0)"),
        ({"v": pa.array([[1, 2], [3, None]], pa.list_(pa.int8(), 2))}, "is null in row 1 (counted from 0)"),
        ({"x": [1.0, 2.0], "y": [1.0, None]}, "the column 'y'"),
        ({"x": [1.0, 2.0], "y": [1.0, None]}, "is null in row 1 (counted from 0)"),
        ({"x": [1.0, 2.0], "id": ["a", None]}, "is null in row 1 (counted from 0)"),
        ({"x": [1.0, 2.0], "id": ["a", "a"]}, "has the id 'a' twice, in rows 0 and 1"),
        ({"x": [1.0, 2.0], "id": [1.0, 2.0]}, "has the type double; expected strings or integers"),
    ],
)
def test_tables_that_hold_no_clear_vectors_are_refused(fresh, refusal, columns, problem):
    assert problem in refusal(saved(fresh, columns))


def test_two_columns_of_one_name_are_refused(fresh, refusal):
    table = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["x", "x"])
    assert "two columns of one name" in refusal(saved(fresh, table))


def test_a_file_in_another_format_is_refused(fresh, refusal):
    assert "cannot be read as Parquet" in refusal(fresh(".parquet", b"id,x\na,1\n" * 10))


def test_a_page_that_differs_from_its_checksum_is_refused(fresh, refusal):
    path = saved(fresh, {"x": X[:, 0]}, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[content.index(X[:, 0].tobytes())] ^= 1
    assert "CRC" in refusal(fresh(".parquet", content))


def test_a_file_that_unpacks_to_far_more_is_refused_on_the_way(fresh, refusal, monkeypatch):
    path = saved(fresh, {"x": np.zeros(1_000_000, np.float32)})
    assert len(read_vectors(path).rows) == 1_000_000
    monkeypatch.setattr(checks, "_UNSUSPICIOUS_BYTES", 1_000_000)
    assert "would grow from" in refusal(path)


def test_without_pyarrow_the_extra_is_named(fresh, monkeypatch):
    path = saved(fresh, {"x": X[:, 0]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="needs pyarrow") as caught:
        read_vectors(path)
    assert caught.value.hint == 'pip install "gradnet[parquet]"'
