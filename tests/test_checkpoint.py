"""The checkpoint as a cache: what was saved comes back, and nothing that is in the folder can do harm."""

import json
import os
import shutil

import numpy as np
import pytest

from manifind import checkpoint
from manifind.checkpoint import NO_CHECKPOINT, Checkpoint

JOB = {"X": "abc", "settings": {"layers": (8, 4), "l2": 1e-5}, "seed": 3}


def arrays():
    return {"ids": np.arange(6).reshape(2, 3), "layers.0.W1": np.float32([[0.1, -0.0]]), "step": np.array(4.0)}


def assert_kept(found, expected=None):
    expected = arrays() if expected is None else expected
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes()
        assert found[name].shape == array.shape


@pytest.fixture
def folder(tmp_path):
    """One in which the stage "graph" of the job has saved something."""
    Checkpoint(tmp_path / "kept", JOB).save("graph", arrays())
    return tmp_path / "kept"


def stage_file(folder, stage="graph"):
    (path,) = folder.glob(f"{stage}-*.npz")
    return path


# ---- what was saved


def test_what_a_stage_saved_comes_back_when_the_job_is_run_again(folder):
    assert_kept(Checkpoint(folder, JOB).load("graph"))


def test_a_stage_that_saved_nothing_has_nothing(folder):
    assert Checkpoint(folder, JOB).load("walks") is None


def test_only_the_last_save_of_a_stage_is_kept(folder):
    kept = Checkpoint(folder, JOB)
    kept.save("walks", arrays())
    kept.save("graph", {"ids": np.arange(3)})
    assert_kept(kept.load("graph"), {"ids": np.arange(3)})
    assert_kept(kept.load("walks"))
    assert len(list(folder.glob("graph-*"))) == 1


def test_of_two_saves_that_a_crash_left_the_newer_counts(folder):
    old = stage_file(folder)
    shutil.copy(old, folder.parent / "old.npz")
    Checkpoint(folder, JOB).save("graph", {"ids": np.arange(3)})
    shutil.move(folder.parent / "old.npz", old)
    os.utime(old, (1, 1))
    assert_kept(Checkpoint(folder, JOB).load("graph"), {"ids": np.arange(3)})


def test_numbers_of_any_make_and_sequences_of_any_kind_are_the_same_job(folder):
    same = {"seed": 3, "settings": {"l2": 1e-5, "layers": [8, 4]}, "X": "abc"}
    assert_kept(Checkpoint(folder, same).load("graph"))
    assert Checkpoint(folder, {"n": np.int64(3)}).load("graph") is None


# ---- another job


@pytest.mark.parametrize("change", [{"X": "abd"}, {"seed": 4}, {"settings": {}}])
def test_another_job_finds_nothing_and_discards_what_is_there(folder, change):
    other = Checkpoint(folder, {**JOB, **change})
    assert other.load("graph") is None
    assert [path.name for path in folder.iterdir()] == ["manifind-job.json"]
    assert Checkpoint(folder, JOB).load("graph") is None


def test_another_format_of_what_stages_save_is_another_job(folder, monkeypatch):
    monkeypatch.setattr(checkpoint, "_FORMAT", checkpoint._FORMAT + 1)
    assert Checkpoint(folder, JOB).load("graph") is None


def test_a_file_of_another_job_or_stage_is_not_taken_for_ones_own(folder, tmp_path):
    other = Checkpoint(tmp_path / "other", {"X": "other"})
    name = stage_file(folder).name
    shutil.copy(folder / name, tmp_path / "other" / name)
    assert other.load("graph") is None
    shutil.copy(folder / name, folder / name.replace("graph", "walks"))
    assert Checkpoint(folder, JOB).load("walks") is None


def test_the_seed_is_that_of_the_first_run_of_the_job(tmp_path):
    assert Checkpoint(tmp_path, JOB, 11).seed == 11
    assert Checkpoint(tmp_path, JOB, 12).seed == 11
    assert Checkpoint(tmp_path, {**JOB, "X": "abd"}, 13).seed == 13
    assert Checkpoint(None, JOB, 14).seed == 14


# ---- damage


def flip(content):
    return content[:80] + bytes([content[80] ^ 1]) + content[81:]


