"""Two who write: the second is told at once, and what happens during a refit is there after it."""

import sys
from contextlib import contextmanager

import pytest

import gradnet
from collection.elsewhere import elsewhere
from collection.museum import NAMES, random_rows
from collection.season import CHANGES, Place, contents, told
from collection.workers import refit_slowly, save_slowly
from gradnet.collection import writer
from gradnet.collection.layout import SEGMENTS
from gradnet.errors import CollectionError

WRITES = {**CHANGES, "save": lambda place, _: place.models[0].save(place.path, NAMES[::-1])}


def assert_refused(write, place, problem):
    with pytest.raises(CollectionError) as refusal:
        write(place, 3)
    assert refusal.value.problem == f"{place.path} is being {problem} by another process"
    assert refusal.value.hint == "try again when it has finished"


@contextmanager
def refitting(path):
    """Somebody else refits a collection; the block happens before the switch. Nothing is refused there."""
    with elsewhere(refit_slowly, path) as (_, pipe):
        assert pipe.recv() == "fitting"
        yield pipe
        pipe.send("go on")
        assert pipe.recv() is None


@pytest.mark.parametrize("name", WRITES)
def test_whoever_writes_while_another_process_writes_is_told_at_once_and_may_write_later(saved, models, name):
    place = Place(saved, models)
    before = told(place.collection)
    with elsewhere(save_slowly, saved, models) as (_, pipe):
        assert pipe.recv() == "writing"
        assert_refused(WRITES[name], place, "written")
        assert contents(saved) == told(place.collection) == before  # readers are not disturbed
        pipe.send("go on")
        assert pipe.recv() is None
    between = contents(saved)
    assert between != before
    WRITES[name](place, 3)
    assert contents(saved) not in (before, between)


def test_whoever_refits_while_another_process_refits_is_told_at_once_and_may_refit_later(saved, models):
    place = Place(saved, models)
    with refitting(saved):
        before = contents(saved)
        assert_refused(CHANGES["refit"], place, "fitted")
        assert contents(saved) == before
    after = contents(saved)
    CHANGES["refit"](place, 3)
    assert contents(saved) not in (before, after)


def test_a_process_that_is_killed_in_a_refit_keeps_nobody_from_another(saved, models):
    with elsewhere(refit_slowly, saved) as (_, pipe):
        assert pipe.recv() == "fitting"
    place = Place(saved, models)
    before = contents(saved)
    CHANGES["refit"](place, 3)
    assert contents(saved) != before


def test_what_is_added_removed_and_changed_during_a_refit_is_so_after_it(saved):
    collection = gradnet.load(saved)
    gone, changed, described = NAMES[3:6], NAMES[7], NAMES[9]
    rows = random_rows(4, 77)
    with refitting(saved):
        old_fit = collection.manifest["fit"]
        collection.add(rows[:2], ["late/0.jpg", "late/1.jpg"], [{"year": 1900}, None])
        collection.add(rows[3:], ["late and gone"])
        collection.remove([*gone, "late and gone"])
        collection.update([changed], rows[2:3], [{"year": 1950}])
        collection.update([described], metadata=[{"year": 2000}])
        assert gradnet.load(saved).manifest["fit"] == old_fit
    for later in (gradnet.load(saved, verify=True), collection):
        later.refresh()
        assert later.manifest["fit"] != old_fit
        assert later.manifest["changes"] == {"added": 3, "removed": 4}
        stay = [name for name in NAMES if name not in {*gone, changed}]
        assert later.ids.tolist() == [*stay, "late/0.jpg", "late/1.jpg", changed]
        found = later.search(rows[:3], len(later))
        assert [ids[0] for ids in found.ids] == ["late/0.jpg", "late/1.jpg", changed]
        assert not {*gone, "late and gone"} & set(found.ids.ravel())
        years = later.metadata(["late/0.jpg", "late/1.jpg", changed, described])
        assert years == [{"year": 1900}, {}, {"year": 1950}, {"year": 2000}]
    assert told(collection) == contents(saved)


def test_a_handle_of_the_old_fit_can_add_after_the_switch(saved):
    collection, row = gradnet.load(saved), random_rows(1, 78)
    with refitting(saved):
        pass
    collection.add(row, ["late.jpg"])
    assert collection.search(row, 1).ids.tolist() == [["late.jpg"]]
    assert told(collection) == contents(saved)


def test_a_refit_that_another_one_has_overtaken_before_its_lock_refits_that(saved, monkeypatch):
    home = sys.modules[gradnet.refit.__module__]
    collection, original = gradnet.load(saved), home.only_one

    def overtaken(path):
        monkeypatch.undo()
        gradnet.refit(gradnet.load(saved), seed=7)
        return original(path)

    monkeypatch.setattr(home, "only_one", overtaken)
    gradnet.refit(collection)
    assert told(collection) == contents(saved)


def test_a_refit_that_a_save_has_overtaken_is_refused_and_the_save_stays(saved, models):
    place = Place(saved, models)
    with elsewhere(refit_slowly, saved) as (_, pipe):
        assert pipe.recv() == "fitting"
        place.models[1].save(saved, NAMES)
        after = contents(saved)
        pipe.send("go on")
        problem, hint = pipe.recv()
    assert problem == f"{saved} was refitted meanwhile by another process"
    assert hint == "open it again"
    assert contents(saved) == after
    assert len(list((saved / SEGMENTS).iterdir())) == 5


def test_segments_of_whoever_writes_next_are_not_taken_for_old_ones(saved, models, monkeypatch):
    place, original = Place(saved, models), writer.writing

    @contextmanager
    def followed(directory):
        with original(directory) as database:
            yield database
        monkeypatch.undo()
        place.models[0].save(saved, NAMES[::-1])  # after the commit, before the old segments are taken away

    monkeypatch.setattr(writer, "writing", followed)
    place.models[1].save(saved, NAMES)
    assert gradnet.load(saved, verify=True).ids.tolist() == NAMES[::-1]
    assert len(list((saved / SEGMENTS).iterdir())) == 5
