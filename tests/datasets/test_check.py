"""The state of a set's files: present or missing, with the right bytes or others; nothing is written."""

import hashlib

import numpy as np
import pytest

from manifind.datasets.catalogue import CATALOGUE, RemoteFile
from manifind.datasets.check import (
    DIFFERS,
    MISSING,
    PUBLISHED,
    RECORDED,
    UNPACKED,
    UNRECORDED,
    check_files,
    is_available,
)
from manifind.files import record

SHA = hashlib.sha256(b"right").hexdigest()


@pytest.fixture
def dataset(tiny):
    """One file with a published digest, one without, and an archive of photographs that nobody needs."""
    return tiny(
        RemoteFile("http://127.0.0.1/a.mat", "a.mat", "descriptors", sha256=SHA),
        RemoteFile("http://127.0.0.1/b.mat", "b.mat", "descriptors"),
        RemoteFile("http://127.0.0.1/c.tgz", "c.tgz", "images", unpack_to="photos", page="https://photos.example"),
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tiny").mkdir()
    return tmp_path / "tiny"


def states(dataset, root):
    return {one.file.path: one.state for one in check_files(dataset, root).files}


def test_without_a_folder_everything_is_missing_and_told_where_to_get(dataset, tmp_path):
    state = check_files(dataset, tmp_path)
    assert [one.state for one in state.files] == [MISSING] * 3
    assert [one.required for one in state.files] == [True, True, False]
    first, _, last = state.files
    place = tmp_path / "tiny" / "a.mat"
    assert first.detail == f"get a.mat from https://example.org/tiny and put it at {place}; ask a friend"
    assert "get c.tgz from https://photos.example and put it at" in last.detail
    assert not state.is_usable
    assert not is_available(dataset, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_digests_are_compared_with_the_published_and_the_recorded_ones(dataset, folder, tmp_path):
    (folder / "a.mat").write_bytes(b"right")
    (folder / "b.mat").write_bytes(b"mine")
    assert states(dataset, tmp_path) == {"a.mat": PUBLISHED, "b.mat": UNRECORDED, "c.tgz": MISSING}
    assert check_files(dataset, tmp_path).is_usable
    assert is_available(dataset, tmp_path)
    record(folder, "b.mat", hashlib.sha256(b"mine").hexdigest())
    assert states(dataset, tmp_path)["b.mat"] == RECORDED


@pytest.mark.parametrize("file", ["a.mat", "b.mat"])
def test_other_bytes_are_told_with_both_digests_and_make_the_set_unusable(dataset, folder, tmp_path, file):
    (folder / "a.mat").write_bytes(b"right")
    (folder / "b.mat").write_bytes(b"right")
    record(folder, "b.mat", SHA)
    assert check_files(dataset, tmp_path).is_usable
    (folder / file).write_bytes(b"wrong")
    state = check_files(dataset, tmp_path)
    (changed,) = (one for one in state.files if one.state == DIFFERS)
    assert changed.file.path == file
    assert SHA in changed.detail
    assert hashlib.sha256(b"wrong").hexdigest() in changed.detail
    assert not state.is_usable


def test_checking_writes_nothing(dataset, folder, tmp_path):
    (folder / "b.mat").write_bytes(b"mine")
    check_files(dataset, tmp_path)
    assert [file.name for file in folder.iterdir()] == ["b.mat"]


def test_an_archive_may_be_gone_once_it_is_unpacked(dataset, folder, tmp_path):
    (folder / "photos").mkdir()
    assert states(dataset, tmp_path)["c.tgz"] == UNPACKED


def test_progress_is_told_while_digests_are_computed(dataset, folder, tmp_path):
    (folder / "a.mat").write_bytes(b"right")
    reports = []
    check_files(dataset, tmp_path, reports.append)
    assert [report.stage for report in reports] == ["checking a.mat"]


def test_a_labelled_set_may_be_there_as_arrays_instead(tmp_path):
    orl = CATALOGUE["orl"]
    (tmp_path / "orl").mkdir()
    assert not is_available(orl, tmp_path)
    np.savez(tmp_path / "orl" / "faces.npz", images=np.ones((2, 3)), labels=[0, 1])
    state = check_files(orl, tmp_path)
    assert [one.state for one in state.files] == [MISSING]
    assert state.other_form == [tmp_path / "orl" / "faces.npz"]
    assert state.is_usable
    assert is_available(orl, tmp_path)


def test_a_labelled_set_may_be_there_as_loose_pictures_instead(tmp_path, draw):
    draw(tmp_path / "coil20" / "mine" / "obj1__0.png")
    assert check_files(CATALOGUE["coil20"], tmp_path).other_form == [tmp_path / "coil20" / "mine"]


def test_what_was_unpacked_from_its_own_archive_is_no_other_form(tmp_path, draw):
    draw(tmp_path / "coil20" / "pictures" / "coil-20-proc" / "obj1__0.png")
    state = check_files(CATALOGUE["coil20"], tmp_path)
    assert [one.state for one in state.files] == [UNPACKED]
    assert state.other_form == []
    assert state.is_usable


@pytest.mark.parametrize("name", ["digits", "letters"])
def test_sets_without_files_are_always_here(tmp_path, name):
    assert is_available(CATALOGUE[name], tmp_path)
    assert check_files(CATALOGUE[name], tmp_path).is_usable


def test_a_set_of_which_nothing_is_fetched_by_default_is_not_here_for_that(tmp_path):
    distractors = CATALOGUE["distractors100k"]
    assert not is_available(distractors, tmp_path)
    assert not check_files(distractors, tmp_path).is_usable
    for file in distractors.files:
        place = tmp_path / "distractors100k" / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"rar")
    assert is_available(distractors, tmp_path)
    assert check_files(distractors, tmp_path).is_usable
