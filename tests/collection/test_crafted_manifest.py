"""Manifests that lie, signed as if they were ours: each is refused by name, and what passes does no harm."""

import json

import numpy as np
import pytest

import manifind
from collection.crafting import change_manifest, manifest_of, rows_of, set_manifest
from collection.small_collection import D, N, edit, random_rows
from manifind.collection.format import DATABASE
from manifind.collection.writer import Change, commit_change
from manifind.errors import CollectionError, InputError

NO_TABLE = [None, 1, "x", [], [["kind", "unit"]], True, 0.5]
NO_TEXT = [None, 0, [], {}, True, ["0123456789abcdef"]]
NO_COUNT = [None, -1, 0, N - 1, 1.5, float(N + 9), "130", [130], {}, True, 10**30, 2**63 + 1]

WRONG = {
    "format": [0, 4, 1.5, -1, "1", None, [1], {"format": 1}],
    "kind": ["", "Full", "full ", "compressed", None, 1, [], {}, ["full"], {"full": 1}, "x" * 10_000],
    "fit": NO_TEXT,
    "commit": NO_TEXT,
    "created": NO_TEXT,
    "versions": NO_TABLE,
    "info": NO_TABLE,
    "settings": NO_TABLE,
    "indexes": NO_TABLE,
    "preprocess": [*NO_TABLE, {}],
    "queries": [*NO_TABLE, {}],
    "shape": [*NO_TABLE, {}],
    "changes": [
        *NO_TABLE,
        {},
        {"added": 4},
        {"removed": 2},
        {"added": 4, "removed": 3},
        {"added": 5, "removed": 2},
        {"added": -4, "removed": -2},
        {"added": "4", "removed": "2"},
        {"added": 4, "removed": 2, "more": 0},
        {"added": 10**30, "removed": 0},
        {"added": None, "removed": None},
    ],
    "next_position": NO_COUNT,
    "next_id": [None, -1, 1.5, "0", [0], {}, True, 10**30, 2**63 + 1],
}
WRONG_ENTRIES = {
    ("shape", "neighbors"): [0, -1, 1.5, "3", None, [3], True, 2, 4, N + 1, 2**40, 10**30],
    ("shape", "dimension"): [D - 1, D + 1, 2**39],
    ("shape", "feature_dimension"): [1, 2**39],
    ("shape", "items"): [N + 1, 2**39],
    ("queries", "n_neighbors"): [None, True, -3, [3], 10.5],
    ("queries", "similarity"): [None, 0, "Euclidean", {}],
    ("queries", "passes"): [1.5, "1", True, [1], -1],
    ("queries", "index"): ["", "hnsw", None, 3, ["sq8"], "IVF1,Flat"],
    ("queries", "joining"): [
        *([], [1], [1, 2, 3], [0, 0.5], [0.3, "wide"], [True, 0.5], [1e9, 0.5], [0.3, 10**400], [0.3, -1]),
        *({"width": 1, "own": 1}, 3, "ab", True),
    ],
    ("preprocess", "kind"): ["UNIT", 3, ["unit"], {}, "center"],
    ("preprocess", "scale"): [-1, 0, float("inf"), 10**400, 10**4200, [1], True, "", {}],
}


def name(value):
    return f"{type(value).__name__} {str(value)[:24]}" if not isinstance(value, tuple) else "-".join(value)


@pytest.mark.parametrize(("key", "value"), [(key, value) for key in WRONG for value in WRONG[key]], ids=name)
def test_a_value_that_no_manifest_has_is_refused(living, refusal, key, value):
    set_manifest(living, key, json.dumps(value))
    refusal(living)


@pytest.mark.parametrize(
    ("place", "value"), [(place, value) for place in WRONG_ENTRIES for value in WRONG_ENTRIES[place]], ids=name
)
def test_an_entry_that_no_search_could_use_is_refused(living, refusal, place, value):
    key, entry = place
    change_manifest(living, key, **{entry: value})
    refusal(living)


@pytest.mark.parametrize("neighbors", [N + 1, 2**39])
def test_more_neighbours_than_nodes_are_refused_where_nobody_has_come_yet(saved, refusal, neighbors):
    change_manifest(saved, "shape", neighbors=neighbors)
    assert "more neighbours than there are nodes" in refusal(saved)


