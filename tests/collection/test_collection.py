"""A collection answers as the model did: with the user's ids, in another process, without torch."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import manifind
from collection.small_collection import NAMES, D, N, files_of, fit, random_rows
from manifind.errors import InputError

SEARCH_ELSEWHERE = """
import json, sys
import numpy as np
import manifind
collection = manifind.load(sys.argv[1], verify=True)
ranking = collection.search(np.load(sys.argv[2]), k=12)
by_id = collection.search_ids(collection.ids[:3], k=5)
features = collection.transform(np.load(sys.argv[2]))
np.savez(sys.argv[3], scores=ranking.scores, features=features, by_id=by_id.scores)
print(json.dumps([ranking.ids.tolist(), by_id.ids.tolist()]))
assert "torch" not in sys.modules, "torch was imported"
"""


@pytest.fixture(scope="module")
def collection(pristine):
    return manifind.load(pristine)


def test_another_process_gives_the_same_answers_without_torch(model, pristine, queries, tmp_path):
    np.save(tmp_path / "queries.npy", queries)
    arguments = [pristine, tmp_path / "queries.npy", tmp_path / "answers.npz"]
    done = subprocess.run(
        [sys.executable, "-c", SEARCH_ELSEWHERE, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
    )
    ids, by_id = json.loads(done.stdout)
    found, expected = np.load(tmp_path / "answers.npz"), model.search(queries, k=12)
    assert ids == [[NAMES[i] for i in row] for row in expected.ids]
    np.testing.assert_array_equal(found["scores"], expected.scores)
    np.testing.assert_array_equal(found["features"], model.transform(queries))
    first = model.search(random_rows(N, 0)[:3], k=5)
    assert by_id == [[NAMES[i] for i in row] for row in first.ids]
    np.testing.assert_array_equal(found["by_id"], first.scores)


def test_save_opens_what_it_has_written(model, queries, tmp_path):
    opened = model.save(tmp_path / "c", NAMES)
    again = manifind.load(str(tmp_path / "c"))
    for collection in (opened, again):
        assert len(collection) == N
        np.testing.assert_array_equal(collection.features, model.features_)
        np.testing.assert_array_equal(collection.search(queries, 7).scores, model.search(queries, 7).scores)
    assert repr(again) == f"<Collection {tmp_path / 'c'}: {N} items, {D} -> {model.features_.shape[1]} dimensions>"


@pytest.mark.parametrize(
    "settings",
    [
        {"preprocess": "center"},
        {"preprocess": "whiten"},
        {"preprocess": "none", "similarity": "gaussian", "query_passes": 2},
        {"similarity": "cosine", "n_query_neighbors": None, "n_components": 5},
        {"max_steps": 0},
    ],
    ids=["centre", "whitened", "two passes", "cosine and reduced", "no step"],
)
def test_every_setting_that_answering_needs_is_kept(settings, queries, tmp_path):
    fitted = fit(**settings)
    collection = fitted.save(tmp_path / "c")
    expected = fitted.search(queries, k=N)
    found = collection.search(queries, k=N)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)
    for name, value in settings.items():
        assert collection.settings[name] == value


def test_truncation_is_kept(queries, tmp_path):
    fitted = manifind.GradNet(n_neighbors=3, layers=(8, 4), n_anchors=4, max_steps=2, truncation=20, random_state=0)
    fitted.fit(random_rows(N, 0), queries=queries[:3])
    assert 0 < fitted.info_["nodes"] < N
    found, expected = fitted.save(tmp_path / "c").search(queries, k=N), fitted.search(queries, k=N)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_a_single_dimension_is_kept(tmp_path):
    X = np.linspace(-3, 5, 40, dtype=np.float32)[:, None]
    fitted = manifind.GradNet(n_neighbors=3, layers=(8, 4), n_anchors=4, max_steps=2, random_state=0).fit(X)
    found = fitted.save(tmp_path / "c").search(X + np.float32(0.05), k=5)
    np.testing.assert_array_equal(found.ids, fitted.search(X + np.float32(0.05), k=5).ids)


def test_settings_of_any_make_of_number_are_kept(model, tmp_path):
    collection = fit(layers=(np.int64(8), 4), dropout=np.float32(0.25)).save(tmp_path / "c")
    assert collection.settings["layers"] == [8, 4]
    assert collection.settings["dropout"] == 0.25


def test_the_manifest_says_what_was_fitted(model, collection):
    assert collection.info == json.loads(json.dumps(model.info_))
    assert collection.settings == json.loads(
        json.dumps({k: v for k, v in model.get_params().items() if k not in ("random_state", "verbose")})
    )
    assert collection.manifest["versions"]["manifind"] == manifind.__version__
    np.testing.assert_array_equal(collection.loss_curve, model.loss_curve_)
    assert set(collection.segment_bytes) == {"descriptors", "lengths", "features", "graph", "model"}


def test_positions_are_the_ids_where_none_are_given(model, queries, tmp_path):
    collection = model.save(tmp_path / "c")
    assert collection.ids.tolist() == list(range(N))
    np.testing.assert_array_equal(collection.search(queries, 4).ids, model.search(queries, 4).ids)


@pytest.mark.parametrize(
    "ids",
    [
        [f"é{i}/猫 🐱\n{i}" for i in range(N)],
        [-(2**63) + i for i in range(N)],
        [str(i) for i in range(N)],
        np.random.default_rng(0).permutation(10**6)[:N],
        ["x" * (i + 1) for i in range(N)],
    ],
    ids=["unicode", "large negative", "digits", "numpy", "lengths"],
)
def test_ids_come_back_as_they_were_given(model, queries, ids, tmp_path):
    model.save(tmp_path / "c", ids)
    collection = manifind.load(tmp_path / "c", verify=True)
    assert collection.ids.tolist() == list(ids)
    positions = model.search(queries, 3).ids
    assert collection.search(queries, 3).ids.tolist() == [[ids[i] for i in row] for row in positions]
    assert collection.search_ids([ids[5], ids[0]], 1).ids.tolist() == [[ids[5]], [ids[0]]]


@pytest.mark.parametrize("ids", [NAMES[:-1], [*NAMES[:-1], NAMES[0]], [*NAMES[:-1], 5], [1.5] * N, ["\ud800"] * N])
def test_wrong_ids_are_refused_before_anything_is_written(model, ids, tmp_path):
    with pytest.raises(InputError):
        model.save(tmp_path / "c", ids)
    assert list(tmp_path.iterdir()) == []


def test_search_by_id_is_search_by_the_row_of_that_item(collection):
    wanted = [NAMES[40], NAMES[2], NAMES[40]]
    found, rows = collection.search_ids(wanted, 6), collection.search(random_rows(N, 0)[[40, 2, 40]], 6)
    np.testing.assert_array_equal(found.ids, rows.ids)
    np.testing.assert_array_equal(found.scores, rows.scores)
    assert found.ids[:, 0].tolist() == wanted


def test_search_by_id_takes_numpy_values_and_no_ids_at_all(model, collection, tmp_path):
    assert collection.search_ids(np.array(NAMES[:2]), 3).ids.shape == (2, 3)
    assert model.save(tmp_path / "c").search_ids(np.array([4, 9]), 1).ids.tolist() == [[4], [9]]
    assert collection.search_ids([], 3).ids.shape == (0, 3)


@pytest.mark.parametrize("wanted", ["nobody", 3, None, 0.0, ["a", "b"], b"pictures/003.jpg", "Pictures/003.jpg"])
def test_an_unknown_id_is_refused_with_its_value_and_an_example(collection, wanted):
    with pytest.raises(InputError) as refusal:
        collection.search_ids([NAMES[0], wanted], 3)
    assert f"no item with the id {wanted!r} in {collection.path}" in refusal.value.problem
    assert repr(NAMES[0]) in refusal.value.hint


@pytest.mark.parametrize("wanted", [N, -1, "3", True, 3.0, 2**70, [1, 2], None])
def test_an_id_of_another_type_is_no_id(model, wanted, tmp_path):
    collection = model.save(tmp_path / "c")
    with pytest.raises(InputError, match="no item with the id") as refusal:
        collection.search_ids([wanted], 3)
    assert "such as 0" in refusal.value.hint


def test_wrong_queries_and_wrong_k_are_refused(collection):
    with pytest.raises(InputError, match=f"3 features, but it is expecting {D}"):
        collection.search(np.ones((1, 3)))
    with pytest.raises(InputError, match="NaN"):
        collection.transform(np.full((1, D), np.nan))
    for k in (0, -1, True, 1.5, None):
        with pytest.raises(InputError, match=f"k = {k}"):
            collection.search(np.ones((1, D)), k)
        with pytest.raises(InputError, match=f"k = {k}"):
            collection.search_ids(NAMES[:1], k)


def test_a_search_by_something_else_is_refused(collection):
    with pytest.raises(InputError, match="by = 'colours'; expected one of 'features', 'descriptors'"):
        collection.search(np.ones((1, D)), by="colours")


def test_nothing_in_a_collection_can_be_written_to_by_accident(collection):
    with pytest.raises(ValueError, match="read-only"):
        collection.features[0, 0] = 1


@pytest.mark.parametrize("name", ["a b?c#d%41&e.manifind", "猫.manifind", "mode=rw", "..hidden"])
def test_the_path_may_have_any_name(model, queries, name, tmp_path):
    model.save(tmp_path / name, NAMES)
    assert manifind.load(tmp_path / name).search(queries, 1).ids.shape == (7, 1)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_relative_paths_and_missing_folders_are_fine(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model.save("some/where/c")
    assert len(manifind.load("some/where/c")) == N


def test_a_collection_that_was_copied_elsewhere_is_the_same(collection, saved, answers):
    assert answers(manifind.load(saved)) == answers(collection)


def test_reading_changes_no_file(saved, answers):
    before = files_of(saved)
    answers(manifind.load(saved, verify=True))
    assert files_of(saved) == before
