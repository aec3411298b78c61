"""The .h5 reader: which dataset is taken, what ids may be, and files that reach outside or lie."""

from __future__ import annotations

import sys
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from manifind.errors import MissingExtraError
from manifind.io.vectors import read_vectors

h5py = pytest.importorskip("h5py")

X = np.arange(12, dtype=np.float32).reshape(4, 3)
Y = X + 1
NAMES = ("vectors", "descriptors", "X", "features", "embeddings")
STORAGE = [
    {},
    {"chunks": (1, 1)},
    {"chunks": True, "compression": "gzip"},
    {"chunks": True, "shuffle": True, "compression": "gzip", "fletcher32": True},
    {"maxshape": (None, None), "fletcher32": True},
]


def saved(fresh, write=None, suffix=".h5", **named):
    path = fresh(suffix)
    with h5py.File(path, "w") as file:
        for name, data in named.items():
            file[name] = data
        if write is not None:
            write(file)
    return path


@settings(max_examples=60)
@given(
    matrix=st.sampled_from(["<f2", ">f4", "f4", "f8", "i1", "u8", "?"]).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6))
    ),
    name=st.sampled_from([*NAMES, "anything"]),
    storage=st.sampled_from(STORAGE),
    suffix=st.sampled_from([".h5", ".hdf5", ".H5"]),
)
def test_every_real_matrix_comes_back_bit_for_bit(fresh, matrix, name, storage, suffix):
    path = saved(fresh, lambda file: file.create_dataset(name, data=matrix, **storage), suffix)
    vectors = read_vectors(path)
    assert vectors.rows.dtype == matrix.dtype
    assert vectors.rows.shape == matrix.shape
    assert vectors.rows.tobytes() == matrix.tobytes()
    assert vectors.ids is None
    assert vectors.queries is None


def test_the_names_that_tell_are_tried_in_order(fresh):
    for position, name in enumerate(NAMES):
        later = dict.fromkeys(NAMES[position + 1 :], Y)
        np.testing.assert_array_equal(read_vectors(saved(fresh, other=Y, **later, **{name: X})).rows, X)


@pytest.mark.parametrize("name", ["queries", "Q"])
def test_queries_come_beside_the_rows(fresh, name):
    vectors = read_vectors(saved(fresh, anything=X, **{name: Y[:2]}))
    np.testing.assert_array_equal(vectors.rows, X)
    np.testing.assert_array_equal(vectors.queries, Y[:2])


def test_queries_alone_are_the_rows_to_search_with(fresh):
    vectors = read_vectors(saved(fresh, queries=X))
    np.testing.assert_array_equal(vectors.rows, X)
    assert vectors.queries is None


@pytest.mark.parametrize("key", ["ids", "names"])
@pytest.mark.parametrize(
    "ids",
    [
        ["é", "b" * 5000, "ccc", "d"],
        np.array([b"a", b"bb", b"c", b"d"]),
        np.array(["é".encode(), b"b", b"c", b"d"], dtype=h5py.string_dtype("utf-8", 4)),
        np.array([3, -1, 2, 0]),
    ],
)
def test_strings_and_integers_come_back_as_ids(fresh, key, ids):
    vectors = read_vectors(saved(fresh, vectors=X, **{key: ids}))
    texts = [entry.decode() if isinstance(entry, bytes) else entry for entry in list(ids)]
    assert vectors.ids == texts
    assert {type(name) for name in vectors.ids} <= {str, int}


def test_thousands_of_ids_of_any_length_come_back_in_order_even_behind_a_user_block(fresh):
    ids = [f"{'é' * (i % 700)}{i}" for i in range(3000)]
    path = fresh(".h5")
    with h5py.File(path, "w", userblock_size=1024) as file:
        file["vectors"], file["ids"] = np.zeros((3000, 1)), ids
    assert read_vectors(path).ids == ids


