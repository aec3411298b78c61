"""The original text files of Oxford and Paris: four for each query, and what happens when one is missing or odd."""

from __future__ import annotations

import pytest

from manifind.errors import FileFormatError
from manifind.io.ground_truth import read_ground_truth

FILES = {
    "all_souls_1_query.txt": "oxc1_all_souls_000013 136.5 34.1 648.5 955.7\n",
    "all_souls_1_good.txt": "all_souls_000026\noxford_002985\n",
    "all_souls_1_ok.txt": "all_souls_000013\n",
    "all_souls_1_junk.txt": "",
    "all_souls_10_query.txt": "paris_defense_000605 1 2 3 4",
    "all_souls_10_good.txt": "",
    "all_souls_10_ok.txt": "christ_church_000179\r\n\r\nall_souls_000026\r\n",
    "all_souls_10_junk.txt": "oxford_002985",
}


@pytest.fixture
def folder(fresh):
    """A folder with other files in it, in which the published ones can be changed."""

    def make(**changes):
        path = fresh("_gt")
        path.mkdir()
        (path / "README.txt").write_text("about")
        for name, text in (FILES | {f"{name}.txt": text for name, text in changes.items()}).items():
            if text is not None:
                (path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def refused(path):
    with pytest.raises(FileFormatError) as caught:
        read_ground_truth(path)
    assert str(path) in caught.value.problem
    assert caught.value.hint
    return caught.value.problem


def named(truth, name):
    return [[truth.images[position] for position in one] for one in truth.lists[name]]


def test_good_and_ok_are_joined_and_queries_sorted_by_their_files(folder):
    truth = read_ground_truth(folder())
    assert truth.queries == ("all_souls_000013", "paris_defense_000605")
    assert named(truth, "ok") == [
        ["all_souls_000013", "all_souls_000026", "oxford_002985"],
        ["all_souls_000026", "christ_church_000179"],
    ]
    assert named(truth, "junk") == [[], ["oxford_002985"]]
    assert set(truth.lists) == {"ok", "junk"}


def test_the_images_are_all_that_are_mentioned_sorted_and_not_the_whole_set(folder):
    truth = read_ground_truth(folder())
    assert truth.images == (
        "all_souls_000013",
        "all_souls_000026",
        "christ_church_000179",
        "oxford_002985",
        "paris_defense_000605",
    )
    assert not truth.is_whole


@pytest.mark.parametrize("kind", ["query", "good", "ok", "junk"])
def test_a_missing_file_is_named(folder, kind):
    problem = refused(folder(**{f"all_souls_10_{kind}": None}))
    assert f"all_souls_10_{kind}.txt does not exist" in problem


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("all_souls_1_good", "a\nb\na\n", "twice"),
        ("all_souls_1_ok", "all_souls_000026", "has the image 'all_souls_000026' twice"),
        ("all_souls_1_junk", "oxford_002985", "has the image 'oxford_002985', which stands in 'ok' too"),
        ("all_souls_1_good", "two words", "has 'two words'; expected one name a line"),
        ("all_souls_1_query", "", "has ''; expected one line"),
        ("all_souls_1_query", "name 1 2 3", "'name 1 2 3'"),
        ("all_souls_1_query", "name 1 2 3 nan", "'name 1 2 3 nan'"),
        ("all_souls_1_query", "name 1 2 3 4\nname 1 2 3 4", "expected one line"),
        ("all_souls_1_query", "name 1 2 3 four", "'name 1 2 3 four'"),
        ("all_souls_1_good", b"\xff", "not UTF-8"),
    ],
)
def test_odd_files_are_refused_by_name(folder, name, text, problem):
    assert problem in refused(folder(**{name: text}))


def test_a_folder_without_such_files_is_refused(fresh):
    path = fresh("_gt")
    path.mkdir()
    assert "has no file such as" in refused(path)


def test_a_folder_in_place_of_a_file_is_refused(folder):
    path = folder(all_souls_1_ok=None)
    (path / "all_souls_1_ok.txt").mkdir()
    assert "all_souls_1_ok.txt" in refused(path)
