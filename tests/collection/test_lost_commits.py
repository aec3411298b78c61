"""A commit that was reported as done is there when the collection is opened, or its loss is an error."""

import shutil
import sqlite3
from contextlib import closing, contextmanager

import pytest

import manifind
from collection.crafting import manifest_of
from collection.small_collection import NAMES, random_rows
from manifind.collection.format import DATABASE, LAST_COMMIT, LastCommit, record_last_commit, usable_last_commit
from manifind.errors import CollectionError


@contextmanager
def somebody_reading(path):
    """A reader that stays in its transaction, so that the log cannot be merged."""
    with closing(sqlite3.connect(path / DATABASE, isolation_level=None)) as database:
        database.execute("BEGIN")
        database.execute("SELECT count(*) FROM items").fetchone()
        yield


def log_of(path):
    return path / f"{DATABASE}-wal"


@pytest.fixture
def unmerged(saved, tmp_path):
    """A copy of a collection whose last commit stands in the log alone."""
    with somebody_reading(saved):
        manifind.load(saved).add(random_rows(1, 5), ["the last one"])
        return shutil.copytree(saved, tmp_path / "copy")


def test_a_commit_is_merged_into_the_database_at_its_end(saved):
    manifind.load(saved).add(random_rows(1, 5), ["new"])
    assert not log_of(saved).exists() or log_of(saved).stat().st_size == 0
    assert not (saved / LAST_COMMIT).exists()


def test_a_commit_that_cannot_be_merged_is_recorded(unmerged):
    assert log_of(unmerged).stat().st_size > 0
    recorded = usable_last_commit(unmerged)
    assert recorded == LastCommit(manifest_of(unmerged, "sequence"), manifest_of(unmerged, "digest"))
    assert "the last one" in manifind.load(unmerged, verify=True)


def flips(size):
    """Bytes all over the log: its header, a frame's header, pages, the end."""
    return sorted({0, 9, 18, 33, 40, 57, 100, size // 2, size - 5000, size - 4096 - 20, size - 1})


def test_a_flipped_byte_in_the_log_never_gives_an_older_version_without_an_error(unmerged, tmp_path):
    size = log_of(unmerged).stat().st_size
    refused = []
    for number, place in enumerate(flips(size)):
        copy = shutil.copytree(unmerged, tmp_path / f"flipped-{number}")
        (copy / f"{DATABASE}-shm").unlink(missing_ok=True)  # SQLite's index of the log would hide the flip
        data = bytearray(log_of(copy).read_bytes())
        data[place] ^= 0x10
        log_of(copy).write_bytes(data)
        try:
            assert "the last one" in manifind.load(copy)
        except CollectionError as error:
            refused.append(error)
    assert len(refused) >= 5
    assert all("lost commits" in error.problem or "damaged" in error.problem for error in refused)
    assert all(error.hint for error in refused)


def test_without_its_log_a_collection_says_that_it_lost_a_commit(unmerged, refusal, model):
    opened = manifind.load(unmerged)
    log_of(unmerged).unlink()
    (unmerged / f"{DATABASE}-shm").unlink(missing_ok=True)
    assert "has lost commits" in refusal(unmerged)
    with pytest.raises(CollectionError, match="lost commits"):
        opened.add(random_rows(1, 6), ["further"])
    with pytest.raises(CollectionError, match="lost commits"):
        manifind.refit(opened)
    model.save(unmerged, NAMES, overwrite=True)  # whoever replaces all of it loses nothing
    assert manifind.load(unmerged, verify=True).ids.tolist() == NAMES


def test_who_deletes_the_record_goes_on_with_the_older_version(unmerged, refusal):
    log_of(unmerged).unlink()
    (unmerged / f"{DATABASE}-shm").unlink(missing_ok=True)
    assert "has lost commits" in refusal(unmerged)
    (unmerged / LAST_COMMIT).unlink()
    collection = manifind.load(unmerged, verify=True)
    assert collection.ids.tolist() == NAMES
    collection.add(random_rows(1, 6), ["further"])
    assert "further" in manifind.load(unmerged, verify=True)


@pytest.mark.parametrize("content", [b"", b"5", b"9" * 300, b"3 " + b"a" * 64 + b" " + b"b" * 64 + b"\n"])
def test_a_damaged_record_hinders_nobody_and_is_named_by_verify(saved, refusal, content):
    (saved / LAST_COMMIT).write_bytes(content)
    assert manifind.load(saved).ids.tolist() == NAMES
    assert f"{saved / LAST_COMMIT} is damaged" in refusal(saved, verify=True)
    with somebody_reading(saved):
        manifind.load(saved).add(random_rows(1, 5), ["new"])
    assert "new" in manifind.load(saved, verify=True)


def test_a_record_that_is_a_link_is_neither_followed_nor_written_through(saved, tmp_path, refusal):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    (saved / LAST_COMMIT).symlink_to(elsewhere)
    with somebody_reading(saved):
        manifind.load(saved).add(random_rows(1, 5), ["new"])
    assert elsewhere.read_text() == "mine"
    assert not (saved / LAST_COMMIT).is_symlink()


def test_an_older_commit_does_not_replace_the_record_of_a_newer_one(saved):
    record_last_commit(saved, LastCommit(7, "a" * 64))
    record_last_commit(saved, LastCommit(6, "b" * 64))
    assert usable_last_commit(saved) == LastCommit(7, "a" * 64)


def test_every_commit_has_the_next_number_and_the_collection_keeps_its_name(saved, model):
    name, first = manifest_of(saved, "collection"), manifest_of(saved, "sequence")
    collection = manifind.load(saved)
    collection.add(random_rows(1, 5), ["new"])
    manifind.refit(collection)
    assert (manifest_of(saved, "collection"), manifest_of(saved, "sequence")) == (name, first + 2)
    model.save(saved, NAMES, overwrite=True)
    assert manifest_of(saved, "collection") != name
    assert manifest_of(saved, "sequence") == first + 3