@pytest.mark.parametrize(
    "damage",
    [flip, lambda content: content[:-7], lambda content: b"", lambda content: content + b"\0"],
    ids=["a bit", "the end", "everything", "more"],
)
def test_a_damaged_file_counts_as_absent(folder, damage):
    path = stage_file(folder)
    path.write_bytes(damage(path.read_bytes()))
    kept = Checkpoint(folder, JOB)
    assert kept.load("graph") is None
    kept.save("graph", arrays())
    assert_kept(Checkpoint(folder, JOB).load("graph"))


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "{}", '{"seed": 1}', '{"sha256": 1, "seed": {}}', "[" * 100_000, b"\xff\xfe\0".hex()],
)
def test_a_job_that_cannot_be_read_is_another_job(folder, text):
    (folder / "manifind-job.json").write_text(text)
    assert Checkpoint(folder, JOB).load("graph") is None
    Checkpoint(folder, JOB).save("graph", arrays())
    assert_kept(Checkpoint(folder, JOB).load("graph"))


def test_a_seed_that_was_changed_is_not_believed(tmp_path):
    Checkpoint(tmp_path, JOB, 11)
    path = tmp_path / "manifind-job.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "seed": 10**40}))
    assert Checkpoint(tmp_path, JOB, 12).seed == 12


def test_pickles_are_not_opened_even_under_the_right_name(folder):
    kept = Checkpoint(folder, JOB)
    kept.save("graph", {"ids": np.array([{"an": "object"}], dtype=object)})
    assert len(list(folder.glob("graph-*"))) == 1
    assert kept.load("graph") is None


def test_things_that_are_no_files_are_left_alone(folder):
    os.mkfifo(folder / f"walks-{'0' * 64}.npz")  # opening it would wait for ever
    (folder / f"training-{'1' * 64}.npz").mkdir()
    kept = Checkpoint(folder, JOB)
    assert kept.load("walks") is None
    assert kept.load("training") is None
    kept.clear()
    assert len(list(folder.iterdir())) == 2


def test_what_a_killed_process_left_half_written_goes_with_the_next_run(folder):
    (folder / f".manifind-{'a' * 16}").write_bytes(b"half")
    assert_kept(Checkpoint(folder, JOB).load("graph"))
    assert not list(folder.glob(".*"))


# ---- places where nothing can be written


def test_a_folder_that_cannot_be_made_keeps_nothing_and_says_nothing(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for place in (tmp_path / "file", tmp_path / "file" / "below", "zero\0byte"):
        kept = Checkpoint(place, JOB, 5)
        kept.save("graph", arrays())
        assert kept.load("graph") is None
        assert not kept.due()
        assert kept.seed == 5
        kept.clear()
    assert (tmp_path / "file").read_text() == "in the way"


def full_disk(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_after_a_save_that_failed_no_other_is_tried_and_the_earlier_one_stays(folder, function, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 0)
    kept = Checkpoint(folder, JOB)
    assert kept.due()
    with monkeypatch.context() as broken:
        broken.setattr(checkpoint.os, function, full_disk)
        kept.save("graph", {"ids": np.arange(3)})
    assert not kept.due()
    kept.save("graph", {"ids": np.arange(3)})
    assert_kept(kept.load("graph"))
    assert not list(folder.glob(".*"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_what_cannot_be_written_can_still_be_read(folder):
    folder.chmod(0o500)
    kept = Checkpoint(folder, JOB)
    kept.save("graph", {"ids": np.arange(3)})
    assert_kept(kept.load("graph"))
    kept.clear()
    folder.chmod(0o700)


# ---- when, and until when


def test_a_save_is_due_only_some_time_after_the_last(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    kept = Checkpoint(tmp_path, JOB)
    seen = []
    for seconds in (0, 19, 1):
        now[0] += seconds
        seen.append(kept.due())
    kept.save("graph", arrays())
    for seconds in (0, 19, 1):
        now[0] += seconds
        seen.append(kept.due())
    assert seen == [False, False, True] * 2


def test_a_save_that_took_long_is_followed_by_a_longer_pause(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    kept = Checkpoint(tmp_path, JOB)
    monkeypatch.setattr(np, "savez", lambda *_, **__: now.__setitem__(0, now[0] + 3))
    kept.save("graph", arrays())
    now[0] += 59
    assert not kept.due()
    now[0] += 1
    assert kept.due()


def test_clearing_removes_the_folder_but_nothing_of_others(folder):
    again = folder.parent / "again"
    shutil.copytree(folder, again)
    (again / "graph-mine.npz").write_text("mine")
    (again / "job.json").write_text("mine")
    Checkpoint(folder, JOB).clear()
    assert not folder.exists()
    Checkpoint(again, JOB).clear()
    assert sorted(path.name for path in again.iterdir()) == ["graph-mine.npz", "job.json"]


def test_no_checkpoint_keeps_nothing_and_is_never_due(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    NO_CHECKPOINT.save("graph", arrays())
    assert NO_CHECKPOINT.load("graph") is None
    assert not NO_CHECKPOINT.due()
    NO_CHECKPOINT.clear()
    assert not list(tmp_path.iterdir())
