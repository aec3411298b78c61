"""The catalogue: every declaration is complete, leads nowhere strange, and claims no digest without a source."""

import re
from pathlib import PurePosixPath
from urllib.parse import urlsplit

import pytest

from manifind.datasets.catalogue import (
    CATALOGUE,
    PARTS,
    bytes_text,
    find_set,
    items_text,
    licence_text,
    select_files,
    size_text,
)
from manifind.errors import InputError

SETS = list(CATALOGUE.values())
FILES = [(dataset, file) for dataset in SETS for file in dataset.files]
NAMES = {
    *("orl", "oxford5k", "oxford105k", "paris6k", "paris106k", "roxford5k", "rparis6k", "distractors100k"),
    *("mpeg7", "coil20", "digits", "letters"),
}


def test_the_catalogue_has_the_sets_of_the_paper_and_those_that_need_nothing():
    assert set(CATALOGUE) == NAMES
    assert {dataset.name for dataset in SETS if not dataset.files} == {"digits", "letters"}


@pytest.mark.parametrize("dataset", SETS, ids=lambda dataset: dataset.name)
def test_a_set_says_what_it_is_where_it_comes_from_and_under_which_terms(dataset):
    for text in (dataset.title, dataset.truth, dataset.source, licence_text(dataset)):
        assert text
        assert "\n" not in text
    assert dataset.items > 0
    assert bool(dataset.obtain) == bool(dataset.files)
    assert len({file.path for file in dataset.files}) == len(dataset.files)
    targets = [file.unpack_to for file in dataset.files if file.unpack_to]
    assert len(set(targets)) == len(targets)


@pytest.mark.parametrize(("dataset", "file"), FILES, ids=lambda value: getattr(value, "name", ""))
def test_a_file_has_a_plain_address_and_a_place_inside_its_folder(dataset, file):
    address = urlsplit(file.url)
    assert address.scheme in ("http", "https", "ftp")
    assert address.username is None
    assert address.path.endswith(file.name)
    for path in filter(None, (file.path, file.unpack_to)):
        assert not PurePosixPath(path).is_absolute()
        assert ".." not in PurePosixPath(path).parts
    assert file.part in PARTS
    assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
    assert file.size is None or file.size > 0


def test_only_the_originals_that_are_known_have_a_published_digest():
    assert {file.name for _, file in FILES if file.sha256} == {
        "gnd_roxford5k.pkl",
        "gnd_roxford5k.mat",
        "gnd_rparis6k.pkl",
    }


@pytest.mark.parametrize("dataset", SETS, ids=lambda dataset: dataset.name)
def test_photographs_are_fetched_by_default_only_where_they_are_the_descriptors(dataset):
    by_default = {file.part for file in select_files(dataset)}
    if "descriptors" in dataset.parts:
        assert by_default == {"descriptors", "ground-truth"}
    else:
        assert by_default <= {"images"}


def test_a_part_can_be_chosen():
    oxford = CATALOGUE["oxford5k"]
    assert [file.name for file in select_files(oxford, ["images"])] == ["oxbuild_images-v1.tgz", "gt_files_170407.tgz"]
    assert len(select_files(oxford, ["images", "descriptors"])) == 4


@pytest.mark.parametrize(("name", "expected"), [("orl", "'images'"), ("digits", "none: it has no files")])
def test_a_part_that_does_not_exist_is_refused_with_those_that_do(name, expected):
    with pytest.raises(InputError, match=f"{name} has no part called 'sounds'; expected {expected}"):
        select_files(CATALOGUE[name], ["sounds"])


@pytest.mark.parametrize(("wrong", "near"), [("oxfrod5k", "oxford5k"), ("COIL20", "coil20"), ("mpeg", "mpeg7")])
def test_an_unknown_name_is_refused_with_the_nearest(wrong, near):
    with pytest.raises(InputError) as caught:
        find_set(wrong)
    assert repr(wrong) in caught.value.problem
    assert near in caught.value.hint


def test_a_name_that_is_near_to_none_leads_to_the_list():
    with pytest.raises(InputError, match="`manifind data list`"):
        find_set("zzz")


def test_sizes_and_counts_are_written_for_people():
    assert [bytes_text(n) for n in (None, 12, 149_871, 4_500_000, 1_938_238_004)] == [
        "not known",
        "12 bytes",
        "150 kB",
        "4.5 MB",
        "1.94 GB",
    ]
    assert items_text(CATALOGUE["oxford105k"]) == "about 105,000"
    assert items_text(CATALOGUE["oxford5k"]) == "5,063"
    assert size_text(CATALOGUE["digits"]) == "nothing to fetch"
    assert size_text(CATALOGUE["coil20"]) == "12.1 MB"


def test_terms_that_could_not_be_confirmed_are_not_made_up():
    assert licence_text(CATALOGUE["distractors100k"]) == "not confirmed: see its source"


def test_the_size_of_a_set_is_not_known_where_that_of_one_file_is_not():
    assert CATALOGUE["roxford5k"].size is None
