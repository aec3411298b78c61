"""Whoever reads while others write sees one version after another, each of them whole."""

import logging
import os
import shutil
import threading
from contextlib import ExitStack

import pytest

import manifind
from collection.concurrent_commits import begin, march, observed, watch, watch_elsewhere, watch_without_permission
from collection.elsewhere import elsewhere
from collection.faults import available
from collection.operations import contents
from collection.small_collection import tidy
from collection.workers import die_at, read_without_permission
from manifind.collection.format import DATABASE

N_PROCESSES, N_THREADS = 5, 3
log = logging.getLogger(__name__)


@pytest.mark.long
@pytest.mark.parametrize("commits", [100, pytest.param(1000, marks=pytest.mark.endurance)])
def test_every_answer_during_many_commits_belongs_to_one_version(pristine, everybodys, commits):
    path = shutil.copytree(pristine, everybodys / "museum.manifind")
    begin(manifind.load(path))
    readers = [(watch_elsewhere, path)] * N_PROCESSES
    if os.geteuid() == 0:  # one who may not write among those who may
        readers[-1] = (watch_without_permission, path, shutil.copytree(path, everybodys / "scratch"))
    written, is_over, reports = [observed(manifind.load(path))], threading.Event(), []

    def watch_here():
        try:
            reports.append(watch(path, is_over.is_set))
        except BaseException as error:
            reports.append(repr(error))

    threads = [threading.Thread(target=watch_here) for _ in range(N_THREADS)]
    with ExitStack() as stack:
        pipes = [stack.enter_context(elsewhere(*reader))[1] for reader in readers]
        assert [pipe.recv() for pipe in pipes] == ["ready"] * N_PROCESSES
        try:
            for thread in threads:
                thread.start()
            _, writer = stack.enter_context(elsewhere(march, path, commits, 5))
            written += iter(writer.recv, "done")
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
        for pipe in pipes:
            pipe.send("it is over")
            reports.append(pipe.recv())
    assert not [report for report in reports if isinstance(report, str)]
    assert len(reports) == N_PROCESSES + N_THREADS
    assert len(written) == len({commit for commit, _, _ in written}) == commits + 1
    for _, seen in reports:
        assert seen <= set(written)
        assert len(seen) > 1
    everything = set().union(*(seen for _, seen in reports))
    looks = [count for count, _ in reports]
    log.info("%d looks, at %d of %d versions", sum(looks), len(everything), len(written))


def seen_without_permission(path, scratch):
    with elsewhere(read_without_permission, path, scratch) as (_, pipe):
        return pipe.recv()


def test_a_directory_that_is_not_ours_to_write_can_be_read_and_stays_as_it_is(pristine, everybodys):
    path = shutil.copytree(pristine, everybodys / "museum.manifind")
    tidy(path)
    assert seen_without_permission(path, pristine) == contents(pristine)
    assert sorted(file.name for file in path.iterdir()) == [DATABASE, "segments"]


@pytest.mark.skipif(not available(), reason="SQLite is built into Python's module for it")
@pytest.mark.parametrize("step", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.endurance)])
def test_where_a_writer_died_everybody_sees_the_same(pristine, models, everybodys, step):
    seen = []
    for call in range(1, 100, step):
        path = shutil.copytree(pristine, everybodys / f"{call}.manifind")
        with elsewhere(die_at, path, models, 1, call) as (process, _):
            process.join()
            if process.exitcode == 0:
                break
        seen.append(seen_without_permission(path, pristine))
        assert seen[-1] == contents(path)
    assert len(set(map(str, seen))) == 2
