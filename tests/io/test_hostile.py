"""Files cut short anywhere or changed anywhere: refused as such or read, never anything else."""

from __future__ import annotations

import functools
import io
import random
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.errors import FileFormatError
from manifind.io.vectors import read_vectors
from reference.files import mat5, published_by_iscen

X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
IDS = ["a", "b", "c", "d"]


def npy(array: np.ndarray = X) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def stored() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, vectors=X, ids=np.array(IDS))
    return stream.getvalue()


def compressed() -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, matrix=X, names=np.arange(4))
    return stream.getvalue()


def fvecs() -> bytes:
    return np.hstack([np.full((4, 1), 3, "<i4"), X.view("<i4")]).tobytes()


def csv() -> bytes:
    return "\n".join(
        ["id,x,y,z", *(",".join([i, *map(str, row.tolist())]) for i, row in zip(IDS, X, strict=True))]
    ).encode()


def lists() -> bytes:
    pa, pq, stream = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet"), io.BytesIO()
    pq.write_table(pa.table({"id": IDS, "v": pa.array(list(X))}), stream)
    return stream.getvalue()


def columns() -> bytes:
    pa, pq, stream = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet"), io.BytesIO()
    pq.write_table(pa.table({"id": range(4), "x": X[:, 0], "y": X[:, 1]}), stream, compression="none")
    return stream.getvalue()


@functools.cache
def matlab_stored() -> bytes:
    return saved(lambda path: mat5(path, compressed=False, X=X.T, Q=X[:2].T))


@functools.cache
def matlab_compressed() -> bytes:
    return saved(lambda path: mat5(path, X=X.T, Q=X[:2].T))


def hdf5() -> bytes:
    h5py = pytest.importorskip("h5py")

    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            file["queries"], file["ids"] = X[:2], IDS
            file.create_dataset("vectors", data=X, compression="gzip", shuffle=True, fletcher32=True)

    return saved(write)


def matlab_73() -> bytes:
    pytest.importorskip("h5py")
    return saved(lambda path: published_by_iscen(path, [X[:1], X[1:3], X[:1], X[3:]], [X]))


def saved(write: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(path)
        return path.read_bytes()


SAMPLES = [
    (".npy", npy),
    (".npz", stored),
    (".npz", compressed),
    (".fvecs", fvecs),
    (".csv", csv),
    (".parquet", lists),
    (".parquet", columns),
    (".mat", matlab_stored),
    (".mat", matlab_compressed),
]
IN_HDF5 = [(".h5", hdf5), (".mat", matlab_73)]
SELF_CONTAINED = [sample for sample in SAMPLES if sample[0] not in (".fvecs", ".csv", ".mat")]


@pytest.mark.parametrize(("suffix", "sample"), SELF_CONTAINED)
def test_a_file_cut_at_any_length_is_refused(fresh, refusal, suffix, sample):
    content = sample()
    assert read_vectors(fresh(suffix, content)).rows.shape[0] == 4
    for length in range(len(content)):
        refusal(fresh(suffix, content[:length]))


@pytest.mark.parametrize("sample", [matlab_stored, matlab_compressed])
def test_matlab_5_cut_within_a_variable_is_refused_and_cut_between_has_one_less(fresh, refusal, sample):
    content = sample()
    between = 128 + 8 + int.from_bytes(content[132:136], "little")
    for length in range(len(content)):
        path = fresh(".mat", content[:length])
        if length == between:
            assert read_vectors(path).queries is None
        else:
            refusal(path)


@pytest.mark.parametrize(("suffix", "sample"), IN_HDF5)
def test_hdf5_cut_short_is_refused(fresh, refusal, suffix, sample):
    content = sample()
    assert read_vectors(fresh(suffix, content)).rows.shape == X.shape
    for length in range(0, len(content), 23):
        refusal(fresh(suffix, content[:length]))


@pytest.mark.parametrize(("suffix", "sample"), IN_HDF5)
def test_hdf5_changed_anywhere_is_refused_or_read_as_vectors(fresh, suffix, sample):
    """Where the HDF5 library crashes or hangs, that is the end of a child, and the file is refused."""
    content, draw = sample(), random.Random(0)
    for _ in range(60):
        copy = bytearray(content)
        for _ in range(draw.randint(1, 6)):
            copy[draw.randrange(len(copy))] = draw.choice((0, 1, 255, draw.randrange(256)))
        refused_or_read(fresh(suffix, bytes(copy)))


def test_fvecs_cut_within_a_row_are_refused_and_cut_between_rows_are_shorter(fresh, refusal):
    content = fvecs()
    for length in range(len(content)):
        path = fresh(".fvecs", content[:length])
        if length and length % 16 == 0:
            np.testing.assert_array_equal(read_vectors(path).rows, X[: length // 16])
        else:
            refusal(path)


def test_csv_cut_anywhere_is_refused_or_keeps_all_numbers_but_the_last(fresh):
    content = csv()
    for length in range(len(content)):
        try:
            rows = read_vectors(fresh(".csv", content[:length])).rows
        except FileFormatError:
            continue
        np.testing.assert_array_equal(rows.ravel()[:-1].astype(np.float32), X.ravel()[: rows.size - 1])


@pytest.mark.parametrize("member", ["vectors", "ids"])
@settings(max_examples=300)
@given(data=st.data())
def test_an_array_changed_anywhere_inside_a_sound_zip_is_refused_or_read_as_vectors(fresh, member: str, data):
    arrays = {"vectors": npy(X), "ids": npy(np.array(IDS))}
    arrays[member] = changed(arrays[member], data)
    path = fresh(".npz")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content)
    refused_or_read(path)


@pytest.mark.parametrize(("suffix", "sample"), SAMPLES)
@settings(max_examples=300, derandomize=True)  # a rare crash inside pyarrow is no news about us
@given(data=st.data())
def test_a_file_changed_anywhere_is_refused_or_read_as_vectors(
    fresh, suffix: str, sample: Callable[[], bytes], data: st.DataObject
):
    refused_or_read(fresh(suffix, changed(sample(), data)))


def changed(content: bytes, data: st.DataObject) -> bytes:
    edits = st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), min_size=1, max_size=6)
    copy = bytearray(content)
    for position, byte in data.draw(edits):
        copy[position] = byte
    return bytes(copy)


def refused_or_read(path: Path) -> None:
    try:
        rows, ids, queries = read_vectors(path)
    except FileFormatError:
        return
    assert rows.ndim == 2
    assert rows.size > 0
    assert rows.dtype.kind in "fiub"
    assert ids is None or len(set(ids)) == len(ids) == len(rows)
    assert queries is None or queries.shape[1] == rows.shape[1]
