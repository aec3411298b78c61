"""Two who write: the second is told at once, and what happens during a refit is there after it."""

import sys
from contextlib import contextmanager

import pytest

import manifind
from collection.elsewhere import elsewhere
from collection.operations import CHANGES, Place, contents, summary
from collection.small_collection import NAMES, random_rows
from collection.workers import refit_slowly, save_slowly
from manifind.collection import writer
from manifind.collection.format import SEGMENTS
from manifind.errors import CollectionError, InputError

WRITES = {**CHANGES, "save": lambda place, _: place.models[0].save(place.path, NAMES[::-1], overwrite=True)}


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
    before = summary(place.collection)
    with elsewhere(save_slowly, saved, models) as (_, pipe):
        assert pipe.recv() == "writing"
        assert_refused(WRITES[name], place, "written")
        assert contents(saved) == summary(place.collection) == before  # readers are not disturbed
        pipe.send("go on")
        assert pipe.recv() is None
    between = contents(saved)
    assert between != before
    WRITES[name](Place(saved, models), 3)  # a save has made another collection of it, which is opened again
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
    collection = manifind.load(saved)
    gone, changed, described = NAMES[3:6], NAMES[7], NAMES[9]
    rows = random_rows(4, 77)
    with refitting(saved):
        old_fit = collection.manifest["fit"]
        collection.add(rows[:2], ["late/0.jpg", "late/1.jpg"], [{"year": 1900}, None])
        collection.add(rows[3:], ["late and gone"])
        collection.remove([*gone, "late and gone"])
        collection.update([changed], rows[2:3], [{"year": 1950}])
        collection.update([described], metadata=[{"year": 2000}])
        assert manifind.load(saved).manifest["fit"] == old_fit
    for later in (manifind.load(saved, verify=True), collection):
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
    assert summary(collection) == contents(saved)


def test_a_handle_of_the_old_fit_can_add_after_the_switch(saved):
    collection, row = manifind.load(saved), random_rows(1, 78)
    with refitting(saved):
        pass
    collection.add(row, ["late.jpg"])
    assert collection.search(row, 1).ids.tolist() == [["late.jpg"]]
    assert summary(collection) == contents(saved)


def test_a_refit_that_another_one_has_overtaken_before_its_lock_refits_that(saved, monkeypatch):
    home = sys.modules[manifind.refit.__module__]
    collection, original = manifind.load(saved), home.only_one

    def overtaken(path):
        monkeypatch.undo()
        manifind.refit(manifind.load(saved), seed=7)
        return original(path)

    monkeypatch.setattr(home, "only_one", overtaken)
    manifind.refit(collection)
    assert summary(collection) == contents(saved)


def test_a_refit_that_a_save_has_overtaken_is_refused_and_the_save_stays(saved, models):
    place = Place(saved, models)
    with elsewhere(refit_slowly, saved) as (_, pipe):
        assert pipe.recv() == "fitting"
        place.models[1].save(saved, NAMES, overwrite=True)
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
        place.models[0].save(
            saved, NAMES[::-1], overwrite=True
        )  # after the commit, before the old segments are taken away

    monkeypatch.setattr(writer, "writing", followed)
    place.models[1].save(saved, NAMES, overwrite=True)
    assert manifind.load(saved, verify=True).ids.tolist() == NAMES[::-1]
    assert len(list((saved / SEGMENTS).iterdir())) == 5


@pytest.mark.parametrize("first", ["text", 7])
def test_ids_of_two_kinds_cannot_come_in_through_two_handles(saved, first):
    second = 7 if first == "text" else "text"
    manifind.load(saved).remove(NAMES)
    one, other = manifind.load(saved), manifind.load(saved)
    one.add(random_rows(1, 5), [first])
    with pytest.raises(InputError, match="of another kind"):
        other.add(random_rows(1, 6), [second])
    assert manifind.load(saved, verify=True).ids.tolist() == [first]


def test_numbers_that_the_collection_gives_do_not_join_texts_of_another_handle(saved):
    manifind.load(saved).remove(NAMES)
    one, other = manifind.load(saved), manifind.load(saved)
    one.add(random_rows(1, 5), ["text"])
    with pytest.raises(InputError, match="of another kind"):
        other.add(random_rows(1, 6))
    assert manifind.load(saved, verify=True).ids.tolist() == ["text"]


@pytest.mark.parametrize("how", ["moved there", "overwritten"])
@pytest.mark.parametrize(
    "change",
    [
        lambda handle: handle.add(random_rows(1, 5), ["new"]),
        lambda handle: handle.remove(NAMES[:2]),
        lambda handle: handle.update(NAMES[:1], metadata=[{"year": 1900}]),
        lambda handle: handle.remove(["only in the other"]),
        manifind.refit,
    ],
)
def test_a_handle_whose_collection_was_replaced_changes_nothing_of_the_other(saved, other_model, tmp_path, how, change):
    handle, names = manifind.load(saved), [*NAMES[:-1], "only in the other"]
    if how == "moved there":
        other_model.save(tmp_path / "other", names)
        saved.rename(tmp_path / "before")
        (tmp_path / "other").rename(saved)
    else:
        other_model.save(saved, names, overwrite=True)
    before = contents(saved)
    with pytest.raises(CollectionError, match="holds another collection than when it was opened"):
        change(handle)
    assert contents(saved) == before
    assert handle.refresh()  # who asks for what is there now gets it
    change(handle)
    assert contents(saved) != before
