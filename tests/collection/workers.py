"""What other processes do to a collection, and what they say of it through a pipe."""

from __future__ import annotations

import itertools
import os
import shutil
import time

import manifind
from collection.disk_faults import files_of_at_most, full_disk, give_own_disk, nothing_to_write
from collection.faults import sqlite_calls
from collection.operations import CHANGES, Place, contents, save
from manifind.collection import writer
from manifind.errors import CollectionError


def perform(pipe, path, models, first, last):
    """Do some operations of the season, and say of each how long it took as soon as it is done."""
    place = Place(path, models)
    pipe.send("ready")
    for number in range(first, last):
        began = time.perf_counter()
        place.do(number)
        pipe.send(time.perf_counter() - began)
    pipe.recv()


def die_at(pipe, path, models, number, last_call):
    """Do an operation of the season, and die just before a call to the disk. Says how many there were otherwise."""
    place, calls, sync = Place(path, models), itertools.count(1), os.fsync

    def goes_on(*_):
        if next(calls) == last_call:
            os._exit(9)
        return True

    os.fsync = lambda file: goes_on() and sync(file)
    with sqlite_calls(goes_on):
        place.do(number)
    pipe.send(next(calls) - 1)


def suffer_nothing(pipe, path, models, change):
    CHANGES[change](Place(path, models), 3)
    pipe.send(contents(path))


def suffer_small_files(pipe, path, models, change, n_bytes):
    pipe.send(_suffered(Place(path, models), change, files_of_at_most(n_bytes)))


def suffer_no_permission(pipe, path, models, change):
    scratch = shutil.copytree(path, path.with_name("scratch"))
    CHANGES[change](Place(scratch, models), 3)  # imports what is not everybody's to read
    pipe.send(_suffered(Place(path, models), change, nothing_to_write(path)))


def read_without_permission(pipe, path, scratch):
    """What is there for somebody who may not write. scratch: another collection."""
    contents(scratch)  # imports what is not everybody's to read
    with nothing_to_write(path):
        pipe.send(contents(path))


def suffer_full_disk(pipe, path, models, change):
    """Move to a disk of its own, so small that it can be filled; says why not where that is not allowed."""
    content = shutil.copytree(path, path.with_name("aside"))
    try:
        give_own_disk(path, 1 << 20)
    except OSError as error:
        pipe.send(str(error))
        return
    place = Place(shutil.copytree(content, path / "small"), models)
    pipe.send(_suffered(place, change, full_disk(path)))


def _suffered(place, change, trouble):
    """How a change ends in trouble, what is there then, how it ends after the trouble, and what is there then."""
    with trouble:
        in_trouble, then = _outcome(CHANGES[change], place, 3), contents(place.path)
    return in_trouble, then, _outcome(CHANGES[change], place, 3), contents(place.path), str(place.path)


def save_slowly(pipe, path, models):
    """A save that waits inside of its transaction until it is told to go on."""
    place, original = Place(path, models), writer.write_segments

    def waiting(*arguments):
        pipe.send("writing")
        pipe.recv()
        return original(*arguments)

    writer.write_segments = waiting
    pipe.send(_outcome(save, place, 1))


def refit_slowly(pipe, path):
    """A refit that waits in the middle of its fit until it is told to go on."""
    collection, waited = manifind.load(path), []

    def wait_once(progress):
        if not waited:
            waited.append(progress)
            pipe.send("fitting")
            pipe.recv()

    pipe.send(_outcome(lambda: manifind.refit(collection, listener=wait_once)))


def _outcome(work, *arguments):
    """The problem and the hint of the error that it ends with; None where it succeeds."""
    try:
        work(*arguments)
    except CollectionError as error:
        return error.problem, error.hint
    return None
