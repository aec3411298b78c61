"""Duplicates are found: equal descriptors, and pictures that look nearly the same; and the best copy of each."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import manifind
from images.painted import paint_many
from manifind.collection.near_duplicates import best_copy, duplicate_groups, find_near_duplicates, remaining_duplicates
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


def chain_of_three(collection):
    """A differs from B, and B from C, by less than the limit, and A from C by more."""
    bits = [np.zeros(256, np.uint8) for _ in range(3)]
    bits[1][:20], bits[2][:40] = 1, 1
    texts = [np.packbits(one).tobytes().hex() for one in bits]
    names = ["small.png", "bad.jpg", "copy.png"]
    fields = {name: {"fingerprint": text} for name, text in zip(names, texts, strict=True)}
    collection.change(described=fields, own_fields=True)
    return names


def test_pictures_linked_through_others_are_one_group(twice):
    assert sorted(chain_of_three(twice)) in [sorted(group) for group in find_near_duplicates(twice).near]


def test_every_item_is_in_one_group_with_the_copy_to_keep_and_its_reason(twice):
    groups = duplicate_groups(twice)
    assert [(group.kind, sorted(group.ids)) for group in groups] == [
        ("same", ["copy.png", "north/01.png"]),
        ("near", ["bad.jpg", "south/04.png"]),
        ("near", ["small.png", "south/02.png"]),
    ]
    same, bad, small = groups
    assert (same.best, same.reason) == ("copy.png", "the shortest path")
    assert (small.best, small.reason) == ("south/02.png", "64 x 48, the largest")
    assert bad.best == "south/04.png"
    assert bad.reason.endswith("the most bytes")


def test_groups_that_share_an_item_are_one(twice):
    """Its twin by descriptors, and by its fingerprint a third."""
    twin = twice.metadata(["south/04.png"])[0]["fingerprint"]
    twice.change(described={"copy.png": {"fingerprint": twin}}, own_fields=True)
    first, *_ = (group for group in duplicate_groups(twice) if "copy.png" in group.ids)
    assert first.kind == "near"
    assert sorted(first.ids) == ["bad.jpg", "copy.png", "north/01.png", "south/04.png"]


class Without:
    """A collection as if some of its items were not there."""

    def __init__(self, collection, gone):
        self._gone, self.metadata = gone, collection.metadata

    def __contains__(self, id_):
        return id_ not in self._gone


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.sampled_from(["copy.png", "north/01.png", "small.png", "south/02.png", "bad.jpg", "south/04.png"])))
def test_what_remains_is_what_would_be_found_anew(twice, gone):
    before, left = find_near_duplicates(twice), Without(twice, gone)
    anew = [sorted(rest) for group in before.near if len(rest := set(group) - gone) > 1]
    assert [sorted(group) for group in remaining_duplicates(left, before).near] == anew


def test_what_was_alike_through_a_removed_item_is_so_no_more(twice):
    names = chain_of_three(twice)
    before = find_near_duplicates(twice)
    twice.remove([names[1]])
    assert not any(set(names) & set(group) for group in remaining_duplicates(twice, before).near)
    assert sorted(remaining_duplicates(twice, before).near) == sorted(find_near_duplicates(twice).near)


LARGE = {"path": "a/large.jpg", "width": 4000, "height": 3000, "bytes": 2_400_000, "format": "JPEG"}


@pytest.mark.parametrize(
    ("changes", "best", "reason"),
    [
        ({"width": 400, "height": 300}, "a", "4000 x 3000, the largest"),
        ({"width": True, "height": "3000"}, "a", "4000 x 3000, the only one of known size"),
        ({"bytes": 999}, "a", "2.4 MB, the most bytes"),
        ({"bytes": 2_500_000}, "b", "2.5 MB, the most bytes"),
        ({"format": "PNG"}, "b", "PNG, the only format without loss"),
        ({"taken": "2019-07-31 12:30:00"}, "b", "taken 2019-07-31 12:30:00, the only one with a date"),
        ({"path": "b.jpg"}, "b", "the shortest path"),
        ({"path": "a/Large.jpg"}, "b", "the first by its path"),
        ({"path": 7}, "a", "the shortest path"),
    ],
)
def test_the_first_difference_decides_which_copy_is_best(changes, best, reason):
    assert best_copy({"a": LARGE, "b": {**LARGE, **changes}}) == (best, reason)


def test_of_several_as_large_and_heavy_the_earliest_is_best():
    copies = {year: {**LARGE, "taken": f"{year}-01-01"} for year in (2021, 2003, 2010)}
    assert best_copy(copies) == (2003, "taken 2003-01-01, the earliest")


def test_small_files_are_said_in_small_units():
    assert best_copy({1: {"bytes": 900}, 2: {"bytes": 30}})[1] == "900 bytes, the most bytes"
    assert best_copy({1: {"bytes": 9000}, 2: {"bytes": 30}})[1] == "9.0 kB, the most bytes"


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30)
NAMES = st.sampled_from(["path", "width", "height", "bytes", "format", "taken"])


@given(st.lists(st.dictionaries(NAMES, ANYTHING | st.lists(ANYTHING, max_size=2)), min_size=2, max_size=5))
def test_whatever_metadata_says_one_copy_is_proposed_in_words(metadata):
    items = dict(enumerate(metadata))
    best, reason = best_copy(items)
    assert best in items
    assert reason
    assert best_copy(items) == (best, reason)
