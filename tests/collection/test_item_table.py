"""Who is in a collection: everybody is found under the own id and under no other, whoever has come and gone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.collection.items import Committed, ItemBlock, ItemRows, ItemTable, read_item_table
from manifind.collection.metadata import metadata_texts

N_FITTED = 6
TRICKY = ["a/b.jpg", '"path": "x"', '\\"path": "x', "\\", "\n", '"', "", "path", "猫/\u2028", '{"path": "y"}']
TEXTS = st.sampled_from(TRICKY) | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
FIELDS = st.dictionaries(
    st.sampled_from(["path", "a", 'the "path"', '"path": ']) | TEXTS.filter(bool),
    st.none() | st.integers() | st.booleans() | TEXTS | st.lists(TEXTS, max_size=2),
    max_size=4,
)


@st.composite
def histories(draw):
    """Items that are there at first, by position, and changes: positions that go, ids that come, ids to describe."""
    make = str if draw(st.booleans()) else int
    positions = sorted(draw(st.sets(st.integers(0, 9), min_size=1)))
    numbers = draw(st.lists(st.integers(0, 15), min_size=len(positions), max_size=len(positions), unique=True))
    there = dict(zip(positions, map(make, numbers), strict=True))
    now, steps, next_position = dict(there), [], 10
    for _ in range(draw(st.integers(0, 4))):
        gone = draw(st.lists(st.sampled_from(sorted(now)), unique=True, max_size=2)) if now else []
        now = {position: id_ for position, id_ in now.items() if position not in gone}
        free = sorted({make(number) for number in range(20)} - set(now.values()))
        come = draw(st.lists(st.sampled_from(free), unique=True, max_size=2))
        new = dict(zip(range(next_position, next_position + len(come)), come, strict=True))
        next_position, now = next_position + len(come), now | new
        summary = draw(st.lists(st.sampled_from(sorted(now.values())), unique=True, max_size=2)) if now else []
        steps.append((gone, new, summary))
    return make, there, steps


def told_of(position, time=0):
    return f'{{"position": {position}, "time": {time}}}'


def check(items, now, metadata_of, make):
    positions = sorted(now)
    assert len(items) == len(now)
    assert items.ids.tolist() == [now[position] for position in positions]
    assert items.positions.tolist() == positions
    assert items.metadata == [metadata_of[position] for position in positions]
    later = [position for position in positions if position >= N_FITTED]
    for id_ in map(make, range(20)):
        row = items.row_of(id_)
        if id_ not in now.values():
            assert row is None
            continue
        position = next(position for position, name in now.items() if name == id_)
        assert row == (position if position < N_FITTED else N_FITTED + later.index(position))
        assert items.ids_of(np.array([[row]])).tolist() == [[id_]]
        assert items.fields(row)["position"] == position


@given(history=histories())
@settings(max_examples=200, derandomize=True)
def test_everybody_is_found_under_the_own_id_whatever_has_happened(history):
    make, now, steps = history
    metadata_of = {position: told_of(position) for position in now}
    rows = ItemRows(np.array(list(now)), list(now.values()), list(metadata_of.values()))
    items = read_item_table(rows, N_FITTED, "somewhere")
    check(items, now, metadata_of, make)
    for time, (gone, new, summary) in enumerate(steps, 1):
        before, was = items, (dict(now), dict(metadata_of))
        texts = [told_of(position) for position in new]
        now = {position: id_ for position, id_ in now.items() if position not in gone} | new
        described = {id_: told_of(position, time) for position, id_ in now.items() if id_ in summary}
        metadata_of |= dict(zip(new, texts, strict=True))
        metadata_of |= {position: described[id_] for position, id_ in now.items() if id_ in described}
        done = Committed(None, {}, list(new), list(new.values()), texts, gone, described)
        items = items.after(done)
        check(items, now, metadata_of, make)
        check(before, *was, make)


@pytest.mark.parametrize("wanted", ["0", 0.0, True, None, b"0", [0], np.float64(0)])
def test_an_id_of_another_kind_is_nobodys(wanted):
    items = read_item_table(ItemRows(np.array([0, 1]), [0, 1], [None, None]), 2, "somewhere")
    assert items.row_of(wanted) is None
    assert items.row_of(np.int32(1)) == 1


@given(fields=st.lists(st.none() | FIELDS, max_size=4), later=st.lists(st.none() | FIELDS, max_size=2))
@settings(max_examples=300, derandomize=True)
def test_paths_are_those_that_the_metadata_says(fields, later):
    texts, added = metadata_texts(fields, len(fields)), metadata_texts(later, len(later))
    rows, places = np.arange(len(fields)), np.arange(len(later))
    present = np.ones(len(fields), dtype=np.bool_)
    items = ItemTable(ItemBlock(rows, texts, rows, "c"), present, ItemBlock(places, added, places, "c"), places)
    metadata_of = [(one or {}).get("path") for one in (*fields, *later)]
    assert items.paths == [path if isinstance(path, str) else None for path in metadata_of]
