"""Commits that carry their number through a collection, and readers who look whether all they see has one number."""

from __future__ import annotations

import hashlib
import traceback

import manifind
from collection.disk_faults import nothing_to_write
from collection.small_collection import random_rows

_N_CARRIERS = 4
_QUERIES = random_rows(3, 9)


def begin(collection):
    """Add those who carry the number."""
    collection.add(random_rows(_N_CARRIERS, 0), _names(0), _fields(0))


def march(pipe, path, commits, refits):
    """Commit after commit, some of them refits, which leave the number as it is. Says of each what is seen after it."""
    collection, length = manifind.load(path), commits // refits
    for number in range(1, commits + 1):
        if number % length == 0:
            manifind.refit(collection)
        else:
            (_replace, _describe, _move)[number % 3](collection, number)
        pipe.send(observed(collection))
    pipe.send("done")


def observed(collection):
    """The name of the version, its number, and a digest of what is found; all of it fits together."""
    commit, ids = collection.version.manifest.commit, collection.ids.tolist()
    carriers = [id_ for id_ in ids if id_.startswith("carrier")]
    (number,) = {fields["number"] for fields in collection.metadata(carriers)}
    found = collection.search(_QUERIES, 2 * _N_CARRIERS, f"number = {number}")
    others = collection.search(_QUERIES, 1, f"number < {number} or number > {number}")
    everybody = collection.search(_QUERIES, len(ids))
    assert len(carriers) == _N_CARRIERS
    assert {tuple(sorted(row)) for row in found.ids.tolist()} == {tuple(sorted(carriers))}
    assert others.ids.shape[1] == 0
    assert {tuple(sorted(row)) for row in everybody.ids.tolist()} == {tuple(sorted(ids))}
    summary = [(ranking.ids.tolist(), ranking.scores.tolist()) for ranking in (found, everybody)]
    return commit, number, hashlib.sha256(repr(summary).encode()).hexdigest()


def watch(path, is_over):
    """Look at a collection again and again, through a handle that is kept, refreshed, or opened anew.

    Returns how often, and all that was observed; the number never goes back, and what is kept stays the same.
    """
    first = handle = manifind.load(path)
    at_first = last = observed(first)
    seen, turn = {last}, 0
    while not is_over():
        turn += 1
        if turn % 3 == 1:
            handle.refresh()
        elif turn % 3 == 2:
            assert observed(handle) == last, "a handle that was kept answers otherwise"
        else:
            handle = manifind.load(path, verify=turn % 2 == 0)
        now = observed(handle)
        assert now[1] >= last[1], f"number {now[1]} was seen after {last[1]}"
        seen.add(now)
        last = now
    assert observed(first) == at_first
    return turn, seen


def watch_elsewhere(pipe, path):
    """The same until anything is said; sends what was seen, or where it went wrong."""
    pipe.send("ready")
    try:
        pipe.send(watch(path, pipe.poll))
    except BaseException:
        pipe.send(traceback.format_exc())


def watch_without_permission(pipe, path, scratch):
    """The same by somebody who may not write. scratch: another collection with carriers."""
    watch(scratch, iter([False, False, False, True]).__next__)  # imports what is not everybody's to read
    with nothing_to_write(path):
        watch_elsewhere(pipe, path)


def _replace(collection, number):
    gone = [id_ for id_ in collection.ids if id_.startswith("carrier")]
    collection.change(random_rows(_N_CARRIERS, number), _names(number), _fields(number), removed=gone)


def _describe(collection, number):
    carriers = [id_ for id_ in collection.ids if id_.startswith("carrier")]
    collection.update(carriers, metadata=_fields(number))


def _move(collection, number):
    carriers = [id_ for id_ in collection.ids if id_.startswith("carrier")]
    collection.update(carriers, random_rows(_N_CARRIERS, number), _fields(number))


def _names(number):
    return [f"carrier {i} since {number}" for i in range(_N_CARRIERS)]


def _fields(number):
    return [{"number": number}] * _N_CARRIERS
