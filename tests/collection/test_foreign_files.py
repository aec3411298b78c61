"""Files beside the database that somebody else made: nothing outside of the collection is touched because of them."""

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

import manifind
from collection.small_collection import NAMES, random_rows
from manifind.collection.format import DATABASE
from manifind.errors import CollectionError

MAGIC = bytes.fromhex("d9d505f920a163d7")


def hot_journal(victim, file, page_size=4096):
    """A rollback journal of no pages that names a further file, which SQLite deletes when it is done with it."""
    header = MAGIC + struct.pack(">IIIII", 0, 0, file.stat().st_size // page_size, 512, page_size)
    name = os.fsencode(victim)
    checksum = sum(byte if byte < 128 else byte - 256 for byte in name) & 0xFFFFFFFF
    tail = struct.pack(">I", 1 + (1 << 30) // page_size) + name + struct.pack(">II", len(name), checksum) + MAGIC
    return header.ljust(512, b"\0") + tail


@pytest.fixture
def victim(tmp_path):
    file = tmp_path / "letter.txt"
    file.write_text("dear diary")
    return file


def write(path):
    manifind.load(path).add(random_rows(1, 5), ["new"])


def test_sqlite_itself_deletes_what_such_a_journal_names(tmp_path, victim):
    """If this fails, SQLite has changed, and the tests below say nothing any more."""
    file = tmp_path / "plain.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE t (x)")
        database.commit()
    file.with_name("plain.sqlite-journal").write_bytes(hot_journal(victim, file))
    with closing(sqlite3.connect(file)) as database:
        database.execute("INSERT INTO t VALUES (1)")
        database.commit()
    assert not victim.exists()


@pytest.mark.parametrize("mode", ["as it is", "rollback"])
def test_a_journal_that_names_a_file_is_refused_and_the_file_stays(saved, victim, refusal, model, mode):
    opened = manifind.load(saved)
    if mode == "rollback":
        with closing(sqlite3.connect(saved / DATABASE)) as database:
            assert database.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    (saved / f"{DATABASE}-journal").write_bytes(hot_journal(victim, saved / DATABASE))
    assert "rollback journal" in refusal(saved)
    for change in (
        lambda: opened.add(random_rows(1, 5), ["new"]),
        lambda: opened.remove(NAMES[:1]),
        lambda: model.save(saved, NAMES, overwrite=True),
        lambda: manifind.refit(opened),
    ):
        with pytest.raises(CollectionError, match="rollback journal"):
            change()
    assert victim.read_text() == "dear diary"


def test_every_verb_refuses_such_a_journal_and_the_file_that_it_names_survives(saved, victim, tmp_path):
    np.save(tmp_path / "more.npy", random_rows(3, 5))
    (saved / f"{DATABASE}-journal").write_bytes(hot_journal(victim, saved / DATABASE))
    before = {file.name: file.read_bytes() for file in saved.iterdir() if file.is_file()}
    for verb in (
        ["search", saved, NAMES[0]],
        ["info", saved],
        ["info", saved, "--verify"],
        ["remove", saved, NAMES[0]],
        ["index", tmp_path / "more.npy", saved],
        ["export", saved, tmp_path / "out.npy", "--to", "npy"],
        ["serve", saved, "--port", "0"],
    ):
        command = [sys.executable, "-m", "manifind", *map(str, verb)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 1, (verb, done.stdout, done.stderr)
        assert "rollback journal" in " ".join(done.stderr.split()), (verb, done.stderr)
        assert "Traceback" not in done.stderr
        assert victim.read_text() == "dear diary"
    assert {file.name: file.read_bytes() for file in saved.iterdir() if file.is_file()} == before
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.parametrize("make", ["folder", "full folder", "link"])
def test_whatever_has_the_name_of_an_unfinished_record_a_commit_stands(saved, victim, other_model, make):
    name = saved / ".collection.last.0123abcd.partial"
    if make == "link":
        name.symlink_to(victim)
    else:
        name.mkdir()
    if make == "full folder":
        (name / "file").write_text("mine")
    opened = manifind.load(saved)
    opened.add(random_rows(1, 5), ["new"])
    manifind.refit(opened)
    assert "new" in manifind.load(saved, verify=True)
    assert other_model.save(saved, NAMES, overwrite=True).ids.tolist() == NAMES
    assert victim.read_text() == "dear diary"


def test_a_database_in_another_mode_is_refused(saved, refusal):
    with closing(sqlite3.connect(saved / DATABASE)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    assert "not in write-ahead mode" in refusal(saved)


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_log_that_stands_elsewhere_is_refused_and_nothing_is_written_there(saved, victim, refusal, suffix, link):
    opened = manifind.load(saved)
    beside = saved / f"{DATABASE}{suffix}"
    beside.unlink(missing_ok=True)
    link(victim, beside)
    assert "link" in refusal(saved)
    with pytest.raises(CollectionError, match="link"):
        opened.add(random_rows(1, 5), ["new"])
    assert victim.read_text() == "dear diary"


def test_a_database_with_a_second_name_is_read_but_not_written(saved, tmp_path):
    os.link(saved / DATABASE, tmp_path / "backup.sqlite")
    backup = (tmp_path / "backup.sqlite").read_bytes()
    assert manifind.load(saved).ids.tolist() == NAMES
    with pytest.raises(CollectionError, match="hard link") as caught:
        write(saved)
    assert "cp -r" in caught.value.hint
    assert (tmp_path / "backup.sqlite").read_bytes() == backup
    copy = shutil.copytree(saved, tmp_path / "copy.manifind")
    write(copy)
    assert "new" in manifind.load(copy)
