"""A folder with vectors and ground truth: which files are taken for which, and what they become together."""

import json

import numpy as np
import pytest

from manifind.datasets.landmarks import landmark_files, read_pair

LISTS = {"gnd": [{"ok": [0], "junk": [1]}], "imlist": ["a", "b"], "qimlist": ["a"]}


@pytest.fixture
def folder(tmp_path):
    np.savez(tmp_path / "vectors.npz", vectors=np.eye(2), names=["b", "a"])
    (tmp_path / "gnd_town.json").write_text(json.dumps(LISTS))
    return tmp_path


def names(folder):
    return [(pair.vectors.name, pair.truth.name) for pair in landmark_files(folder)]


def test_every_file_of_vectors_is_paired_with_every_ground_truth(folder):
    np.save(folder / "more.npy", np.eye(2))
    (folder / "gnd_city.json").write_text(json.dumps(LISTS))
    (folder / "notes.txt").write_text("not vectors")
    expected = [(v, t) for v in ("more.npy", "vectors.npz") for t in ("gnd_city.json", "gnd_town.json")]
    assert names(folder) == expected


def test_of_one_ground_truth_in_several_forms_the_json_is_read(folder):
    for suffix in ("pkl", "mat"):
        (folder / f"gnd_town.{suffix}").write_bytes(b"never opened")
    assert names(folder) == [("vectors.npz", "gnd_town.json")]


def test_a_folder_of_text_files_is_ground_truth(folder):
    (folder / "gnd_town.json").unlink()
    texts = folder / "gt_files"
    texts.mkdir()
    lists = {"query": "a 0 0 9 9", "good": "a", "ok": "", "junk": "b"}
    for kind, text in lists.items():
        (texts / f"town_1_{kind}.txt").write_text(text)
    (files,) = landmark_files(folder)
    data = read_pair(files)
    assert files.truth == texts
    assert [one.tolist() for one in data.truth.lists["ok"]] == [[0]]
    np.testing.assert_array_equal(data.queries, [[0, 1]])


def test_vectors_and_lists_are_brought_together_by_name(folder):
    (files,) = landmark_files(folder)
    data = read_pair(files)
    np.testing.assert_array_equal(data.descriptors, [[0, 1], [1, 0]])


@pytest.mark.parametrize("gone", ["vectors.npz", "gnd_town.json"])
def test_without_one_of_the_two_there_is_nothing(folder, gone):
    (folder / gone).unlink()
    assert landmark_files(folder) == []
    assert landmark_files(folder / "nowhere") == []
