"""Writing is one step: the old collection or the new one, whatever fails in between, and no traces."""

import errno
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

import manifind
from collection.small_collection import NAMES, files_of, segment
from manifind.collection import format, opened, version, writer
from manifind.collection.format import DATABASE, SEGMENTS
from manifind.errors import CollectionError

N_SEGMENTS = 5


@pytest.fixture(scope="session")
def old(pristine, answers):
    """What the old collection answers."""
    return answers(manifind.load(pristine))


@pytest.fixture(scope="session")
def new(other_model, answers, tmp_path_factory):
    """What the new one answers."""
    return answers(other_model.save(tmp_path_factory.mktemp("new") / "c", NAMES))


def fail_at(monkeypatch, name, call, error, home=writer):
    """Let the function `name` raise at its `call`-th call, counted from 1; None counts only."""
    original, calls = getattr(home, name), []

    def failing(*arguments, **options):
        calls.append(arguments)
        if len(calls) == call:
            raise error
        return original(*arguments, **options)

    monkeypatch.setattr(home, name, failing)
    return calls


def full_disk():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_second_save_switches_and_takes_the_old_segments_away(saved, other_model, answers, old, new):
    before = set((saved / SEGMENTS).iterdir())
    other_model.save(saved, NAMES, overwrite=True)
    assert answers(manifind.load(saved, verify=True)) == new != old
    after = set((saved / SEGMENTS).iterdir())
    assert len(after) == N_SEGMENTS
    assert not before & after
    assert [file.name for file in saved.parent.iterdir()] == [saved.name]


def test_a_second_save_may_bring_other_items_and_other_ids(saved, tmp_path):
    model = manifind.GradNet(n_neighbors=3, layers=(8, 4), n_anchors=4, max_steps=1, random_state=0)
    X = [[float(i), float(i * i % 7), 1.0] for i in range(20)]
    model.fit(X).save(saved, overwrite=True)
    collection = manifind.load(saved, verify=True)
    assert collection.ids.tolist() == list(range(20))
    assert collection.search([[2.5, 1.0, 1.0]], 20).ids.shape == (1, 20)


def test_a_collection_opened_before_answers_as_before(saved, other_model, answers, old):
    opened = manifind.load(saved)  # nothing has been asked yet
    other_model.save(saved, NAMES, overwrite=True)
    assert answers(opened) == old


def test_the_same_model_saved_again_answers_the_same(saved, model, answers, old):
    for _ in range(3):
        model.save(saved, NAMES, overwrite=True)
    assert answers(manifind.load(saved)) == old


def test_an_empty_directory_gives_way(model, tmp_path, answers, old):
    (tmp_path / "c").mkdir()
    assert answers(model.save(tmp_path / "c", NAMES)) == old


def test_a_plain_file_in_the_way_is_refused_and_left_alone(model, tmp_path):
    (tmp_path / "c").write_text("mine")
    with pytest.raises(CollectionError, match="exists and is no collection") as refusal:
        model.save(tmp_path / "c")
    assert str(tmp_path / "c") in refusal.value.problem
    assert (tmp_path / "c").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\0" + bytes(84)])
@pytest.mark.parametrize("name", ["notes.txt", DATABASE])
def test_a_directory_of_somebody_else_is_refused_and_left_alone(model, tmp_path, name, content):
    target = tmp_path / "c"
    (target / SEGMENTS).mkdir(parents=True)
    (target / name).write_bytes(content)
    (target / SEGMENTS / "thesis.npy").write_text("mine")
    before = files_of(tmp_path)
    with pytest.raises(CollectionError, match="exists and is no collection") as refusal:
        model.save(target)
    assert str(target) in refusal.value.problem
    assert files_of(tmp_path) == before
    assert sorted(file.name for file in target.iterdir()) == sorted([name, SEGMENTS])


def test_a_database_of_another_program_is_refused_and_left_alone(model, tmp_path):
    (tmp_path / "c").mkdir()
    with closing(sqlite3.connect(tmp_path / "c" / DATABASE)) as database:
        database.execute("CREATE TABLE items (price)")
        database.execute("PRAGMA user_version = 7")
    before = files_of(tmp_path)
    with pytest.raises(CollectionError, match="exists and is no collection"):
        model.save(tmp_path / "c")
    assert files_of(tmp_path) == before
    assert [file.name for file in (tmp_path / "c").iterdir()] == [DATABASE]


@pytest.mark.parametrize("path", ["", ".", "/", "..", "a\0b"])
def test_a_path_that_names_no_directory_of_its_own_is_refused(model, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CollectionError):
        model.save(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 300, "file/c", "link"])
def test_a_path_that_cannot_be_made_is_refused(model, name, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CollectionError) as refusal:
        model.save(tmp_path / name)
    assert str(tmp_path / name) in refusal.value.problem
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "link"]