def test_the_only_matrix_is_found_among_other_datasets(fresh):
    path = saved(
        fresh,
        lambda file: file.create_group("more").create_dataset("matrix", data=Y),
        other=X,
        labels=np.arange(4),
        texts=[["a"]],
        number=5,
        ids=np.arange(4),
    )
    vectors = read_vectors(path)
    np.testing.assert_array_equal(vectors.rows, X)
    assert vectors.ids == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ({"first": X, "second": Y}, "several matrices among its arrays ('first', 'second')"),
        ({"labels": np.arange(3)}, "no matrix of numbers among its arrays ('labels')"),
        ({}, "none at all"),
        ({"vectors": np.arange(3)}, "expected two dimensions"),
        ({"vectors": h5py.Empty("f4")}, "expected two dimensions"),
        ({"vectors": np.ones((0, 3))}, "holds no vectors"),
        ({"vectors": X.astype(complex)}, "expected real numbers"),
        ({"vectors": [["a", "b"]]}, "expected real numbers"),
        ({"vectors": X, "Q": np.ones((2, 2))}, "has 2 columns; expected 3"),
        ({"vectors": X, "queries": np.arange(3)}, "expected two dimensions"),
        ({"vectors": X, "queries": [["a", "b", "c"]]}, "expected real numbers"),
        ({"vectors": X, "ids": np.arange(3)}, "has shape (3,); expected (4,)"),
        ({"vectors": X, "ids": np.arange(4).reshape(4, 1)}, "has shape (4, 1); expected (4,)"),
        ({"vectors": X, "ids": np.arange(4.0)}, "expected strings or integers"),
        ({"vectors": X, "ids": np.array([1, 7, 3, 7])}, "has the id 7 twice, in rows 1 and 3"),
        ({"vectors": X, "ids": ["a", "", "b", "c"]}, "empty id in row 1"),
        ({"vectors": X, "ids": np.array([b"a", b"\xff", b"c", b"d"])}, "not valid Unicode"),
    ],
)
def test_files_that_hold_no_clear_vectors_are_refused(fresh, refusal, named, problem):
    assert problem in refusal(saved(fresh, **named))


def test_a_group_in_place_of_the_vectors_is_refused(fresh, refusal):
    assert "expected a dataset" in refusal(saved(fresh, lambda file: file.create_group("vectors")))


def test_a_file_in_another_format_is_refused(fresh, refusal):
    assert "cannot be read as HDF5" in refusal(fresh(".h5", b"id,x\na,1\n" * 100))


@pytest.mark.parametrize("name", ["vectors", "anything", "ids", "queries"])
@pytest.mark.parametrize("kind", ["soft", "external"])
def test_links_are_refused_wherever_they_would_be_followed(fresh, refusal, name, kind):
    secret = saved(fresh, data=X)
    link = h5py.SoftLink("/hidden/data") if kind == "soft" else h5py.ExternalLink(str(secret), "/data")

    def write(file):
        file.create_group("hidden").create_dataset("data", data=X)
        file[name] = link

    rows = {} if name in ("vectors", "anything") else {"vectors": X}
    assert "is a soft or external link" in refusal(saved(fresh, write, **rows))


def test_links_that_nobody_asks_for_are_left_alone(fresh):
    def write(file):
        file["other"] = h5py.ExternalLink("/nowhere.h5", "/data")
        file["loop"] = h5py.SoftLink("/loop")

    np.testing.assert_array_equal(read_vectors(saved(fresh, write, vectors=X)).rows, X)


def test_a_virtual_dataset_is_refused(fresh, refusal):
    secret = saved(fresh, data=X)

    def write(file):
        layout = h5py.VirtualLayout(X.shape, X.dtype)
        layout[:] = h5py.VirtualSource(str(secret), "data", X.shape)
        file.create_virtual_dataset("vectors", layout)

    assert "keeps its data in other files" in refusal(saved(fresh, write))


def test_data_in_an_external_file_are_refused(fresh, refusal):
    secret = fresh(".bin", X.tobytes())

    def write(file):
        file.create_dataset("vectors", X.shape, X.dtype, external=[(str(secret), 0, X.nbytes)])

    assert "keeps its data in other files" in refusal(saved(fresh, write))


def test_references_are_no_rows(fresh, refusal):
    def write(file):
        cells = np.full((2, 2), file["data"].ref, h5py.ref_dtype)
        file.create_dataset("vectors", data=cells, dtype=h5py.ref_dtype)

    assert "expected real numbers" in refusal(saved(fresh, write, data=X))


@pytest.mark.parametrize("options", [{}, {"chunks": (1000, 500)}, {"chunks": (1000, 500), "compression": "gzip"}])
def test_a_small_file_that_claims_a_huge_matrix_is_refused(fresh, refusal, options):
    def write(file):
        file.create_dataset("vectors", (2**31, 2**9), "f4", fillvalue=1, **options)

    assert "would grow from" in refusal(saved(fresh, write))


@pytest.mark.parametrize("options", [{}, {"chunks": (1, 3)}])
def test_rows_that_were_never_written_are_refused(fresh, refusal, options):
    def write(file):
        file.create_dataset("vectors", (4, 3), "f4", **options)

    assert "claims to be larger than what was written" in refusal(saved(fresh, write))


