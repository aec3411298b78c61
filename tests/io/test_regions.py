"""Regional descriptors of Iscen et al.: every region under its image, and cells that lead astray."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.errors import FileFormatError
from manifind.io import checks
from manifind.io.mat import Regions, read_regions
from reference.files import mat5, mat73, published_by_iscen

h5py = pytest.importorskip("h5py")

ROWS = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)


def refused(path):
    with pytest.raises(FileFormatError) as caught:
        read_regions(path)
    assert str(path) in caught.value.problem
    assert caught.value.hint
    return caught.value.problem


def in_pieces(counts):
    return np.split(ROWS[: sum(counts)], np.cumsum(counts)[:-1])


@settings(max_examples=30)
@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    asked=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    column=st.booleans(),
)
def test_every_region_comes_back_with_the_position_of_its_image(fresh, counts, asked, column):
    path = published_by_iscen(fresh(".mat"), in_pieces(counts), in_pieces(asked), column=column)
    regions = read_regions(path)
    assert isinstance(regions, Regions)
    np.testing.assert_array_equal(regions.rows, ROWS[: sum(counts)])
    np.testing.assert_array_equal(regions.queries, ROWS[: sum(asked)])
    assert regions.image_of.tolist() == [image for image, count in enumerate(counts) for _ in range(count)]
    assert regions.query_of.tolist() == [query for query, count in enumerate(asked) for _ in range(count)]
    assert regions.rows.dtype == np.float32
    assert regions.image_of.dtype == regions.query_of.dtype == np.int64


def with_cells(fresh, targets, queries=None, write=None):
    """A file whose reg/V has the references that `targets` makes."""
    path = fresh(".mat")
    with mat73(path) as mat:
        group = mat.file.create_group("reg")
        mat.references("V", targets(mat), group)
        mat.cells("Q", [ROWS[:1].T] if queries is None else queries, group)
        if write is not None:
            write(mat, group)
    return path


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (np.empty((3, 0)), "with at least one region"),
        (np.ones((2, 1), np.float32), "has 2 dimensions of float32; expected 3 of float32"),
        (np.ones((3, 1), np.float64), "has 3 dimensions of float64; expected 3 of float32"),
        ("text", "has 1 dimensions of uint16"),
        (np.ones((3, 1, 1), np.float32), "with at least one region"),
    ],
)
def test_a_cell_unlike_the_first_is_named(fresh, second, problem):
    path = with_cells(fresh, lambda mat: [mat.hidden(ROWS[:2].T), mat.hidden(second)])
    message = refused(path)
    assert problem in message
    assert "cell 1 (counted from 0) of 'reg/V'" in message


def test_a_reference_to_nothing_or_to_a_group_is_refused(fresh):
    nothing = with_cells(fresh, lambda mat: [mat.hidden(ROWS[:1].T), h5py.Reference()])
    assert "cell 1 (counted from 0) of 'reg/V'" in refused(nothing)
    group = with_cells(fresh, lambda mat: [mat.refs.ref])
    assert "leads to no array" in refused(group)


def test_data_in_another_file_are_refused_behind_a_reference_too(fresh):
    secret = fresh(".bin", ROWS[:1].tobytes())

    def outside(mat):
        stored = mat.refs.create_dataset("out", (1, 3), "f4", external=[(str(secret), 0, 12)])
        return [stored.ref]

    assert "keeps its data in other files" in refused(with_cells(fresh, outside))


def test_more_references_than_the_file_has_room_for_are_refused(fresh):
    path = with_cells(fresh, lambda mat: [mat.hidden(ROWS[:1].T)] * 10_000)
    assert "10,000 cells" in refused(path)


def test_many_references_to_one_large_array_are_refused(fresh, monkeypatch, no_child):
    path = with_cells(fresh, lambda mat: [mat.hidden(np.repeat(ROWS, 200, 0).T)] * 1000)
    assert len(read_regions(path).rows) == 8_000_000
    monkeypatch.setattr(checks, "_UNSUSPICIOUS_BYTES", 1_000_000)
    monkeypatch.setattr(checks, "_UNSUSPICIOUS_RATIO", 10)
    assert "would grow from" in refused(path)


@pytest.mark.parametrize("missing", ["V", "Q"])
def test_a_group_without_images_or_queries_is_refused(fresh, missing):
    path = published_by_iscen(fresh(".mat"), [ROWS[:2]], [ROWS[:1]])
    with h5py.File(path, "r+") as file:
        del file["reg"][missing]
    assert "expected V for the images and Q for the queries" in refused(path)


def test_numbers_in_place_of_cells_are_refused(fresh):
    path = published_by_iscen(fresh(".mat"), [ROWS[:2]], [ROWS[:1]])
    with h5py.File(path, "r+") as file:
        del file["reg/V"]
        file["reg/V"] = ROWS
    assert "holds no references" in refused(path)


def test_a_square_of_cells_is_refused(fresh):
    path = published_by_iscen(fresh(".mat"), [ROWS[:2]], [ROWS[:1]])
    with h5py.File(path, "r+") as file:
        cells = np.full((2, 2), file["reg/V"][0, 0], h5py.ref_dtype)
        del file["reg/V"]
        file["reg"].create_dataset("V", data=cells, dtype=h5py.ref_dtype)
    assert "expected one row or one column" in refused(path)


def test_queries_of_another_dimension_are_refused(fresh):
    path = with_cells(fresh, lambda mat: [mat.hidden(ROWS[:1].T)], queries=[np.ones((2, 1), np.float32)])
    assert "has 2 columns; expected 3" in refused(path)


def test_version_5_and_missing_files_are_refused(fresh):
    assert "is not HDF5" in refused(mat5(fresh(".mat"), X=ROWS))
    assert "does not exist" in refused(fresh(".mat"))
