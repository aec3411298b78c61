"""A folder becomes a collection and stays one: run again, exactly what has changed is touched."""

import os
import shutil

import numpy as np
import pytest
from PIL import Image

import manifind
from images.painted import NOTHING, paint, paint_many
from manifind.collection.database import work_folder
from manifind.errors import CollectionError, InputError
from manifind.images.extractors import make_extractor
from manifind.model.index_folder import index_folder

SMALL = {"n_neighbors": 3, "layers": (8, 4), "max_steps": 2, "batch_size": 8}


@pytest.fixture
def folder(tmp_path):
    return paint_many(tmp_path / "photos")


def index(folder, path, **options):
    return index_folder(folder, path, make_extractor("pixels"), SMALL, 0, **options)


def test_a_folder_is_described_fitted_and_kept(folder, tmp_path):
    (folder / "notes.txt").write_text("hello")
    (folder / "broken.jpg").write_text("hello")
    outcome = index(folder, tmp_path / "c")
    collection = manifind.load(tmp_path / "c", verify=True)
    assert outcome.counts == {**NOTHING, "added": 20}
    assert outcome.problems == [("broken.jpg", "is no picture of a known kind")]
    assert outcome.n_others == 1
    assert len(collection) == 20
    assert "north/01.png" in collection
    (metadata_of,) = collection.metadata(["north/01.png"])
    assert metadata_of["path"] == "north/01.png"
    assert (metadata_of["width"], metadata_of["height"], metadata_of["format"]) == (64, 48, "PNG")
    assert collection.search_ids(["north/01.png"], 3, "path contains 'north'").ids.shape == (1, 3)
    assert not work_folder(tmp_path / "c").exists()


def test_run_again_nothing_is_touched(folder, tmp_path):
    index(folder, tmp_path / "c")
    before = manifind.load(tmp_path / "c").version.manifest.commit
    assert index(folder, tmp_path / "c").counts["unchanged"] == 20
    assert manifind.load(tmp_path / "c").version.manifest.commit == before


def test_a_file_that_was_only_touched_is_left_alone(folder, tmp_path):
    index(folder, tmp_path / "c")
    before = manifind.load(tmp_path / "c").version.manifest.commit
    os.utime(folder / "north" / "01.png", (1, 1))
    assert index(folder, tmp_path / "c").counts["unchanged"] == 20
    assert manifind.load(tmp_path / "c").version.manifest.commit == before


def test_new_gone_changed_and_moved_files_are_told_apart_and_ids_stay(folder, tmp_path):
    index(folder, tmp_path / "c")
    for number in range(3):
        paint(folder / f"new {number}.png", 100 + number)
    (folder / "south" / "00.png").unlink()
    (folder / "west").mkdir()
    os.rename(folder / "north" / "01.png", folder / "west" / "renamed.png")
    shutil.move(folder / "north" / "03.png", folder / "03.png")
    paint(folder / "north" / "05.png", 200)
    paint(folder / "north" / "01.png", 300)  # another picture where one was moved away
    would = index(folder, tmp_path / "c", dry_run=True)
    expected = {**NOTHING, "added": 4, "removed": 1, "changed": 1, "moved": 2, "unchanged": 16}
    assert would.counts == expected
    assert len(manifind.load(tmp_path / "c")) == 20
    assert index(folder, tmp_path / "c").counts == expected
    collection = manifind.load(tmp_path / "c", verify=True)
    assert len(collection) == 23
    assert collection.metadata(["north/01.png"])[0]["path"] == "west/renamed.png"
    assert collection.metadata(["north/01.png (2)"])[0]["path"] == "north/01.png"
    assert collection.metadata(["north/03.png"])[0]["path"] == "03.png"
    assert index(folder, tmp_path / "c").counts["unchanged"] == 23


def test_an_item_whose_file_breaks_stays_as_it_was_and_follows_when_it_is_mended(folder, tmp_path):
    index(folder, tmp_path / "c")
    before = manifind.load(tmp_path / "c").metadata(["north/05.png"])
    good = (folder / "north" / "05.png").read_bytes()
    (folder / "north" / "05.png").write_bytes(good[:50])
    would = index(folder, tmp_path / "c", dry_run=True)
    outcome = index(folder, tmp_path / "c")
    assert would.counts == outcome.counts == {**NOTHING, "kept": 1, "unchanged": 19}
    assert would.problems == outcome.problems
    assert outcome.problems[0][0] == "north/05.png"
    assert manifind.load(tmp_path / "c").metadata(["north/05.png"]) == before
    paint(folder / "north" / "05.png", 500)
    assert index(folder, tmp_path / "c").counts["changed"] == 1


def test_equal_files_are_items_of_their_own_and_described_once(folder, tmp_path):
    shutil.copy(folder / "north" / "01.png", folder / "copy.png")
    index(folder, tmp_path / "c")
    collection = manifind.load(tmp_path / "c")
    assert len(collection) == 21
    assert set(collection.search_ids(["copy.png"], 2).ids[0]) == {"copy.png", "north/01.png"}


def test_another_extractor_and_a_file_of_vectors_are_not_mixed(folder, tmp_path):
    index(folder, tmp_path / "c")
    own = make_extractor(lambda images: [[image.width, image.height, 1.0] for image in images])
    with pytest.raises(CollectionError, match="was made from 'pixels'"):
        index_folder(folder, tmp_path / "c", own, SMALL, 0)


def test_any_function_describes(folder, tmp_path):
    def colours(images):
        return [np.asarray(image.resize((2, 2)), dtype=np.float32).ravel() for image in images]

    index_folder(folder, tmp_path / "c", make_extractor(colours), SMALL, 0)
    collection = manifind.load(tmp_path / "c")
    assert collection.manifest["shape"]["dimension"] == 12
    assert "colours" in collection.manifest["source"]["describer"]["name"]


@pytest.mark.parametrize("answer", [[1.0], [[1.0, np.nan]], "rows"])
def test_a_function_that_describes_nothing_is_refused(folder, tmp_path, answer):
    with pytest.raises((InputError, ValueError)):
        index_folder(folder, tmp_path / "c", make_extractor(lambda images: answer), SMALL, 0)
    assert not (tmp_path / "c").exists()


def test_too_few_pictures_are_refused(tmp_path):
    paint(tmp_path / "photos" / "a.png", 0)
    with pytest.raises(InputError, match="has 1 picture that could be described; expected at least 3"):
        index(tmp_path / "photos", tmp_path / "c")


def test_an_interrupted_run_describes_nothing_twice(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("manifind.checkpoint.EVERY", 0.0)
    monkeypatch.setattr("manifind.images.describe._BATCH", 4)
    seen = []

    def extractor(stop_after):
        def describe(pictures):
            if len(seen) >= stop_after:
                raise KeyboardInterrupt
            seen.extend(pictures)
            return [np.asarray(Image.fromarray(p).resize((2, 2)), dtype=np.float32).ravel() for p in pictures]

        made = make_extractor("pixels")
        return type(made)(made.identity, made.longest, describe)

    with pytest.raises(KeyboardInterrupt):
        index_folder(folder, tmp_path / "c", extractor(8), SMALL, 0)
    index_folder(folder, tmp_path / "c", extractor(100), SMALL, 0)
    assert len(seen) == 20
    assert not work_folder(tmp_path / "c").exists()