def test_files_of_others_among_the_segments_stay(saved, other_model, answers, new):
    (saved / SEGMENTS / "notes.txt").write_text("mine")
    (saved / SEGMENTS / "features-0123456789abcdef.npy.bak").write_text("mine")
    (saved / SEGMENTS / "folder").mkdir()
    orphan = saved / SEGMENTS / "features-0123456789abcdef.npy"
    orphan.write_text("left by a crash")
    other_model.save(saved, NAMES, overwrite=True)
    assert answers(manifind.load(saved, verify=True)) == new
    assert not orphan.exists()
    assert len(list((saved / SEGMENTS).iterdir())) == N_SEGMENTS + 3


def test_what_cannot_be_taken_away_does_not_undo_a_commit(saved, other_model, answers, new):
    in_the_way = saved / SEGMENTS / "features-0123456789abcdef.npy"
    in_the_way.mkdir()  # cannot be unlinked
    assert answers(other_model.save(saved, NAMES, overwrite=True)) == new


@pytest.mark.parametrize("what", ["segment", "segments", "size"])
def test_a_damaged_collection_can_be_replaced(saved, other_model, answers, new, what):
    if what == "segments":
        shutil.rmtree(saved / SEGMENTS)
    elif what == "segment":
        segment(saved, "graph").unlink()
    else:
        segment(saved, "features").write_bytes(b"short")
    with pytest.raises(CollectionError):
        manifind.load(saved)
    assert answers(other_model.save(saved, NAMES, overwrite=True)) == new


