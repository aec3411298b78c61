"""Names of files as text, and which files may be shown."""

import json
import os

from hypothesis import example, given
from hypothesis import strategies as st

from manifind.images.files import path_from_text, path_text, picture_file, remember_folder, shown_folders

names = st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name)
tricky = st.lists(
    st.sampled_from([b"\\", b"x", b"5", b"c", b"ff", b"\xff", b"\xc3", b"\xa9", b"/", b"a"]), min_size=1
).map(b"".join)


@given(name=st.one_of(names, tricky))
@example(name=rb"\xff")
@example(name=b"\\\xff")
@example(name=b"\\x5\xff")
def test_a_path_comes_back_from_its_text_so_that_no_two_share_one(name):
    path = os.fsdecode(name)
    text = path_text(path)
    text.encode()
    assert path_from_text(text) == path


@given(name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\\\0"), min_size=1))
def test_an_ordinary_name_is_its_own_text(name):
    assert path_text(name) == name


def test_the_folder_of_a_collection_is_remembered_for_its_name_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    mine, other = {"collection": "one"}, {"collection": "two"}
    assert shown_folders(mine) == ()
    remember_folder(mine, tmp_path)
    assert shown_folders(mine) == (tmp_path,)
    assert shown_folders(other) == ()
    assert shown_folders(mine, [tmp_path / "state"]) == (tmp_path / "state",)
    remember_folder(mine, tmp_path / "state")
    assert shown_folders(mine) == (tmp_path / "state",)


def test_folders_recorded_under_the_former_name_of_the_program_are_still_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    old = tmp_path / "gradnet" / "indexed-folders.json"
    old.parent.mkdir()
    old.write_text(json.dumps({"one": str(tmp_path / "a"), "two": str(tmp_path / "b")}))
    assert shown_folders({"collection": "one"}) == (tmp_path / "a",)
    remember_folder({"collection": "one"}, tmp_path / "c")
    assert shown_folders({"collection": "one"}) == (tmp_path / "c",)
    assert shown_folders({"collection": "two"}) == (tmp_path / "b",)


def test_a_record_that_cannot_be_read_or_written_shows_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "manifind").write_text("in the way")
    remember_folder({"collection": "one"}, tmp_path)
    assert shown_folders({"collection": "one"}) == ()
    (tmp_path / "manifind").unlink()
    (tmp_path / "manifind").mkdir()
    for content in ("[1]", "{", '{"one": 5}', "\xff"):
        (tmp_path / "manifind" / "indexed-folders.json").write_text(content, encoding="latin-1")
        assert shown_folders({"collection": "one"}) == ()


def test_only_regular_files_below_the_folder_are_shown(tmp_path):
    folder = tmp_path / "photos"
    (folder / "inside").mkdir(parents=True)
    for file in (folder / "a.png", tmp_path / "secret.png"):
        file.write_text("x")
    (folder / "out").symlink_to(tmp_path)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "within.png").symlink_to(folder / "a.png")
    os.mkfifo(folder / "pipe.png")
    for path, is_shown in {
        "a.png": True,
        "within.png": True,
        "link.png": False,
        "out/secret.png": False,
        "../secret.png": False,
        str(tmp_path / "secret.png"): False,
        "inside": False,
        "pipe.png": False,
        "": False,
        ".": False,
        "none.png": False,
        "a" * 5000: False,
        "a\0.png": False,
    }.items():
        found = picture_file([folder], {"path": path, "sha256": "0"})
        assert (found is not None) == is_shown, path
    assert picture_file([folder], {"path": "a.png"}) is None
    assert picture_file([], {"path": "a.png", "sha256": "0"}) is None
