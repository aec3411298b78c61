"""Vectors are indexed from files, arrays, tensors and tables, and a collection follows its source."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import manifind
from collection.small_collection import NAMES, N, random_rows
from manifind.errors import InputError

X = random_rows(N, 0)
SETTINGS = {"n_neighbors": 3, "layers": (8, 4), "n_anchors": 4, "max_steps": 2, "batch_size": 8, "n_components": 30}
COLUMNS = [f"x{i}" for i in range(X.shape[1])]


def index(source, path, *args, **options):
    return manifind.index_vectors(source, path, *args, settings=SETTINGS, **options)


def table(ids=NAMES):
    return pd.DataFrame(X, columns=COLUMNS, index=list(ids))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c.manifind"


def test_a_file_an_array_a_tensor_and_a_table_make_the_same_collection(tmp_path):
    np.savez(tmp_path / "x.npz", vectors=X, ids=np.array(NAMES))
    nested = pd.DataFrame({"v": list(X)}, index=NAMES)
    made = [
        index(tmp_path / "x.npz", tmp_path / "0"),
        index(X, tmp_path / "1", NAMES),
        index(torch.tensor(X, requires_grad=True), tmp_path / "2", NAMES),
        index(table(), tmp_path / "3", vectors=COLUMNS),
        index(table(), tmp_path / "4"),
        index(nested, tmp_path / "5", vectors="v"),
    ]
    for one in made:
        assert one.is_new
        assert one.counts["added"] == N
        np.testing.assert_array_equal(one.collection.features, made[0].collection.features)
        assert list(one.collection.ids) == list(NAMES)


def test_the_other_columns_of_a_table_are_metadata_and_missing_values_are_left_out(path):
    df = table().assign(year=range(N), place=["Rome"] * N, seen=pd.Timestamp("2020-01-02 03:04"))
    df["note"] = [None, np.nan, *["x"] * (N - 2)]
    museum = index(df, path, vectors=COLUMNS).collection
    assert museum.metadata(NAMES[:3]) == [
        {"year": 0, "place": "Rome", "seen": "2020-01-02T03:04:00"},
        {"year": 1, "place": "Rome", "seen": "2020-01-02T03:04:00"},
        {"year": 2, "place": "Rome", "seen": "2020-01-02T03:04:00", "note": "x"},
    ]
    df.loc[NAMES[2], "note"] = None
    df.loc[NAMES[0], "year"] = 99
    outcome = index(df, path, vectors=COLUMNS)
    assert (outcome.counts["described"], outcome.counts["unchanged"]) == (2, N - 2)
    first, _, third = outcome.collection.metadata(NAMES[:3])
    assert first["year"] == 99
    assert "note" not in third
    assert index(df, path, vectors=COLUMNS).counts["unchanged"] == N


def test_a_collection_without_ids_is_updated_by_position(path):
    index(X, path)
    outcome = index(np.concatenate([X, random_rows(1, 5)]), path)
    assert outcome.counts == {"added": 1, "removed": 0, "changed": 0, "described": 0, "unchanged": N}
    assert outcome.collection.ids.tolist()[-1] == N


@pytest.mark.parametrize("form", ["file", "mapping", "sequence"])
def test_metadata_come_from_a_file_a_mapping_or_in_order(path, tmp_path, form):
    by_id = {name: {"i": i} for i, name in enumerate(NAMES)}
    (tmp_path / "m.jsonl").write_text("\n".join(json.dumps({"id": name, **f}) for name, f in by_id.items()))
    metadata = {"file": tmp_path / "m.jsonl", "mapping": by_id, "sequence": list(by_id.values())}[form]
    assert index(X, path, NAMES, metadata=metadata).collection.metadata([NAMES[7]]) == [{"i": 7}]


def test_given_metadata_go_before_the_columns_of_a_table(path):
    df = table().assign(year=1990, place="Rome")
    museum = index(df, path, vectors=COLUMNS, metadata={NAMES[0]: {"year": 5}}).collection
    assert museum.metadata(NAMES[:2]) == [{"year": 5, "place": "Rome"}, {"year": 1990, "place": "Rome"}]


def test_a_dry_run_counts_and_changes_nothing(path):
    assert index(X, path, NAMES, dry_run=True).collection is None
    assert not path.exists()
    commit = index(X, path, NAMES).collection.version.manifest.commit
    would = index(X[:-1], path, NAMES[:-1], dry_run=True)
    assert would.counts["removed"] == 1
    assert manifind.load(path).version.manifest.commit == commit


def test_many_removals_need_permission(path):
    index(X, path, NAMES)
    half = N // 2
    assert index(X[:half], path, NAMES[:half], dry_run=True).needs_permission
    with pytest.raises(InputError, match="not in the array") as refused:
        index(X[:half], path, NAMES[:half])
    assert "allow_removals=True" in refused.value.hint
    assert len(manifind.load(path)) == N
    assert len(index(X[:half], path, NAMES[:half], allow_removals=True).collection) == half


def test_other_settings_need_a_refit(path):
    index(X, path, NAMES)
    with pytest.raises(InputError, match="n_neighbors can only change when it is fitted anew") as refused:
        manifind.index_vectors(X, path, NAMES, settings={"n_neighbors": 4})
    assert "refit=True" in refused.value.hint
    outcome = manifind.index_vectors(X, path, NAMES, settings={"n_neighbors": 4}, seed=3, refit=True)
    assert outcome.refitted
    assert outcome.collection.settings["n_neighbors"] == 4


def test_it_is_refitted_from_the_share_of_changes_that_was_given(path):
    index(X, path, NAMES)
    source, ids = np.concatenate([X, random_rows(2, 5)]), [*NAMES, "a", "b"]
    assert not index(source, path, ids, refit_when=3 / N).refitted
    assert index(source, path, ids, refit_when=2 / N).refitted
    assert manifind.load(path).changed == 0


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (X, {"vectors": ["a"]}, "which has no named columns"),
        (table(), {"vectors": ["x0", "y"]}, "no column 'y'"),
        (pd.DataFrame({"v": [[1, 2], [1], [3, 4]]}), {"vectors": "v"}, "lists of numbers of one length"),
        (pd.DataFrame({"v": ["a", "b", "c"]}), {"vectors": "v"}, "two dimensions|real numbers"),
        (table([*NAMES[:-1], NAMES[0]]), {}, "more than one item"),
        (table(), {"metadata": {"nobody": {}}}, "'nobody', which no vector has"),
        (table(), {"metadata": [{}]}, "1 entry of metadata"),
        (table().assign(what=[object()] * N), {"vectors": COLUMNS}, "the metadata 'what' is a object"),
        (X[0], {}, "two dimensions"),
    ],
)
def test_what_cannot_be_indexed_is_refused_before_anything_is_written(path, source, options, message):
    with pytest.raises(InputError, match=message):
        index(source, path, **options)
    assert not path.exists()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_the_collection_holds_what_its_source_holds_whatever_was_there_before(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "c"
    index(X, path, NAMES)
    rows = data.draw(st.lists(st.integers(0, N + 4), min_size=1, max_size=N, unique=True))
    changed = set(data.draw(st.lists(st.sampled_from(rows), unique=True)))
    every, names = np.concatenate([X, random_rows(5, 9)]), [*NAMES, *(f"new {i}" for i in range(5))]
    source = np.stack([every[row] + (row in changed) for row in rows])
    ids = [names[row] for row in rows]
    outcome = index(source, path, ids, allow_removals=True)
    assert sorted(outcome.collection.ids) == sorted(ids)
    kept = [row for row in rows if row < N]
    assert outcome.counts == {
        "added": len(rows) - len(kept),
        "removed": N - len(kept),
        "changed": len(changed & set(kept)),
        "described": 0,
        "unchanged": len(set(kept) - changed),
    }
    assert index(source, path, ids, allow_removals=True).counts["unchanged"] == len(rows)
