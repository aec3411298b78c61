"""The .npz reader: which array is taken, what ids may be, and zip files that lie."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from manifind.io import checks
from manifind.io.vectors import read_vectors

X = np.arange(12, dtype=np.float32).reshape(4, 3)
Y = X + 1
NAMES = ("vectors", "descriptors", "X", "features", "embeddings")


def saved(fresh, save=np.savez, **named):
    path = fresh(".npz")
    save(path, **named)
    return path


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def zipped(content: bytes, method: int = zipfile.ZIP_STORED, name: str = "vectors.npy") -> bytearray:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr(name, content)
    return bytearray(stream.getvalue())


def claiming(content: bytearray, packed: int | None, unpacked: int) -> bytearray:
    """The zip of one member with other sizes in its two headers."""
    local, central = 0, content.index(b"PK\x01\x02")
    for position in (local + 18, central + 20):
        if packed is not None:
            struct.pack_into("<I", content, position, packed)
        struct.pack_into("<I", content, position + 4, unpacked)
    return content


@given(
    matrix=st.sampled_from(["<f2", ">f4", "f4", "f8", "i1", "u8", "?"]).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6))
    ),
    name=st.sampled_from([*NAMES, "anything"]),
    save=st.sampled_from([np.savez, np.savez_compressed]),
)
def test_every_real_matrix_comes_back_bit_for_bit(fresh, matrix, name, save):
    vectors = read_vectors(saved(fresh, save, **{name: matrix}))
    assert vectors.rows.dtype == matrix.dtype
    assert vectors.rows.shape == matrix.shape
    assert vectors.rows.tobytes() == matrix.tobytes()
    assert vectors.ids is None


@pytest.mark.parametrize("key", ["ids", "names"])
@given(data=st.data())
@settings(max_examples=50)
def test_strings_and_integers_come_back_as_ids(fresh, key, data):
    texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=5)
    ids = data.draw(
        st.one_of(st.lists(kind, min_size=1, max_size=5, unique=True) for kind in (texts, st.integers(-9, 9)))
    )
    vectors = read_vectors(saved(fresh, X=np.ones((len(ids), 2)), **{key: np.array(ids)}))
    assert vectors.ids == ids
    assert {type(name) for name in vectors.ids} <= {str, int}


def test_text_with_its_bytes_in_the_other_order_is_read(fresh):
    assert read_vectors(saved(fresh, X=X[:2], ids=np.array(["é", "b"], dtype=">U1"))).ids == ["é", "b"]


def test_bytes_are_ids_read_as_utf_8(fresh):
    assert read_vectors(saved(fresh, X=X[:2], ids=np.array(["é".encode(), b"b"]))).ids == ["é", "b"]


def test_the_names_that_tell_are_tried_in_order(fresh):
    for position, name in enumerate(NAMES):
        later = dict.fromkeys(reversed(NAMES[position + 1 :]), Y)
        np.testing.assert_array_equal(read_vectors(saved(fresh, other=Y, **later, **{name: X})).rows, X)


def test_ids_come_before_names(fresh):
    assert read_vectors(saved(fresh, X=X, names=np.arange(4), ids=np.arange(4) + 5)).ids == [5, 6, 7, 8]


def test_the_only_matrix_is_found_among_other_arrays(fresh):
    path = saved(
        fresh,
        other=X,
        labels=np.arange(4),
        texts=np.array([["a"]]),
        ids=np.arange(4),
        meta=np.array([[{}]], dtype=object),
    )
    vectors = read_vectors(path)
    np.testing.assert_array_equal(vectors.rows, X)
    assert vectors.ids == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["queries", "Q"])
@pytest.mark.parametrize("rows", ["vectors", "anything"])
def test_queries_come_beside_the_rows_and_are_never_mistaken_for_them(fresh, rows, name):
    vectors = read_vectors(saved(fresh, **{name: Y[:2].astype(np.float64), rows: X}))
    np.testing.assert_array_equal(vectors.rows, X)
    np.testing.assert_array_equal(vectors.queries, Y[:2])
    assert vectors.queries.dtype == np.float64
    assert vectors.ids is None


def test_the_array_queries_comes_before_q(fresh):
    np.testing.assert_array_equal(read_vectors(saved(fresh, vectors=X, Q=X, queries=Y)).queries, Y)


@pytest.mark.parametrize("name", ["queries", "Q"])
def test_queries_alone_are_the_rows_to_search_with(fresh, name):
    vectors = read_vectors(saved(fresh, **{name: X}, labels=np.arange(4)))
    np.testing.assert_array_equal(vectors.rows, X)
    assert vectors.queries is None


@pytest.mark.parametrize(
    ("queries", "problem"),
    [
        (np.ones((2, 4)), "the array 'queries' in"),
        (np.ones((2, 4)), "has 4 columns; expected 3, as many as the rows have"),
        (np.ones(3), "expected two dimensions"),
        (np.ones((0, 3)), "holds no vectors"),
        (np.array([["a", "b", "c"]]), "expected real numbers"),
        (np.ones((2, 3), object), "Python objects"),
    ],
)
def test_queries_unlike_the_rows_are_refused(fresh, refusal, queries, problem):
    assert problem in refusal(saved(fresh, vectors=X, queries=queries))


def test_fortran_order_keeps_its_numbers_in_place(fresh):
    np.testing.assert_array_equal(read_vectors(saved(fresh, X=np.asfortranarray(X))).rows, X)


def test_several_matrices_are_ambiguous_and_listed(fresh, refusal):
    problem = refusal(saved(fresh, first=X, second=Y))
    assert "several matrices" in problem
    assert "'first', 'second'" in problem


def test_a_file_without_a_matrix_is_refused_with_what_it_has(fresh, refusal):
    assert "no matrix of numbers among its arrays ('labels')" in refusal(saved(fresh, labels=np.arange(3)))
    assert "none at all" in refusal(saved(fresh))


def test_vectors_of_another_shape_or_type_are_refused(fresh, refusal):
    assert "expected two dimensions" in refusal(saved(fresh, vectors=np.arange(3), other=X))
    assert "holds no vectors" in refusal(saved(fresh, vectors=np.ones((0, 3))))
    assert "expected real numbers" in refusal(saved(fresh, vectors=X.astype(complex)))
    assert "Python objects" in refusal(saved(fresh, vectors=X.astype(object)))


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        (np.arange(3), r"has shape (3,); expected (4,)"),
        (np.arange(4).reshape(4, 1), r"has shape (4, 1); expected (4,)"),
        (np.arange(4.0), "expected strings or integers"),
        (np.ones(4, bool), "expected strings or integers"),
        (np.array([1, "a", 2, 3], dtype=object), "Python objects"),
        (np.array([1, 7, 3, 7]), "has the id 7 twice, in rows 1 and 3"),
        (np.array(["a", "b", "b", "a"]), "has the id 'b' twice, in rows 1 and 2"),
        (np.array(["a", "b", "", "c"]), "empty id in row 2"),
        (np.array(["a", "\ud800", "c", "d"]), "not valid Unicode"),
        (np.array([b"a", b"\xff", b"c", b"d"]), "not valid Unicode"),
        (np.array([1, 2, 3, 0x110000], dtype="<u4").view("<U1"), "not valid Unicode"),
    ],
)
def test_ids_that_cannot_name_the_rows_are_refused(fresh, refusal, ids, problem):
    assert problem in refusal(saved(fresh, vectors=X, ids=ids))


def test_a_member_that_is_not_an_array_is_refused(fresh, refusal):
    assert "no valid header of a NumPy array" in refusal(fresh(".npz", zipped(b"not an array")))


def test_a_member_with_another_name_is_left_alone(fresh):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("vectors.npy", npy(X))
        archive.writestr("README.txt", b"about")
    np.testing.assert_array_equal(read_vectors(fresh(".npz", content.getvalue())).rows, X)


def test_a_file_that_is_no_zip_is_refused(fresh, refusal):
    assert "zip" in refusal(fresh(".npz", npy(X)))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compression_that_numpy_never_writes_is_refused(fresh, refusal, method):
    assert f"compressed by method {method}" in refusal(fresh(".npz", zipped(npy(X), method)))


def test_an_encrypted_zip_is_refused(fresh, refusal):
    content = zipped(npy(X))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in refusal(fresh(".npz", content))


def test_a_damaged_number_is_noticed(fresh, refusal):
    content = zipped(npy(X))
    content[content.index(X.tobytes()) + 9] ^= 1
    assert "CRC" in refusal(fresh(".npz", content))


def test_a_shape_that_the_zip_does_not_bear_out_is_refused(fresh, refusal):
    assert "36 follow the header" in refusal(fresh(".npz", zipped(npy(X)[:-12])))


def test_data_that_end_before_their_claim_are_refused(fresh, refusal):
    whole = npy(X)
    content = claiming(zipped(whole[:-12], zipfile.ZIP_DEFLATED), None, len(whole))
    assert "36 of 48 bytes" in refusal(fresh(".npz", content))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_bomb_is_refused_without_memory_for_it(fresh, refusal, method):
    unpacked = 4_000_000_000
    header = npy(np.empty((0, 1), np.uint8))
    rows = f"{unpacked - len(header)}, 1"
    header = header.replace(b"(0, 1), }" + b" " * (len(rows) - 4), f"({rows}), }}".encode())
    content = claiming(zipped(header + bytes(1000), method), unpacked if method == 0 else None, unpacked)
    path = fresh(".npz", content)
    tracemalloc.start()
    try:
        assert "would grow from" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_what_compresses_very_well_is_accepted_while_it_is_small(fresh, refusal, monkeypatch):
    path = saved(fresh, np.savez_compressed, vectors=np.zeros((1000, 1000), np.uint8))
    assert read_vectors(path).rows.shape == (1000, 1000)
    monkeypatch.setattr(checks, "_UNSUSPICIOUS_BYTES", 1_000_000)
    assert "would grow from" in refusal(path)