def test_a_dataset_that_lacks_some_of_its_chunks_is_refused(fresh, refusal):
    def write(file):
        file.create_dataset("vectors", (4, 3), "f4", chunks=(2, 3))[:2] = X[:2]

    assert "1 of 2 chunks are there" in refusal(saved(fresh, write))


def test_a_chunk_far_larger_than_its_dataset_is_refused(fresh, refusal):
    def write(file):
        file.create_dataset("vectors", (4, 4), "f8", maxshape=(None, 4), chunks=(2**26, 4))

    assert "a chunk of 'vectors'" in refusal(saved(fresh, write))


@pytest.mark.parametrize("filters", [{"compression": "lzf"}, {"scaleoffset": 2}])
def test_a_filter_that_few_programs_have_is_refused(fresh, refusal, filters):
    def write(file):
        file.create_dataset("vectors", data=X, **filters)

    assert "is stored through the filters" in refusal(saved(fresh, write))


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize(
    "packed",
    [b"xyz", b"x", zlib.compress(b""), zlib.compress(X.tobytes()[:-1]), zlib.compress(bytes(100_000)), X.tobytes()],
)
def test_a_chunk_that_does_not_unpack_to_its_size_is_refused_and_crashes_nothing(fresh, refusal, packed, checksum):
    def write(file):
        options = {"chunks": (4, 3), "shuffle": True, "compression": "gzip", "fletcher32": checksum}
        file.create_dataset("vectors", data=X, **options).id.write_direct_chunk((0, 0), packed)

    refusal(saved(fresh, write))


def test_a_chunk_that_was_left_unpacked_is_read(fresh):
    def write(file):
        dataset = file.create_dataset("vectors", data=Y, chunks=(4, 3), compression="gzip")
        dataset.id.write_direct_chunk((0, 0), X.tobytes(), filter_mask=1)

    np.testing.assert_array_equal(read_vectors(saved(fresh, write)).rows, X)


def test_a_damaged_checksum_is_noticed(fresh, refusal):
    path = saved(fresh, lambda file: file.create_dataset("vectors", data=X, chunks=(4, 3), fletcher32=True))
    content = bytearray(path.read_bytes())
    content[content.index(X.tobytes())] ^= 1
    assert "cannot be read as HDF5" in refusal(fresh(".h5", bytes(content)))


def test_strings_of_any_length_in_chunks_are_refused_with_the_way_out(fresh, refusal):
    def write(file):
        file.create_dataset("ids", data=["a", "b", "c", "d"], dtype=h5py.string_dtype(), chunks=(2,))

    assert "strings of variable length in chunks" in refusal(saved(fresh, write, vectors=X))


@pytest.mark.parametrize(
    ("position", "value"),
    [
        (0, 0), (4, 2), (8, 0xFF), (9, 0xFF), (16, 0), (31, 0xFF), (40, 0),
        *(pytest.param(24, value, marks=pytest.mark.long) for value in (0, 0xFF)),  # HDF5 hangs, until it is stopped
    ],
)  # fmt: skip
def test_a_damaged_heap_of_strings_is_refused_in_good_time(fresh, refusal, position, value):
    content = bytearray(saved(fresh, vectors=X, ids=["a", "b", "c", "d"]).read_bytes())
    content[content.index(b"GCOL") + position] = value
    assert "cannot be read as HDF5" in refusal(fresh(".h5", bytes(content)))


def test_ids_that_all_lead_to_one_long_text_are_refused(fresh, refusal, monkeypatch, no_child):
    from manifind.io import checks

    content = saved(fresh, vectors=np.zeros((500, 1)), ids=["x" * 9000, *map(str, range(499))]).read_bytes()
    with h5py.File(fresh(".h5", content)) as file:
        start = file["ids"].id.get_offset()
    first = content[start : start + 16]
    path = fresh(".h5", content[:start] + first * 500 + content[start + 16 * 500 :])
    assert "twice" in refusal(path)
    monkeypatch.setattr(checks, "_UNSUSPICIOUS_BYTES", 100_000)
    monkeypatch.setattr(checks, "_UNSUSPICIOUS_RATIO", 10)
    assert "would grow from" in refusal(path)


def test_without_h5py_the_extra_is_named(fresh, monkeypatch, no_child):
    path = saved(fresh, vectors=X)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match="needs h5py") as caught:
        read_vectors(path)
    assert caught.value.hint == 'pip install "manifind[data]"'
