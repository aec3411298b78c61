"""The last changes of a collection: each can be undone, and then all is as it was before it."""

import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manifind
from collection.small_collection import NAMES, D, files_of, random_rows
from manifind.collection import history
from manifind.collection.format import DATABASE
from manifind.errors import CollectionError, InputError

FIELDS = [{"year": 1900 + row, "tags": ["a"]} if row % 2 else None for row in range(len(NAMES))]


@pytest.fixture(scope="module")
def original(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("history") / "c"
    model.save(path, NAMES, FIELDS)
    return path


@pytest.fixture
def collection(original, tmp_path):
    return manifind.load(shutil.copytree(original, tmp_path / "c"))


def state(collection):
    """All that a user can see."""
    found = [collection.search(random_rows(3, 9), len(collection), by=by) for by in ("features", "descriptors")]
    found.append(collection.search_ids(collection.ids[::7].tolist(), 5))
    facts = [collection.ids.tolist(), collection.metadata(collection.ids), collection.changed]
    return facts, [(ranking.ids.tolist(), ranking.scores.tolist()) for ranking in found]


CHANGES = {
    "added": lambda c: c.add(random_rows(2, 3), ["new/1", "new/2"], [{"year": 2000}, None]),
    "removed": lambda c: c.remove([*NAMES[::3], "late/0"]),
    "removed an added one": lambda c: c.remove(["late/1"]),
    "described": lambda c: c.update([NAMES[0], "late/0"], metadata=[{"year": 7}, {"place": "<b>Rome</b>"}]),
    "given other descriptors": lambda c: c.update([NAMES[4], "late/1"], random_rows(2, 5)),
    "labelled": lambda c: c.set_labels([NAMES[1], NAMES[2], "late/0"], add=["rome"], remove=["a"]),
    "all at once": lambda c: c.change(
        random_rows(1, 8), ["new/3"], [{"x": 1}], [NAMES[9], "late/0"], {NAMES[10]: {"year": None}}
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_undone_is_as_it_was_before(collection, name):
    collection.add(random_rows(2, 1), ["late/0", "late/1"], [{"year": 1}, None])
    before = state(collection)
    CHANGES[name](collection)
    assert state(collection) != before
    collection.undo()
    assert state(collection) == before
    assert state(manifind.load(collection.path, verify=True)) == before


def test_changes_are_undone_one_after_the_other_back_to_the_fit(collection, original):
    collection.add(random_rows(2, 1), ["late/0", "late/1"])
    states = []
    for name in ("added", "described", "given other descriptors", "labelled", "all at once", "removed an added one"):
        states.append(state(collection))
        CHANGES[name](collection)
    assert len(collection.history()) == len(states) + 1
    while states:
        collection.undo()
        assert state(collection) == states.pop()
    collection.undo()
    assert state(collection) == state(manifind.load(original))
    with pytest.raises(InputError, match=r"no change of .* to undo"):
        collection.undo()


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_changes_are_undone_in_their_reverse_order(original, data, tmp_path_factory):
    collection = manifind.load(shutil.copytree(original, tmp_path_factory.mktemp("any") / "c"))
    states = []
    for number in range(data.draw(st.integers(1, 4))):
        there = collection.ids.tolist()
        removed = data.draw(st.lists(st.sampled_from(there), unique=True, max_size=4))
        kept = [id_ for id_ in there if id_ not in removed]
        described = data.draw(st.dictionaries(st.sampled_from(kept), st.just({"seen": number}), max_size=3))
        again = data.draw(st.lists(st.sampled_from(removed), unique=True)) if removed else []
        new = [*again, *(f"new/{number}/{one}" for one in range(data.draw(st.integers(0, 2))))]
        states.append(state(collection))
        collection.change(random_rows(len(new), number) if new else None, new or None, None, removed, described)
        if not (new or removed or described):
            states.pop()
    for before in reversed(states):
        collection.undo()
        assert state(collection) == before
    assert collection.history() == []


def test_the_history_says_what_was_done_the_newest_first(collection):
    collection.add(random_rows(1, 1), ["late/0"])
    collection.set_labels(NAMES[:3], add=["rome", "sea"], remove=["a"])
    collection.remove(NAMES[:2])
    collection.change(described={NAMES[5]: {"year": 1}}, label="the year was wrong")
    found = [(step.number, step.label, step.items) for step in collection.history()]
    assert found == [
        (4, "the year was wrong", 1),
        (3, "removed 2 items", 2),
        (2, "added 'rome', 'sea' and removed 'a': tags of 3 items", 3),
        (1, "added 1 item", 1),
    ]
    assert collection.undo(4) == "the year was wrong"


def test_only_the_last_change_is_undone(collection):
    collection.remove(NAMES[:1])
    collection.remove(NAMES[1:2])
    with pytest.raises(InputError, match="change 1 is not the last one, which is 'removed 1 item'"):
        collection.undo(1)
    assert len(collection) == len(NAMES) - 2


def test_a_change_of_another_process_is_undone_too_and_seen_by_all_after_a_refresh(collection):
    other = manifind.load(collection.path)
    other.remove(NAMES[:4])
    collection.undo()
    assert len(collection) == len(NAMES)
    other.refresh()
    assert len(other) == len(NAMES)


def test_a_fit_ends_what_can_be_undone(collection):
    collection.remove(NAMES[:2])
    manifind.refit(collection)
    assert collection.history() == []


def test_the_oldest_changes_are_forgotten_and_the_newest_can_still_be_undone(collection, monkeypatch):
    monkeypatch.setattr(history, "_MOST_STEPS", 3)
    for name in NAMES[:5]:
        collection.remove([name])
    assert [step.number for step in collection.history()] == [5, 4, 3]
    for _ in range(3):
        collection.undo()
    assert len(collection) == len(NAMES) - 2
    manifind.load(collection.path, verify=True)


def test_a_change_too_large_to_remember_is_made_and_cannot_be_undone(collection, monkeypatch):
    collection.remove(NAMES[:1])
    monkeypatch.setattr(history, "_MOST_BYTES", 1000)
    collection.remove(NAMES[1:40])
    assert collection.history() == []
    assert len(collection) == len(NAMES) - 40
    manifind.load(collection.path, verify=True)


def test_numbers_that_were_given_are_not_given_again_after_an_undo(model, tmp_path):
    collection = model.save(tmp_path / "numbers")
    assert collection.add(random_rows(2, 1)) == [120, 121]
    collection.undo()
    assert collection.add(random_rows(1, 1)) == [122]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE former SET metadata = 'x'",
        "UPDATE former SET position = position + 500",
        "DELETE FROM former",
        "UPDATE steps SET n_added = 5",
        "UPDATE steps SET number = 9",
        "INSERT INTO judgements VALUES ('x', 1, 1)",
    ],
)
def test_a_history_that_was_changed_by_others_is_not_undone(collection, statement):
    collection.remove(NAMES[:2])
    with closing(sqlite3.connect(collection.path / DATABASE)) as database:
        database.execute(statement)
        database.commit()
    before = files_of(collection.path)
    with pytest.raises(CollectionError, match="differ from the sum that was recorded"):
        manifind.load(collection.path).undo()
    with pytest.raises(CollectionError, match="differ from the sum that was recorded"):
        manifind.load(collection.path, verify=True)
    assert files_of(collection.path) == before


LABELS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    lambda t: t == t.strip()
)


