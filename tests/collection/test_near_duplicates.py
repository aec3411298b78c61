"""Duplicates are found: equal descriptors, and pictures that look nearly the same."""

import numpy as np
import pytest
from PIL import Image

import manifind
from images.painted import paint_many
from manifind.collection.near_duplicates import find_near_duplicates
from manifind.model.index_folder import index_folder

SMALL = {"n_neighbors": 3, "layers": (8, 4), "max_steps": 2, "batch_size": 8}


@pytest.fixture
def twice(tmp_path):
    """Twenty pictures, one of them as a copy, another made smaller, a third saved badly."""
    folder = paint_many(tmp_path / "photos")
    (folder / "copy.png").write_bytes((folder / "north" / "01.png").read_bytes())
    Image.open(folder / "south" / "02.png").resize((48, 36)).save(folder / "small.png")
    Image.open(folder / "south" / "04.png").save(folder / "bad.jpg", quality=60)
    return index_folder(folder, tmp_path / "c", "pixels", SMALL).collection


def test_copies_are_the_same_and_what_was_made_smaller_is_nearly(twice):
    alike = find_near_duplicates(twice)
    assert alike.same == [["copy.png", "north/01.png"]]
    assert sorted(map(sorted, alike.near)) == [
        ["bad.jpg", "south/04.png"],
        ["copy.png", "north/01.png"],
        ["small.png", "south/02.png"],
    ]


def test_what_is_removed_is_no_longer_there_twice(twice):
    twice.remove(["copy.png", "south/02.png"])
    alike = find_near_duplicates(twice)
    assert alike.same == []
    assert [sorted(group) for group in alike.near] == [["bad.jpg", "south/04.png"]]


def test_vectors_are_the_same_or_not(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)
    X[7] = X[3]
    collection = manifind.GradNet(**SMALL, random_state=0).fit(X).save(tmp_path / "c")
    assert find_near_duplicates(collection) == ([[3, 7]], [])


@pytest.mark.parametrize("text", ["", "zz", "f" * 63, "G" * 64, 7, None])
def test_a_fingerprint_that_is_none_is_left_out(twice, text):
    twice.change(described={"small.png": {"fingerprint": text}}, own_fields=True)
    assert ["small.png", "south/02.png"] not in [sorted(group) for group in find_near_duplicates(twice).near]


def test_pictures_linked_through_others_are_one_group(twice):
    """A differs from B, and B from C, by less than the limit, and A from C by more."""
    bits = [np.zeros(256, np.uint8) for _ in range(3)]
    bits[1][:20], bits[2][:40] = 1, 1
    texts = [np.packbits(one).tobytes().hex() for one in bits]
    names = ["small.png", "bad.jpg", "copy.png"]
    fields = {name: {"fingerprint": text} for name, text in zip(names, texts, strict=True)}
    twice.change(described=fields, own_fields=True)
    assert sorted(names) in [sorted(group) for group in find_near_duplicates(twice).near]
