"""Fields of the user's own for photographs: joined by path, and there after renames, edits of files and refits."""

import json
import os
import shutil

import pytest
from PIL import Image

import manifind
from images.painted import NOTHING, paint, paint_many
from manifind.errors import InputError
from manifind.images.extractors import make_extractor
from manifind.images.files import picture_fields
from manifind.model.index_folder import index_folder

SMALL = {"n_neighbors": 3, "layers": (8, 4), "max_steps": 2, "batch_size": 8}
OWN = {"north/01.png": {"title": "Rome", "year": 1990}, "south/02.png": {"title": "Paris"}}


@pytest.fixture
def folder(tmp_path):
    return paint_many(tmp_path / "photos")


def index(folder, **options):
    target = folder.parent / "c"
    if not target.exists():
        options = {"extractor": make_extractor("pixels"), "settings": SMALL, **options}
    return index_folder(folder, target, **options)


def fields(folder, id_):
    return manifind.load(folder.parent / "c", verify=True).metadata([id_])[0]


def with_exif(path, seed, taken):
    """A photograph that says when it was taken; None for one that does not."""
    paint(path.with_suffix(".png"), seed)
    exif = Image.Exif()
    if taken:
        exif[0x0132] = taken
    Image.open(path.with_suffix(".png")).convert("RGB").save(path, exif=exif)
    path.with_suffix(".png").unlink()


def test_fields_are_joined_by_path_when_a_collection_is_made(folder):
    outcome = index(folder, metadata={**OWN, "./south/04.png": {"title": "Oslo"}, "nowhere.png": {"title": "?"}})
    assert outcome.unmatched == ["nowhere.png"]
    assert fields(folder, "north/01.png")["title"] == "Rome"
    assert fields(folder, "south/04.png")["title"] == "Oslo"
    assert fields(folder, "north/01.png")["width"] == 64
    assert manifind.load(folder.parent / "c").search_ids(["south/06.png"], 3, "year = 1990").ids.tolist() == [
        ["north/01.png"]
    ]


def test_fields_are_merged_later_and_said_by_both_runs(folder):
    index(folder)
    would, outcome = index(folder, metadata=OWN, dry_run=True), index(folder, metadata=OWN)
    assert would.counts == outcome.counts == {**NOTHING, "described": 2, "unchanged": 18}
    assert index(folder, metadata=OWN).counts == {**NOTHING, "unchanged": 20}
    index(folder, metadata={"north/01.png": {"year": 1991, "title": None}})
    found = fields(folder, "north/01.png")
    assert found["year"] == 1991
    assert "title" not in found
    assert fields(folder, "south/02.png")["title"] == "Paris"


def test_fields_survive_a_rename_an_edit_of_the_file_and_a_refit(folder):
    index(folder, metadata=OWN)
    manifind.load(folder.parent / "c").update(["south/02.png"], metadata=[{"rating": 5}])
    os.rename(folder / "north" / "01.png", folder / "renamed.png")
    paint(folder / "south" / "02.png", 500)
    assert index(folder).counts == {**NOTHING, "changed": 1, "moved": 1, "unchanged": 18}
    manifind.refit(manifind.load(folder.parent / "c"))
    moved, changed = fields(folder, "north/01.png"), fields(folder, "south/02.png")
    assert (moved["path"], moved["title"], moved["year"]) == ("renamed.png", "Rome", 1990)
    assert (changed["title"], changed["rating"]) == ("Paris", 5)
    assert index(folder).counts == {**NOTHING, "unchanged": 20}


def test_fields_of_a_file_that_is_renamed_in_the_same_run_are_joined_by_its_new_path(folder):
    index(folder)
    os.rename(folder / "north" / "01.png", folder / "renamed.png")
    index(folder, metadata={"renamed.png": {"title": "Rome"}})
    assert fields(folder, "north/01.png")["title"] == "Rome"


def test_metadata_of_no_picture_and_fields_of_the_files_are_refused(folder):
    index(folder)
    with pytest.raises(InputError, match="is of no picture") as caught:
        index(folder, metadata={"c.png": {"a": 1}, "d.png": {"a": 2}})
    assert "'north/01.png'" in caught.value.hint
    with pytest.raises(InputError, match="has a field 'sha256'"):
        index(folder, metadata={"north/01.png": {"sha256": "0"}})
    with pytest.raises(InputError, match="'year' is a complex"):
        index(folder, metadata={"north/01.png": {"year": 1j}})


def test_what_a_file_says_is_replaced_with_the_file_and_what_the_user_says_is_not(folder):
    for number in range(3):
        with_exif(folder / f"{number}.jpg", 600 + number, "2001:02:03 04:05:06")
    index(folder)
    assert fields(folder, "0.jpg")["taken"] == "2001-02-03 04:05:06"
    index(folder, metadata={"1.jpg": {"taken": "1999"}})
    manifind.load(folder.parent / "c").update(["2.jpg"], metadata=[{"taken": "1998"}])
    for number in range(3):
        with_exif(folder / f"{number}.jpg", 700 + number, "2010:02:03 04:05:06" if number else None)
    assert index(folder).counts["changed"] == 3
    assert "taken" not in fields(folder, "0.jpg")
    assert [fields(folder, f"{number}.jpg")["taken"] for number in (1, 2)] == ["1999", "1998"]


@pytest.mark.parametrize("before", [{"taken": "old"}, {"taken": "old", "exif": ["taken"]}])
def test_a_collection_of_before_holds_what_files_said(before):
    assert picture_fields({"taken": "new"}, before, {})["taken"] == "new"
    assert picture_fields({}, before, {})["taken"] is None
    assert picture_fields({"taken": "new"}, before, {"taken": "own"})["taken"] == "own"


def test_the_command_line_takes_a_table_with_a_column_path(folder, capfd):
    index(folder)
    (folder.parent / "own.csv").write_text("path,title,year\nnorth/01.png,Rome,1990\nnowhere.png,x,1\n")
    from manifind.cli.index import index as index_verb

    index_verb(folder, folder.parent / "c", metadata=folder.parent / "own.csv", as_json=True)
    summary = json.loads(capfd.readouterr().out)
    assert summary["described"] == 1
    assert summary["metadata_without_picture"] == ["nowhere.png"]
    assert fields(folder, "north/01.png")["year"] == 1990


def test_an_export_keeps_them(folder):
    collection = index(folder, metadata=OWN).collection
    small = folder.parent / "small"
    collection.export(small, "compressed")
    assert manifind.load(small).metadata(["north/01.png"])[0]["title"] == "Rome"
    shutil.rmtree(small)
