"""A folder is gone through without getting lost, and moved files are known again by what is in them."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from manifind.errors import InputError
from manifind.images.files import Found, Known, match, take_inventory


def picture(path, colour=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4), (colour, 0, 0)).save(path)
    return path


def test_pictures_of_all_folders_are_found_in_the_order_of_their_paths(tmp_path):
    for name in ("b.jpg", "a/z.PNG", "a b/ü 猫.webp", "deep/er/x.gif"):
        picture(tmp_path / name)
    (tmp_path / "notes.txt").write_text("hello")
    picture(tmp_path / ".hidden.jpg")
    picture(tmp_path / ".trash" / "old.jpg")
    inventory = take_inventory(tmp_path)
    assert [found.path for found in inventory.pictures] == ["a b/ü 猫.webp", "a/z.PNG", "b.jpg", "deep/er/x.gif"]
    assert len(inventory.others) == 1
    assert inventory.problems == []


def test_a_picture_under_another_name_is_found_and_a_text_called_picture_is_listed_later(tmp_path):
    os.rename(picture(tmp_path / "a.png"), tmp_path / "a.backup")
    (tmp_path / "b.jpg").write_text("hello")
    assert [found.path for found in take_inventory(tmp_path).pictures] == ["a.backup", "b.jpg"]


def test_links_are_followed_to_files_and_not_to_folders(tmp_path):
    picture(tmp_path / "real" / "a.png")
    (tmp_path / "link.png").symlink_to(tmp_path / "real" / "a.png")
    (tmp_path / "real" / "loop").symlink_to(tmp_path)
    (tmp_path / "broken.png").symlink_to(tmp_path / "nowhere")
    inventory = take_inventory(tmp_path)
    assert [found.path for found in inventory.pictures] == ["link.png", "real/a.png"]
    assert dict(inventory.problems) == {
        "broken.png": "cannot be read: No such file or directory",
        "real/loop": "is a link to a folder, which is not followed",
    }


def test_names_that_are_no_text_are_found(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff\xfe.png"
    os.rename(picture(tmp_path / "a.png"), name)
    (found,) = take_inventory(tmp_path).pictures
    assert found.path == "\\xff\\xfe.png"
    assert found.file.stat().st_size == found.bytes


def test_pipes_are_left_alone_and_no_folder_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.jpg")
    assert take_inventory(tmp_path).pictures == []
    with pytest.raises(InputError, match="is no folder"):
        take_inventory(tmp_path / "nowhere")


def found(path, content, modified=0):
    return Found(path, content, len(content), modified)  # the content stands for the file


def known(items):
    return {id_: Known(path, content, len(content), 0) for id_, (path, content) in items.items()}


def test_same_moved_changed_new_and_gone_are_told_apart():
    items = known({1: ("a", "A"), 2: ("b", "B"), 3: ("c", "C"), 4: ("d", "D")})
    files = [found("a", "A"), found("e", "B"), found("c", "CC", 1), found("f", "F")]
    matched = match(files, items, lambda file: file.file)
    assert matched.same == [1]
    assert [(id_, file.path) for id_, file in matched.moved] == [(2, "e")]
    assert [(id_, file.path) for id_, file in matched.changed] == [(3, "c")]
    assert [file.path for file in matched.new] == ["f"]
    assert matched.gone == [4]


def test_two_that_change_places_keep_their_ids():
    items = known({1: ("a", "A"), 2: ("b", "BB")})
    matched = match([found("a", "BB"), found("b", "A")], items, lambda file: file.file)
    assert sorted((id_, file.path) for id_, file in matched.moved) == [(1, "b"), (2, "a")]
    assert [matched.new, matched.changed, matched.gone] == [[], [], []]


def test_a_file_that_was_not_touched_is_not_read():
    matched = match([found("a", "A")], known({1: ("a", "A")}), lambda file: pytest.fail("it was read"))
    assert matched.same == [1]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("XYZ")),
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("XYZW")),
)
def test_every_file_and_every_item_is_accounted_for_once(before, after):
    items = known(dict(enumerate(before.items())))
    matched = match([found(*entry, modified=1) for entry in after.items()], items, lambda file: file.file)
    ids = [*matched.same, *(id_ for id_, _ in (*matched.moved, *matched.changed)), *matched.gone]
    paths = [items[id_].path for id_ in matched.same]
    paths += [file.path for file in (*matched.new, *(file for _, file in (*matched.moved, *matched.changed)))]
    assert sorted(ids) == sorted(items)
    assert sorted(paths) == sorted(after)
    for id_, file in matched.moved:
        assert items[id_].sha256 == after[file.path]