@settings(max_examples=30, deadline=None)
@given(add=st.lists(LABELS, max_size=4), remove=st.lists(LABELS, max_size=4))
def test_labels_are_a_set_in_the_order_in_which_they_came(original, add, remove, tmp_path_factory):
    collection = manifind.load(shutil.copytree(original, tmp_path_factory.mktemp("labels") / "c"))
    if not add and not remove:
        with pytest.raises(InputError, match="no label"):
            collection.set_labels(NAMES[:1], add, remove)
        return
    if set(add) & set(remove):
        with pytest.raises(InputError, match="is to be added and removed"):
            collection.set_labels(NAMES[:1], add, remove)
        return
    collection.set_labels([NAMES[1]], add, remove)
    collection.set_labels([NAMES[1]], add, remove)
    expected = [one for one in ["a"] if one not in remove]
    expected += [one for one in dict.fromkeys(add) if one not in expected]
    assert collection.metadata([NAMES[1]])[0].get("tags", []) == expected


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([""], "texts of 1 to 200"),
        ([" a"], "spaces"),
        (["x" * 201], "1 to 200"),
        ("rome", "a list of texts"),
        ([3], "3"),
    ],
)
def test_what_is_no_label_is_refused(collection, labels, words):
    with pytest.raises(InputError, match=words):
        collection.set_labels(NAMES[:1], labels)


def test_a_field_that_is_no_list_of_texts_gets_no_labels(collection):
    with pytest.raises(InputError, match="the field 'year' of an item is 1901"):
        collection.set_labels(NAMES[:2], ["x"], field="year")
    assert collection.history() == []


def test_labels_survive_a_refit_and_can_be_filtered(collection):
    collection.set_labels(NAMES[:3], ['it\'s "quoted"'], field="albums")
    manifind.refit(collection)
    found = collection.search(np.zeros((1, D)) + 1, 10, """albums contains "it's \\"quoted\\"" """)
    assert sorted(found.ids[0]) == NAMES[:3]


def test_a_filter_by_labels_that_nobody_has_finds_nothing_and_is_no_mistake(model, tmp_path):
    collection = model.save(tmp_path / "plain", NAMES, [{"year": 1}] * len(NAMES))
    assert collection.search(random_rows(1, 1), 3, "albums contains 'summer'").ids.shape == (1, 0)
    with pytest.raises(InputError, match="no item has a metadata field 'albumes'"):
        collection.search(random_rows(1, 1), 3, "albumes contains 'summer'")