@pytest.mark.parametrize("error", [full_disk(), RuntimeError("anything"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("call", range(1, N_SEGMENTS + 1))
def test_a_failure_at_any_segment_leaves_the_old_collection(saved, other_model, answers, old, monkeypatch, call, error):
    before = files_of(saved)
    fail_at(monkeypatch, "_write_segment", call, error)
    expected = CollectionError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as failure:
        other_model.save(saved, NAMES, overwrite=True)
    monkeypatch.undo()
    assert files_of(saved) == before
    assert answers(manifind.load(saved, verify=True)) == old
    if expected is CollectionError:
        assert f"{saved} cannot be written: No space left on device" in failure.value.problem
        assert "nothing that was there before has changed" in failure.value.hint


@pytest.mark.parametrize("call", range(1, N_SEGMENTS + 1))
def test_a_failure_at_any_segment_leaves_nothing_where_nothing_was(tmp_path, model, monkeypatch, call):
    fail_at(monkeypatch, "_write_segment", call, full_disk())
    with pytest.raises(CollectionError, match="No space left"):
        model.save(tmp_path / "c", NAMES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", range(1, N_SEGMENTS + 2))
def test_a_disk_that_is_full_when_a_file_is_synced_leaves_the_old_collection(
    saved, other_model, answers, old, monkeypatch, call
):
    before = files_of(saved)
    fail_at(monkeypatch, "fsync", call, full_disk(), home=writer.os)
    with pytest.raises(CollectionError, match="No space left"):
        other_model.save(saved, NAMES, overwrite=True)
    monkeypatch.undo()
    assert files_of(saved) == before
    assert answers(manifind.load(saved, verify=True)) == old


def test_every_file_and_folder_is_synced(saved, model, monkeypatch, tmp_path):
    calls = fail_at(monkeypatch, "fsync", None, None, home=writer.os)
    model.save(saved, NAMES, overwrite=True)
    assert len(calls) == N_SEGMENTS + 1  # the segments and their folder; SQLite syncs its own
    model.save(tmp_path / "new", NAMES)
    assert len(calls) == 2 * (N_SEGMENTS + 1) + 2  # and the new directory and its parent


@pytest.mark.parametrize("call", range(1, N_SEGMENTS + 3))
def test_a_new_collection_appears_whole_or_not_at_all(tmp_path, model, monkeypatch, call):
    fail_at(monkeypatch, "fsync", call, full_disk(), home=writer.os)
    with pytest.raises(CollectionError, match="No space left"):
        model.save(tmp_path / "c", NAMES)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_after_the_move_leaves_a_whole_collection(tmp_path, model, monkeypatch, answers, old):
    fail_at(monkeypatch, "fsync", N_SEGMENTS + 3, full_disk(), home=writer.os)
    with pytest.raises(CollectionError, match="No space left"):
        model.save(tmp_path / "c", NAMES)
    assert answers(manifind.load(tmp_path / "c", verify=True)) == old
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_a_move_that_fails_leaves_nothing(tmp_path, model, monkeypatch):
    fail_at(monkeypatch, "replace", 1, full_disk(), home=writer.os)
    with pytest.raises(CollectionError, match="No space left"):
        model.save(tmp_path / "c", NAMES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("home", "where"), [(writer, "_replace_tables"), (format, "make_tables"), (format, "write_checksum")]
)
def test_a_failure_inside_the_transaction_leaves_the_old_collection(
    saved, other_model, answers, old, monkeypatch, home, where
):
    fail_at(monkeypatch, where, 1, sqlite3.OperationalError("database or disk is full"), home)
    with pytest.raises(CollectionError, match="disk is full") as failure:
        other_model.save(saved, NAMES, overwrite=True)
    monkeypatch.undo()
    assert str(saved) in failure.value.problem
    assert answers(manifind.load(saved, verify=True)) == old


SAVE_AND_DIE = """
import os, pickle, sys
from importlib import import_module
from manifind.collection import writer
contents = pickle.load(open(sys.argv[2], "rb"))
home, call, calls = sys.argv[3], int(sys.argv[4]), []
home, name = import_module("manifind.collection." + home.split(".")[0]), home.split(".")[1]
original = getattr(home, name)
def dying(*arguments):
    calls.append(arguments)
    if len(calls) == call:
        os._exit(9)
    return original(*arguments)
setattr(home, name, dying)
writer.write_collection(sys.argv[1], *contents, overwrite=True)
"""


@pytest.mark.parametrize(
    ("name", "call", "survivor"),
    [("writer._write_segment", 4, "old"), ("format.write_checksum", 1, "old"), ("writer.remove_unused", 1, "new")],
)
def test_a_process_that_dies_leaves_the_old_collection_or_the_new_one(
    saved, other_model, model, answers, old, new, name, call, survivor, tmp_path, monkeypatch
):
    contents = []
    module = sys.modules[type(other_model).__module__]
    monkeypatch.setattr(module, "write_collection", lambda _, *rest, overwrite: contents.append(rest))
    other_model.save(saved, NAMES, overwrite=True)
    monkeypatch.undo()
    (tmp_path / "contents").write_bytes(pickle.dumps(contents[0]))
    arguments = [str(saved), str(tmp_path / "contents"), name, str(call)]
    assert subprocess.run([sys.executable, "-c", SAVE_AND_DIE, *arguments], check=False).returncode == 9
    assert answers(manifind.load(saved, verify=True)) == (old if survivor == "old" else new)
    assert answers(model.save(saved, NAMES, overwrite=True)) == old
    assert len(list((saved / SEGMENTS).iterdir())) == N_SEGMENTS


def test_a_second_writer_hears_of_the_first_at_once(saved, other_model, answers, old):
    before = files_of(saved)
    with closing(sqlite3.connect(saved / DATABASE, isolation_level=None)) as first:
        first.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        with pytest.raises(CollectionError, match="is being written by another process") as refusal:
            other_model.save(saved, NAMES, overwrite=True)
        assert time.monotonic() - started < 3
        assert str(saved) in refusal.value.problem
        assert "try again" in refusal.value.hint
        assert answers(manifind.load(saved)) == old  # readers do not wait
    assert files_of(saved) == before


def test_of_two_who_make_the_same_collection_one_is_refused(model, other_model, tmp_path, monkeypatch, answers, old):
    original = writer.write_segments

    def overtaken(*arguments):
        monkeypatch.undo()
        model.save(tmp_path / "c", NAMES)
        return original(*arguments)

    monkeypatch.setattr(writer, "write_segments", overtaken)
    with pytest.raises(CollectionError, match="cannot be written"):
        other_model.save(tmp_path / "c", NAMES)
    assert answers(manifind.load(tmp_path / "c", verify=True)) == old
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("moment", ["read_snapshot", "read_arrays", "read_array"])
def test_a_collection_that_is_replaced_while_it_is_opened_is_opened_anew(
    saved, other_model, answers, new, monkeypatch, moment, verify
):
    home = opened if moment == "read_snapshot" else version
    original = getattr(home, moment)

    def overtaken(*arguments):
        if moment == "read_snapshot":
            found = original(*arguments)
            monkeypatch.undo()
            other_model.save(saved, NAMES, overwrite=True)
            return found
        monkeypatch.undo()
        other_model.save(saved, NAMES, overwrite=True)
        return original(*arguments)

    monkeypatch.setattr(home, moment, overtaken)
    assert answers(manifind.load(saved, verify=verify)) == new


def test_readers_and_a_writer_do_not_disturb_each_other(saved, model, other_model, queries):
    expected = [fitted.search(queries, 3).scores.tobytes() for fitted in (model, other_model)]
    finished, failures = threading.Event(), []

    def write():
        try:
            for turn in range(15):
                (other_model, model)[turn % 2].save(saved, NAMES, overwrite=True)
        except BaseException as error:
            failures.append(error)
        finally:
            finished.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = []
    try:
        while not finished.is_set():
            seen.append(manifind.load(saved, verify=len(seen) % 2 == 0).search(queries, 3).scores.tobytes())
    finally:
        thread.join()
    assert not failures
    assert set(seen) <= set(expected)


def test_a_save_refuses_to_replace_a_collection_unless_told_to(saved, other_model, answers, old, new):
    before = files_of(saved)
    with pytest.raises(CollectionError, match="there is a collection at") as caught:
        other_model.save(saved, NAMES)
    assert "overwrite=True" in caught.value.hint
    assert files_of(saved) == before
    assert answers(other_model.save(saved, NAMES, overwrite=True)) == new


def test_an_export_refuses_to_replace_a_collection_unless_told_to(saved, model, tmp_path, answers, old):
    collection = model.save(tmp_path / "c", NAMES)
    with pytest.raises(CollectionError, match="there is a collection at"):
        collection.export(saved, "compressed")
    assert answers(manifind.load(saved, verify=True)) == old
    collection.export(saved, "compressed", overwrite=True)
    assert manifind.load(saved).manifest["kind"] == "compressed"
