"""A disk that is full, broken or not ours: an error that says so, the old collection, and the next write goes well."""

import errno
import os
import shutil
from collections import Counter

import pytest

import manifind
from collection.elsewhere import elsewhere
from collection.faults import available, sqlite_calls
from collection.operations import CHANGES, Place, contents
from collection.workers import suffer_full_disk, suffer_no_permission, suffer_nothing, suffer_small_files
from manifind.collection import writer as segments
from manifind.collection.format import SEGMENTS
from manifind.errors import CollectionError

UNCHANGED = "nothing that was there before has changed"
needs_sqlite = pytest.mark.skipif(not available(), reason="SQLite is built into Python's module for it")


def suffered(worker, *arguments):
    with elsewhere(worker, *arguments) as (_, pipe):
        return pipe.recv()


@pytest.fixture(scope="session")
def before(pristine):
    return contents(pristine)


@pytest.fixture(scope="session", params=CHANGES)
def change(request):
    return request.param


@pytest.fixture(scope="session")
def after(pristine, models, change, tmp_path_factory):
    """What is there when nothing goes wrong."""
    path = shutil.copytree(pristine, tmp_path_factory.mktemp("after") / "museum.manifind")
    return suffered(suffer_nothing, path, models, change)


@pytest.fixture(params=[pytest.param(5, id="some calls"), pytest.param(1, id="all calls", marks=pytest.mark.endurance)])
def step(request):
    return request.param


def assert_says(problem, hint, path):
    assert f"{path} cannot be written: " in problem
    assert hint == UNCHANGED


@needs_sqlite
@pytest.mark.parametrize("is_lasting", [False, True], ids=["once", "from then on"])
def test_a_call_of_sqlite_that_fails_leaves_the_old_collection_and_one_that_can_be_spared_the_new_one(
    pristine, models, change, before, is_lasting, step, tmp_path
):
    undisturbed = Place(shutil.copytree(pristine, tmp_path / "undisturbed"), models)
    with sqlite_calls(lambda *_: True) as calls:
        CHANGES[change](undisturbed, 3)
    n_calls, after = len(calls), contents(undisturbed.path)

    def is_done(decide, name):
        place = Place(shutil.copytree(pristine, tmp_path / name), models)
        with sqlite_calls(decide):
            try:
                CHANGES[change](place, 3)
            except CollectionError as error:
                assert_says(error.problem, error.hint, place.path)
                expected = before
            else:
                expected = after
            assert contents(place.path) == expected  # whoever cannot write can read
        assert contents(place.path) == expected
        if expected == before:
            CHANGES[change](place, 3)
            assert contents(place.path) == after
        return expected == after

    outcomes = Counter(
        is_done(lambda n, _, at=first: not (n == at or (is_lasting and n > at)), str(first))
        for first in range(1, n_calls + 1, step)
    )
    assert outcomes[False]
    assert outcomes[True]  # a checkpoint that fails is made up for by the next one


@needs_sqlite
def test_a_new_collection_that_sqlite_cannot_write_is_named_and_leaves_nothing(model, tmp_path):
    path = tmp_path / "museum.manifind"
    with sqlite_calls(lambda n, _: n < 5), pytest.raises(CollectionError) as failure:
        model.save(path)
    assert_says(failure.value.problem, failure.value.hint, path)
    assert list(tmp_path.iterdir()) == []
    model.save(path)


def fail_at(monkeypatch, home, name, call):
    """Let a function raise at its `call`-th call, counted from 1, that the disk is full."""
    original, calls = getattr(home, name), []

    def failing(*arguments):
        calls.append(name)
        if len(calls) == call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(*arguments)

    monkeypatch.setattr(home, name, failing)


@pytest.mark.parametrize(
    ("home", "name", "call"),
    [(segments, "_write_segment", call) for call in range(1, 6)] + [(os, "fsync", call) for call in range(1, 7)],
)
def test_a_segment_of_a_refit_that_cannot_be_written_or_synced_leaves_the_old_collection(
    saved, models, before, home, name, call, monkeypatch
):
    place, there = Place(saved, models), set((saved / SEGMENTS).iterdir())
    fail_at(monkeypatch, home, name, call)
    with pytest.raises(CollectionError) as failure:
        manifind.refit(place.collection)
    monkeypatch.undo()
    assert_says(failure.value.problem, failure.value.hint, saved)
    assert "No space left on device" in failure.value.problem
    assert contents(saved) == before
    assert set((saved / SEGMENTS).iterdir()) == there
    manifind.refit(place.collection)
    assert contents(saved) != before


@pytest.mark.parametrize("n_bytes", [0, 1 << 13], ids=["not a byte", "two pages"])
def test_files_that_cannot_grow_leave_the_old_collection(saved, models, change, before, after, n_bytes):
    failed, then, again, at_last, path = suffered(suffer_small_files, saved, models, change, n_bytes)
    assert_says(*failed, path)
    assert then == before
    assert again is None
    assert at_last == after


def test_a_directory_that_is_not_ours_to_write_stays_as_it_is_and_can_be_searched(
    pristine, models, change, before, after, everybodys
):
    path = shutil.copytree(pristine, everybodys / "museum.manifind")
    readable = everybodys / "models"
    shutil.copy(models, readable)
    failed, then, again, at_last, path = suffered(suffer_no_permission, path, readable, change)
    assert_says(*failed, path)
    assert then == before
    assert again is None
    assert at_last == after


def test_a_collection_on_a_full_disk_stays_as_it_is_and_can_be_searched(saved, models, change, before, after):
    found = suffered(suffer_full_disk, saved, models, change)
    if isinstance(found, str):
        pytest.skip(f"no disk to fill: {found}")
    failed, then, again, at_last, path = found
    assert_says(*failed, path)
    assert then == before
    assert again is None
    assert at_last == after
