"""Exports hold the features of the items that are there, under their ids, whole or not at all."""

import json
import os

import faiss
import numpy as np
import pytest

import manifind
from collection.small_collection import NAMES, N, files_of, random_rows
from manifind.errors import InputError


@pytest.fixture
def museum(saved):
    collection = manifind.load(saved)
    collection.add(random_rows(3, 5), ["a", "b", "c"], [{"year": 1900}, None, None])
    collection.remove(NAMES[:10])
    return collection


def test_an_array_and_its_ids(museum, tmp_path):
    files = museum.export(tmp_path / "f.npy", "npy")
    assert files == [tmp_path / "f.npy", tmp_path / "f.npy.ids.json"]
    np.testing.assert_array_equal(np.load(files[0]), museum.features)
    assert json.loads(files[1].read_text()) == museum.ids.tolist()


def test_a_table_can_be_read_again(museum, tmp_path):
    pytest.importorskip("pyarrow")
    museum.export(tmp_path / "f.parquet", "parquet")
    read = manifind.read_vectors(tmp_path / "f.parquet")
    np.testing.assert_array_equal(read.rows, museum.features)
    assert read.ids == museum.ids.tolist()


def test_faiss_finds_what_the_collection_finds(museum, tmp_path):
    files = museum.export(tmp_path / "f.index", "faiss")
    index, names = faiss.read_index(str(files[0])), np.array(json.loads(files[1].read_text()))
    queries = random_rows(4, 8)
    found = names[index.search(museum.transform(queries), 5)[1]]
    np.testing.assert_array_equal(found, museum.search(queries, 5).ids.astype(str))


def test_numbers_are_ids_of_faiss_too(model, tmp_path):
    ids = (np.arange(N) * 7 + 3).tolist()
    collection = model.save(tmp_path / "c", ids)
    files = collection.export(tmp_path / "f.index", "faiss")
    assert len(files) == 1
    found = faiss.read_index(str(files[0])).search(collection.features[:5], 1)[1]
    assert found[:, 0].tolist() == ids[:5]


@pytest.mark.parametrize("to", ["npy", "parquet", "faiss", "compressed"])
@pytest.mark.parametrize("name", ["collection.sqlite", "new", "segments/new.npy", "segments/../collection.sqlite"])
def test_a_target_inside_a_collection_is_refused(museum, model, tmp_path, to, name):
    other = model.save(tmp_path / "other", NAMES)
    (tmp_path / "link").symlink_to(other.path)
    for path in (museum.path, other.path, tmp_path / "link"):
        before = files_of(path)
        with pytest.raises(InputError, match="is inside the collection"):
            museum.export(path / name, to, overwrite=True)
        assert files_of(path) == before


def test_another_kind_and_a_folder_are_refused(museum, tmp_path):
    with pytest.raises(InputError, match="to = 'zip'; expected one of 'npy'"):
        museum.export(tmp_path / "x", "zip")
    with pytest.raises(InputError, match="is a folder"):
        museum.export(tmp_path, "npy")
    with pytest.raises(InputError, match="codes = 'zip'"):
        museum.export(tmp_path / "x", "compressed", codes="zip")


@pytest.mark.parametrize("to", ["npy", "faiss"])
def test_a_place_that_cannot_be_written_is_refused_and_nothing_is_left(museum, tmp_path, to):
    with pytest.raises(InputError, match="cannot be written"):
        museum.export(tmp_path / "nowhere" / "x", to)
    assert not (tmp_path / "nowhere").exists()


def test_an_export_that_fails_leaves_the_old_file(museum, tmp_path, monkeypatch):
    museum.export(tmp_path / "f.npy", "npy")
    before = (tmp_path / "f.npy").read_bytes()
    museum.remove([NAMES[20]])

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InputError, match="No space left"):
        museum.export(tmp_path / "f.npy", "npy")
    assert (tmp_path / "f.npy").read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith(".")) == []
