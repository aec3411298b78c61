"""Metadata of items that stay: fields are set and taken away one by one, and those of pictures' files are protected."""

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

import manifind
from collection.crafting import change_manifest
from collection.small_collection import NAMES, random_rows
from manifind.collection.metadata import OWN_FIELDS, merged_metadata, metadata_texts, read_metadata
from manifind.errors import InputError

FILE = {"path": "a.jpg", "sha256": "00", "bytes": 5, "modified": 6, "taken": "1999-01-01 00:00:00"}


@pytest.fixture
def of_pictures(pristine, tmp_path):
    """A collection that says it was made of a folder, with what is kept of a file for the first item."""
    path = shutil.copytree(pristine, tmp_path / "c")
    manifind.load(path).update(NAMES[:1], metadata=[{**FILE, "exif": ["taken"], "room": "attic"}])
    change_manifest(path, "source", folder="somewhere")
    return manifind.load(path)


def fields(collection, id_=NAMES[0]):
    (found,) = manifind.load(collection.path).metadata([id_])
    assert collection.metadata([id_]) == [found]
    return found


def test_an_update_sets_some_fields_and_keeps_the_others(saved):
    collection = manifind.load(saved)
    collection.update(NAMES[:2], metadata=[{"year": 1990, "room": "attic"}, {"year": 1991}])
    collection.update(NAMES[:2], metadata=[{"room": "hall", "tags": ["a"]}, None])
    assert fields(collection) == {"year": 1990, "room": "hall", "tags": ["a"]}
    assert fields(collection, NAMES[1]) == {"year": 1991}


def test_none_takes_a_field_away(saved):
    collection = manifind.load(saved)
    collection.update(NAMES[:1], metadata=[{"year": 1990, "room": "attic"}])
    collection.update(NAMES[:1], metadata=[{"room": None, "never there": None}])
    assert fields(collection) == {"year": 1990}


def test_an_update_of_descriptors_keeps_fields_and_sets_those_that_are_given(saved):
    collection = manifind.load(saved)
    collection.update(NAMES[:1], metadata=[{"year": 1990, "room": "attic"}])
    collection.update(NAMES[:1], random_rows(1, 5), [{"room": "hall"}])
    assert fields(collection) == {"year": 1990, "room": "hall"}
    collection.update(NAMES[:1], random_rows(1, 6))
    assert fields(collection) == {"year": 1990, "room": "hall"}


def test_two_handles_that_set_different_fields_both_have_their_way(saved):
    one, other = manifind.load(saved), manifind.load(saved)
    one.update(NAMES[:1], metadata=[{"year": 1990}])
    other.update(NAMES[:1], metadata=[{"room": "attic"}])
    assert fields(other) == {"year": 1990, "room": "attic"}


@pytest.mark.parametrize("name", ["path", "sha256", "modified", "fingerprint"])
def test_fields_of_a_pictures_file_cannot_be_set_or_taken_away(of_pictures, name):
    before = fields(of_pictures)
    for value in ("another", None) if name in before else ("another",):
        with pytest.raises(InputError, match=f"the field '{name}' of .* is kept by manifind"):
            of_pictures.update(NAMES[:1], metadata=[{"room": "hall", name: value}])
    with pytest.raises(InputError, match="kept by manifind"):
        of_pictures.update(NAMES[:1], random_rows(1, 5), [{name: "another"}])
    with pytest.raises(InputError, match="kept by manifind"):
        of_pictures.add(random_rows(1, 5), ["new"], [{name: "another"}])
    assert fields(of_pictures) == before


def test_what_was_read_can_be_written_back_with_a_field_more(of_pictures):
    of_pictures.update(NAMES[:1], metadata=[{**fields(of_pictures), "title": "Rome"}])
    assert fields(of_pictures)["title"] == "Rome"


def test_a_date_that_was_corrected_is_no_longer_known_as_the_files_own(of_pictures):
    of_pictures.update(NAMES[:1], metadata=[{"taken": "1921-05-01 00:00:00"}])
    assert fields(of_pictures) == {**FILE, "taken": "1921-05-01 00:00:00", "exif": [], "room": "attic"}


def test_in_a_collection_of_vectors_every_name_is_the_users(saved):
    collection = manifind.load(saved)
    collection.update(NAMES[:1], metadata=[dict.fromkeys(OWN_FIELDS, "mine")])
    assert fields(collection) == dict.fromkeys(OWN_FIELDS, "mine")


def test_metadata_that_grows_too_long_by_merging_is_refused(saved):
    collection = manifind.load(saved)
    collection.update(NAMES[:1], metadata=[{"a": "x" * 40_000}])
    with pytest.raises(InputError, match="characters; expected at most"):
        collection.update(NAMES[:1], metadata=[{"b": "x" * 40_000}])
    assert list(fields(collection)) == ["a"]


names = st.sampled_from("abcd")
values = st.one_of(st.none(), st.integers(-5, 5), st.text("xyz", max_size=2), st.booleans())


@given(before=st.dictionaries(names, values), changes=st.dictionaries(names, values))
def test_merging_is_what_a_dictionary_would_do(before, changes):
    (text,) = metadata_texts([before], 1)
    found = read_metadata(merged_metadata(text, changes, (), "x"), "x")
    kept = {name: value for name, value in before.items() if name not in changes}
    assert found == kept | {name: value for name, value in changes.items() if value is not None}
