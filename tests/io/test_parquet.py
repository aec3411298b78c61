"""The .parquet reader: lists or columns become rows, and nothing missing is filled in."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from manifind.errors import FileFormatError, MissingExtraError
from manifind.io import parquet
from manifind.io.vectors import read_vectors

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

X = np.arange(12, dtype=np.float32).reshape(4, 3)
LISTS = [lambda kind, d: pa.list_(kind), lambda kind, d: pa.large_list(kind), lambda kind, d: pa.list_(kind, d)]
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
    vectors = read_vectors(saved(fresh, {f"x.{c}": np.ascontiguousarray(matrix[:, c]) for c in range(matrix.shape[1])}))
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


def test_rows_keep_their_order_over_many_batches(fresh, monkeypatch, no_child):
    monkeypatch.setattr(parquet, "_BYTES_PER_BATCH", 200)
    matrix = np.random.default_rng(0).standard_normal((100, 3))
    vectors = read_vectors(saved(fresh, {"v": lists(matrix), "id": np.arange(100)}, row_group_size=9))
    np.testing.assert_array_equal(vectors.rows, matrix)
    assert vectors.ids == list(range(100))


def test_other_columns_beside_the_lists_are_left_alone(fresh):
    columns = {"url": ["a"] * 4, "label": [1] * 4, "tags": [["x"]] * 4, "v": lists(), "__index_level_0__": [0] * 4}
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


WRITERS = st.fixed_dictionaries(
    {
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "compression": st.sampled_from(["none", "snappy", "gzip", "zstd"]),
        "use_dictionary": st.booleans(),
        "data_page_size": st.sampled_from([100, 1 << 20]),
        "write_page_checksum": st.booleans(),
        "write_page_index": st.booleans(),
        "write_statistics": st.booleans(),
        "row_group_size": st.integers(1, 50),
    }
)


@given(
    matrix=arrays.arrays("f4", st.tuples(st.integers(1, 60), st.integers(1, 4))),
    options=WRITERS,
    make=st.sampled_from([*LISTS, None]),
)
def test_the_pages_of_every_writer_are_counted_as_they_are(fresh, matrix, options, make):
    n, d = matrix.shape
    vectors = {"v": lists(matrix, make)} if make else {f"x{i}": matrix[:, i].copy() for i in range(d)}
    path = saved(fresh, {**vectors, "id": [f"item {i}" for i in range(n)]}, **options)
    read = read_vectors(path)
    np.testing.assert_array_equal(read.rows, matrix)
    assert read.ids == [f"item {i}" for i in range(n)]


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_ids_come_back_from_every_encoding(fresh, monkeypatch, no_child, encoding):
    monkeypatch.setattr(parquet, "_BYTES_PER_BATCH", 3000)
    ids = [f"a common beginning {i}" for i in range(500)]
    path = saved(fresh, {"x": np.arange(500.0), "id": ids}, use_dictionary=False, column_encoding={"id": encoding})
    assert read_vectors(path).ids == ids


def test_ids_that_share_one_dictionary_are_all_read(fresh):
    ids = pa.array([f"{i} {'x' * 1000}" for i in range(100_000)])
    vectors = read_vectors(saved(fresh, {"x": np.zeros(100_000), "id": ids.dictionary_encode()}))
    assert vectors.ids == ids.to_pylist()


def hostile_columns(fresh):
    columns = {f"x{i}": np.zeros(10_000_000, np.float32) for i in range(10)}
    return saved(fresh, columns, row_group_size=10_000_000)


def hostile_lists(fresh):
    values = pa.array(np.zeros(100_000_000, np.float32))
    return saved(fresh, {"v": pa.FixedSizeListArray.from_arrays(values, 100)})


def hostile_list_in_one_row(fresh):
    return saved(fresh, {"v": pa.array([np.zeros(100_000_000, np.float32)])})


def hostile_list_among_many_rows(fresh):
    offsets = np.full(1_000_001, 60_000_000, np.int32)
    offsets[0] = 0
    return saved(fresh, {"v": pa.ListArray.from_arrays(offsets, pa.array(np.zeros(60_000_000, np.float32)))})


def hostile_page(fresh):
    numbers = np.zeros(100_000_000, np.float32)
    return saved(fresh, {"x": numbers}, compression="zstd", use_dictionary=False, data_page_size=1 << 30)


def hostile_ids_of_a_dictionary(fresh):
    return saved(fresh, {"x": np.zeros(400), "id": ["x" * 1_000_000] * 400})


def hostile_ids_of_one_beginning(fresh):
    ids = [f"{'x' * 1_000_000}{i}" for i in range(400)]
    return saved(
        fresh, {"x": np.zeros(400), "id": ids}, use_dictionary=False, column_encoding={"id": "DELTA_BYTE_ARRAY"}
    )


def hostile_numbers_for_ids(fresh):
    n = 5_000_000
    return saved(
        fresh,
        {"x": np.zeros(n, np.float32), "id": np.arange(n)},
        use_dictionary=["x"],
        column_encoding={"id": "DELTA_BINARY_PACKED"},
    )


def forged(fresh, make, number):
    """The same file with a footer that speaks of three rows and values in the place of so many."""
    content = make(fresh).read_bytes()
    end = len(content) - 8
    start = end - int.from_bytes(content[end : end + 4], "little")
    summary, lie = (varint(2 * value, len(varint(2 * number))) for value in (number, 3))
    assert content[start:end].count(summary) >= 2
    return fresh(".parquet", content[:start] + content[start:end].replace(summary, lie) + content[end:])


def varint(value, length=0):
    digits = []
    while value or not digits:
        digits.append(value & 127)
        value >>= 7
    digits += [0] * (length - len(digits))
    return bytes([digit | 128 for digit in digits[:-1]] + digits[-1:])


HOSTILE = {
    "columns": hostile_columns,
    "lists": hostile_lists,
    "one row": hostile_list_in_one_row,
    "one row of many": hostile_list_among_many_rows,
    "one page": hostile_page,
    "ids of a dictionary": hostile_ids_of_a_dictionary,
    "ids of one beginning": hostile_ids_of_one_beginning,
    "numbers for ids": hostile_numbers_for_ids,
    "a forged footer": lambda fresh: forged(fresh, hostile_columns, 10_000_000),
    "a forged footer of lists": lambda fresh: forged(fresh, hostile_list_in_one_row, 100_000_000),
}
PEAK = """
import resource, sys
import pyarrow.parquet
from manifind.errors import FileFormatError
from manifind.io import checks, read_vectors
checks._UNSUSPICIOUS_BYTES = 1 << 26
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_vectors(sys.argv[1])
    print("read")