@pytest.mark.parametrize("key", [*WRONG, "rows", "digest"])
def test_a_manifest_without_one_of_its_keys_is_refused(living, refusal, key):
    edit(living, "DELETE FROM manifest WHERE key = ?", key)
    refusal(living)


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[" * 100_000, "9" * 5000, "NaN", b'"full"', b"\xff"])
@pytest.mark.parametrize("key", sorted(WRONG))
def test_a_value_that_is_no_json_or_no_text_is_refused(living, refusal, key, text):
    set_manifest(living, key, text, sign=not isinstance(text, bytes))
    refusal(living)


@pytest.mark.parametrize("value", ['""', "null", "5", '"' + "0" * 64 + '"', '"-1"', "[]", "", "{"])
@pytest.mark.parametrize("key", ["rows", "digest"])
def test_a_digest_of_other_tables_is_refused_and_nothing_is_added_to_them(living, refusal, key, value):
    opened = manifind.load(living)
    set_manifest(living, key, value, sign=False)
    assert DATABASE in refusal(living)
    with pytest.raises(CollectionError, match="is damaged"):
        opened.add(random_rows(1, 8), ["new"])
    assert len(opened) == N + 2


def test_damage_that_came_after_it_was_opened_is_not_signed_by_the_next_commit(living, refusal):
    opened = manifind.load(living)
    other = {**manifest_of(living, "queries"), "n_neighbors": 1}
    set_manifest(living, "queries", json.dumps(other), sign=False)
    for change in (
        lambda: opened.add(random_rows(1, 8), ["new"]),
        lambda: opened.remove(["late/0.jpg"]),
        lambda: opened.update(["late/0.jpg"], metadata=[{"year": 1}]),
        lambda: manifind.refit(opened),
    ):
        with pytest.raises(CollectionError, match="differ from the digest"):
            change()
    assert "differ from the digest" in refusal(living)


def test_a_refit_does_not_take_over_items_that_differ_from_their_digest(living):
    opened = manifind.load(living)
    edit(living, "UPDATE items SET id = 'another' WHERE position = 5", sign=False)
    with pytest.raises(CollectionError, match="differ from the digest"):
        manifind.refit(opened)


@pytest.mark.parametrize("start", [0, 3, 5, N - 1, N, N + 4, -7])
def test_a_position_that_is_taken_or_was_given_up_is_never_given_again(living, start):
    opened = manifind.load(living)
    placed = opened.version.added[:1]
    set_manifest(living, "next_position", str(start))
    before = rows_of(living, "SELECT * FROM items")
    change = Change(placed=placed, ids=["new"], metadata=[None])
    with pytest.raises(CollectionError, match="next position"):
        commit_change(living, opened.version.manifest, change)
    assert rows_of(living, "SELECT * FROM items") == before


def test_numbers_for_ids_that_lie_break_nothing(model, tmp_path):
    path = tmp_path / "c"
    collection = model.save(path)
    collection.add(random_rows(2, 4))
    set_manifest(path, "next_id", "5")
    with pytest.raises(InputError, match="there is an item with the id 5"):
        collection.add(random_rows(1, 5))
    with pytest.raises(CollectionError, match="next_id is 5"):
        manifind.load(path)
    set_manifest(path, "next_id", str(2**63))
    with pytest.raises(InputError, match="not 1 free numbers"):
        manifind.load(path).add(random_rows(1, 5))
    assert len(manifind.load(path, verify=True)) == N + 2


def test_the_largest_number_is_an_id_like_any_other_and_the_last(model, tmp_path):
    collection = model.save(tmp_path / "c")
    collection.add(random_rows(1, 4), [2**63 - 1])
    with pytest.raises(InputError, match="free numbers behind 9223372036854775807"):
        collection.add(random_rows(1, 5))
    assert collection.add(random_rows(1, 5), [-4]) == [-4]
    assert manifind.load(tmp_path / "c").ids.tolist()[-2:] == [2**63 - 1, -4]


def test_positions_that_have_come_to_their_end_are_said_to(living):
    set_manifest(living, "next_position", str(2**63 - 1))
    collection = manifind.load(living)
    collection.add(random_rows(1, 8), ["last"])
    with pytest.raises(CollectionError, match=str(living)):
        collection.add(random_rows(1, 9), ["one more"])
    assert manifind.load(living).ids[-1] == "last"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("versions", {}),
        ("versions", {"gradnet": None}),
        ("info", {}),
        ("info", {"seed": "x", "nodes": []}),
        ("settings", {}),
        ("settings", {"layers": [10**9], "device": "../../x"}),
        ("indexes", {"features": 3}),
        ("indexes", {"features": {"codes": "sq8"}, "x": None}),
        ("created", ""),
        ("commit", ""),
    ],
    ids=name,
)
def test_what_no_answer_depends_on_changes_no_answer(living, lived_in, queries, key, value):
    set_manifest(living, key, json.dumps(value))
    found, expected = (manifind.load(path).search(queries, 9) for path in (living, lived_in))
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("value", [1, "x", [1], True, 0.5], ids=name)
def test_a_source_that_is_no_table_is_refused(living, refusal, value):
    set_manifest(living, "source", json.dumps(value))
    assert "is damaged" in refusal(living)


def test_a_key_that_nobody_knows_is_passed_over(living):
    edit(living, "INSERT INTO manifest VALUES ('x''); DROP TABLE items;--', '1')")
    assert len(manifind.load(living)) == N + 2


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("settings", {"unheard_of": 1}),
        ("settings", {"layers": "many"}),
        ("settings", {"layers": [0]}),
        ("settings", {"learning_rate": 10**400}),
        ("settings", {"n_neighbors": -1}),
        ("settings", {"device": "../../x"}),
        ("settings", {"random_state": 1}),
        ("info", {"seed": None}),
        ("info", {"seed": -1}),
        ("info", {"seed": 2**40}),
        ("info", {"seed": [1]}),
    ],
    ids=name,
)
def test_settings_that_no_fit_could_have_had_are_not_fitted_with(living, key, value):
    change_manifest(living, key, **value)
    with pytest.raises(CollectionError, match=str(living)):
        manifind.refit(manifind.load(living))
