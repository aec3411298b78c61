"""Arrays of an .npz by name: as they were saved, or refused before anything is unpacked."""

import io
import pickle
import tracemalloc
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from manifind.errors import FileFormatError
from manifind.io import checks
from manifind.io.npy import read_npz_arrays, read_npz_headers


class Evil:
    def __reduce__(self):
        return pytest.fail, ("a pickle was opened",)


@given(
    array=st.sampled_from(["<f2", ">f4", "f8", "i1", "u8", "?"]).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=4, max_side=4))
    ),
    save=st.sampled_from([np.savez, np.savez_compressed]),
    order=st.sampled_from("CF"),
)
@settings(max_examples=40)
def test_numbers_of_any_shape_come_back_bit_for_bit(tmp_path_factory, array, save, order):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    save(path, a=np.asarray(array, order=order))
    assert read_npz_headers(path)["a"].shape == array.shape
    back = read_npz_arrays(path, ["a"])["a"]
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_texts_and_bytes_come_back_as_text(tmp_path):
    np.savez(tmp_path / "a.npz", u=np.array(["é", "b"], dtype=">U3"), s=np.array(["é".encode(), b"b"]))
    back = read_npz_arrays(tmp_path / "a.npz", ["u", "s"])
    assert back["u"].tolist() == back["s"].tolist() == ["é", "b"]


def test_headers_tell_of_every_array_and_read_none(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones((2, 3)), o=np.array([Evil()], dtype=object))
    assert {
        name: (header.type.kind, header.shape) for name, header in read_npz_headers(tmp_path / "a.npz").items()
    } == {"x": ("f", (2, 3)), "o": ("O", (1,))}


@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (np.array([Evil()], dtype=object), "holds Python objects"),
        (np.ones(2, dtype="c8"), "'<c8'; expected numbers or strings"),
        (np.array([["a"]]), "expected one string for each item"),
        (np.array([b"\xff"]), "is not valid Unicode"),
    ],
)
def test_other_arrays_are_refused_when_they_are_asked_for(tmp_path, array, problem):
    np.savez(tmp_path / "a.npz", fine=np.ones(2), a=array)
    assert read_npz_arrays(tmp_path / "a.npz", ["fine"])["fine"].tolist() == [1, 1]
    with pytest.raises(FileFormatError, match=problem):
        read_npz_arrays(tmp_path / "a.npz", ["a"])


def test_a_pickle_without_a_header_is_never_opened(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", pickle.dumps(Evil()))
    with pytest.raises(FileFormatError, match="no valid header of a NumPy array"):
        read_npz_headers(tmp_path / "a.npz")


def test_arrays_that_are_harmless_alone_are_refused_where_they_grow_too_much_together(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, **{f"a{number}": np.zeros(150_000, dtype=np.uint8) for number in range(10)})
    monkeypatch.setattr(checks, "_UNSUSPICIOUS_BYTES", 200_000)
    names = list(read_npz_headers(path))
    assert read_npz_arrays(path, names[:1])
    tracemalloc.start()
    with pytest.raises(FileFormatError, match=r"a\.npz would grow from"):
        read_npz_arrays(path, names)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


@given(data=st.data())
@settings(max_examples=40)
def test_a_damaged_file_is_refused_or_harmless(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    stream = io.BytesIO()
    np.savez_compressed(stream, a=np.arange(20), b=np.array(["x", "y"]))
    content = bytearray(stream.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(10, len(content)))])
    with suppress(FileFormatError):
        read_npz_arrays(path, list(read_npz_headers(path)))
