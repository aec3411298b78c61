"""A process that is killed at any moment leaves the collection before its operation, or the one after it."""

import logging
import shutil
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import manifind
from collection.elsewhere import elsewhere, everything_from
from collection.faults import available
from collection.operations import SEASON, contents
from collection.small_collection import NAMES, random_rows
from collection.workers import die_at, perform
from manifind.collection.format import DATABASE, SEGMENTS

log = logging.getLogger(__name__)


@dataclass
class Rehearsal:
    """The season without an accident: the collection before each operation and after the last.

    states: what it tells there. durations: of the operations, seconds in a process that has done nothing else.
    """

    root: Path
    models: Path
    states: list = field(default_factory=lambda: [None])
    durations: list = field(default_factory=list)

    def copy(self, number, path):
        if self.states[number] is not None:
            shutil.copytree(self.root / str(number), path)

    def is_after(self, path, done):
        """Whether the operation that follows those that were done has come about; it is whole, or has not begun."""
        there, legal = contents(path), self.states[done : done + 2]
        assert there in legal, f"neither before nor after {self.name_of(done)}"
        return there == legal[-1]

    def name_of(self, done):
        return SEASON[done].__name__ if done < len(SEASON) else "the end"


@pytest.fixture(scope="module")
def rehearsal(models, tmp_path_factory):
    found = Rehearsal(tmp_path_factory.mktemp("rehearsal"), models)
    for number in range(len(SEASON)):
        after = found.root / str(number + 1)
        found.copy(number, after)
        with elsewhere(perform, after, models, number, number + 1) as (_, pipe):
            assert pipe.recv() == "ready"
            found.durations.append(pipe.recv())
        found.states.append(contents(after))
        assert found.states[-1] != found.states[-2]
    return found


def kill(rehearsal, path, first, delay):
    """Start at an operation and kill it after a while; how many operations of the season are done."""
    with elsewhere(perform, path, rehearsal.models, first, len(SEASON)) as (process, pipe):
        assert pipe.recv() == "ready"
        time.sleep(delay)
        process.kill()
        process.join()
        return first + len(everything_from(pipe))


def go_on(path, model, turn):
    """The next writes: a small commit, and then a full one by a save or by a refit."""
    if not path.exists():
        model.save(path, NAMES)
    row = random_rows(1, 1000 + turn)
    manifind.load(path).add(row, ["the next one"])
    collection = manifind.load(path, verify=True)
    assert "the next one" in collection.search(row, 3).ids[0]
    if turn % 2:
        manifind.refit(collection)
        assert "the next one" in manifind.load(path, verify=True)
    else:
        model.save(path, NAMES, overwrite=True)
        assert manifind.load(path, verify=True).ids.tolist() == NAMES


def leftovers(path):
    """What lies beside the collection, and segments that it does not refer to."""
    with closing(sqlite3.connect(path / DATABASE)) as database:
        used = {name for (name,) in database.execute("SELECT name FROM segments")}
    beside = {file.name for file in path.parent.iterdir()} - {path.name}
    return beside | ({file.name for file in (path / SEGMENTS).iterdir()} ^ used)


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.endurance)])
def test_a_process_that_is_killed_leaves_the_state_before_its_operation_or_after_it(kills, rehearsal, model, tmp_path):
    outcomes = Counter()
    for turn in range(kills):
        first = turn % len(SEASON)
        longest = 1.5 * rehearsal.durations[first]  # now and then into the next operation
        path = tmp_path / str(turn) / "museum.manifind"
        path.parent.mkdir()
        rehearsal.copy(first, path)
        done = kill(rehearsal, path, first, np.random.default_rng(turn).uniform(0, longest))
        is_after = rehearsal.is_after(path, done)
        outcomes[f"{rehearsal.name_of(done)}: {'after' if is_after else 'before'}"] += 1
        go_on(path, model, turn)
        assert not leftovers(path), f"kill {turn}, in {rehearsal.name_of(done)}"
    log.info("%d were killed in %s", outcomes.total(), dict(sorted(outcomes.items())))


@pytest.mark.skipif(not available(), reason="SQLite is built into Python's module for it")
@pytest.mark.parametrize("step", [pytest.param(10, id="some"), pytest.param(1, id="all", marks=pytest.mark.endurance)])
@pytest.mark.parametrize(
    "number", range(6), ids=[f"{n}-{operation.__name__}" for n, operation in enumerate(SEASON[:6])]
)
def test_a_process_that_dies_between_two_calls_to_the_disk_leaves_one_state_or_the_other(
    number, step, rehearsal, model, tmp_path
):
    def died_at(call):
        path = tmp_path / str(call) / "museum.manifind"
        path.parent.mkdir()
        rehearsal.copy(number, path)
        with elsewhere(die_at, path, rehearsal.models, number, call) as (process, pipe):
            reported = everything_from(pipe)
            process.join()
            assert process.exitcode == (0 if reported else 9)
        is_after = rehearsal.is_after(path, number)
        go_on(path, model, call)
        assert not leftovers(path), f"call {call}"
        return is_after, reported

    is_after, n_calls = died_at(0)
    assert is_after
    outcomes = [died_at(call)[0] for call in range(1, n_calls[0] + 1, step)]
    assert outcomes == sorted(outcomes)  # once it has come about, it stays
    log.info("%s: %d times before, %d times after", rehearsal.name_of(number), outcomes.count(False), sum(outcomes))
