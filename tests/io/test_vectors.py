"""The door: which files reach a reader, and what the others are told."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from manifind import io as formats
from manifind.io.checks import Vectors
from manifind.io.vectors import SUFFIXES, read_vectors

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_the_package_offers_its_readers_their_answers_and_the_suffixes():
    assert set(formats.__all__) == {
        "GroundTruth",
        "Regions",
        "SUFFIXES",
        "Vectors",
        "read_ground_truth",
        "read_regions",
        "read_vectors",
    }
    assert set(SUFFIXES) == {".npy", ".npz", ".parquet", ".fvecs", ".csv", ".tsv", ".h5", ".hdf5", ".mat"}


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_may_be_text_or_a_path_and_its_suffix_in_capitals(fresh, kind):
    path = fresh(".NPY")
    with path.open("wb") as stream:
        np.save(stream, X)
    vectors = read_vectors(kind(path))
    assert isinstance(vectors, Vectors)
    np.testing.assert_array_equal(vectors.rows, X)


@pytest.mark.parametrize("suffix", [".txt", "", ".pkl", ".npy.gz"])
def test_an_unknown_suffix_is_named_with_the_accepted_ones(fresh, refusal, suffix):
    problem = refusal(fresh(suffix, b"data"))
    assert repr(Path(f"x{suffix}").suffix) in problem
    assert all(accepted in problem for accepted in SUFFIXES)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_is_said_to_be_missing(fresh, refusal, suffix):
    assert "does not exist" in refusal(fresh(suffix))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_of_0_bytes_is_said_to_be_empty(fresh, refusal, suffix):
    assert "empty (0 bytes)" in refusal(fresh(suffix, b""))


def test_a_folder_is_refused_even_with_a_good_suffix(fresh, refusal):
    path = fresh(".npy")
    path.mkdir()
    assert "is a folder" in refusal(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in this file system")
def test_a_pipe_is_refused_without_waiting_for_it(fresh, refusal):
    path = fresh(".npy")
    os.mkfifo(path)
    assert "not a regular file" in refusal(path)


def test_a_path_that_no_file_can_have_is_refused(refusal):
    assert "does not exist" in refusal(Path("a\0b.npy"))
    assert "cannot be read" in refusal(Path("a" * 300 + ".npy"))


def test_a_file_that_may_not_be_opened_is_refused_with_the_reason(fresh, refusal, monkeypatch):
    path = fresh(".npy", b"data")

    def refuse(*_args: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert "cannot be read: Permission denied" in refusal(path)