except FileFormatError:
    print("refused")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is told in other units")
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_small_file_that_unpacks_to_hundreds_of_megabytes_is_refused_in_little_memory(fresh, kind):
    """Of 64 MB that nobody would suspect, twice as much is taken at most: here as of 1 GB elsewhere."""
    path = HOSTILE[kind](fresh)
    assert path.stat().st_size < 1_000_000
    done = subprocess.run([sys.executable, "-c", PEAK, path], check=True, capture_output=True, text=True)
    outcome, megabytes = done.stdout.split()
    assert outcome == "refused"
    assert int(megabytes) < 130


@pytest.mark.parametrize("target", ["first column", "end of the file"])
def test_columns_whose_pages_lie_elsewhere_are_refused(fresh, refusal, target):
    columns = {"x0": np.random.default_rng(0).normal(size=3000), "x1": np.zeros(3000), "x2": np.zeros(3000)}
    path = saved(fresh, columns, use_dictionary=False)
    content, chunks = path.read_bytes(), pq.ParquetFile(path).metadata.row_group(0)
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    spoiled = content[footer:]
    for i in (1, 2):
        offset = varint(2 * chunks.column(i).data_page_offset)
        place = chunks.column(0).data_page_offset if target == "first column" else len(content) - 1
        assert offset in spoiled
        spoiled = spoiled.replace(offset, varint(2 * place, len(offset)))
    problem = refusal(fresh(".parquet", content[:footer] + spoiled))
    assert ("columns share their pages" if target == "first column" else "page") in problem


@given(place=st.integers(0, 10**6), byte=st.integers(1, 255), version=st.sampled_from(["1.0", "2.0"]))
def test_a_damaged_byte_gives_vectors_or_a_refusal_and_nothing_else(fresh, place, byte, version):
    ids = [f"item {i}" for i in range(40)]
    path = saved(fresh, {"v": lists(np.ones((40, 3), "f4")), "id": ids}, data_page_version=version)
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= byte
    with contextlib.suppress(FileFormatError):
        read_vectors(fresh(".parquet", content))


def test_without_pyarrow_the_extra_is_named(fresh, monkeypatch, no_child):
    path = saved(fresh, {"x": X[:, 0]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="needs pyarrow") as caught:
        read_vectors(path)
    assert caught.value.hint == 'pip install "manifind[parquet]"'


def test_a_small_file_that_unpacks_to_300_mb_is_refused(fresh, refusal):
    path = saved(fresh, {"x": np.zeros(38_000_000)}, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 3_000_000
    assert "would grow from" in refusal(path)
