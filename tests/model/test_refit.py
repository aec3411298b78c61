"""Refitting: all items that are there now, in one step, and what it is triggered by; drift without a label."""

import json
import shutil

import numpy as np
import pytest

import manifind
from collection.small_collection import NAMES, D, N, files_of, fit, random_rows, segment
from manifind.collection import writer
from manifind.errors import CollectionError, InputError
from manifind.model import refit as refitting

NEW, NEW_NAMES = random_rows(12, 5), [f"new/{i}" for i in range(12)]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    path = tmp_path_factory.mktemp("refit") / "c"
    fit().save(path, NAMES, [{"i": i} for i in range(N)])
    return path


@pytest.fixture
def museum(kept, tmp_path):
    return manifind.load(shutil.copytree(kept, tmp_path / "c"))


def test_a_refit_holds_everyone_who_is_there_under_the_same_ids(museum):
    museum.add(NEW, NEW_NAMES, [{"new": i} for i in range(12)])
    museum.remove(NAMES[:5])
    manifind.refit(museum)
    again = manifind.load(museum.path, verify=True)
    assert again.ids.tolist() == museum.ids.tolist() == [*NAMES[5:], *NEW_NAMES]
    assert museum.changed == 0
    assert again.manifest["shape"]["items"] == N + 7
    assert again.metadata([NAMES[9], NEW_NAMES[4]]) == [{"i": 9}, {"new": 4}]
    assert again.info["refit"]["added"] == 12
    assert again.info["refit"]["removed"] == 5
    assert 0 <= again.info["refit"]["agreement"]["added"] <= 1
    assert len(list((museum.path / "segments").iterdir())) == 5


def test_a_refit_gives_no_number_twice(tmp_path):
    collection = fit().save(tmp_path / "c")
    collection.add(NEW[:2])
    collection.remove([N + 1])
    manifind.refit(collection)
    assert collection.add(NEW[2:3]) == [N + 2]


def test_a_refit_starts_from_the_old_network(museum):
    old = {"features": museum.features.copy(), "curve": museum.loss_curve}
    manifind.refit(museum, max_steps=0)  # no step: the old weights on the same graph
    assert museum.info["refit"]["warm"]
    np.testing.assert_allclose(museum.features @ museum.features.T, old["features"] @ old["features"].T, atol=0.2)
    cold = fit(max_steps=0).fit(random_rows(N, 0))
    warm = fit(max_steps=0).fit(random_rows(N, 0), start=fit()._weights)
    assert any(not np.array_equal(cold._weights[name], warm._weights[name]) for name in cold._weights)


def test_settings_that_change_the_network_start_it_anew(museum):
    manifind.refit(museum, layers=(6, 5), n_neighbors=4)
    assert not museum.info["refit"]["warm"]
    assert museum.settings["layers"] == [6, 5]
    assert museum.settings["n_neighbors"] == 4


def test_what_comes_and_goes_during_a_refit_is_in_it(museum, monkeypatch):
    museum.add(NEW[:4], NEW_NAMES[:4])
    other = manifind.load(museum.path)
    original = refitting.write_refit

    def meanwhile(*arguments):
        other.add(NEW[4:6], NEW_NAMES[4:6], [{"late": True}] * 2)
        other.remove([NAMES[0], NEW_NAMES[1]])
        other.update([NAMES[7]], metadata=[{"said": "late"}])
        return original(*arguments)

    monkeypatch.setattr(refitting, "write_refit", meanwhile)
    manifind.refit(museum)
    expected = [*NAMES[1:], NEW_NAMES[0], *NEW_NAMES[2:6]]
    again = manifind.load(museum.path, verify=True)
    for collection in (museum, again):
        assert collection.ids.tolist() == expected
        assert collection.metadata([NAMES[7], NEW_NAMES[4]]) == [{"i": 7, "said": "late"}, {"late": True}]
        assert collection.manifest["changes"] == {"added": 2, "removed": 2}
        assert collection.search(NEW[4:6], 1).ids[:, 0].tolist() == NEW_NAMES[4:6]
    np.testing.assert_array_equal(again.features[-2:], again.transform(NEW[4:6]))


def test_adding_with_features_of_an_old_fit_is_done_again_with_the_new(museum):
    other = manifind.load(museum.path)
    manifind.refit(museum)
    other.add(NEW, NEW_NAMES)
    museum.refresh()
    np.testing.assert_array_equal(museum.features[-12:], museum.transform(NEW))
    np.testing.assert_array_equal(other.features, museum.features)


def test_of_two_refits_the_second_hears_of_the_first_at_once(museum, monkeypatch):
    original = refitting.write_refit

    def another(*arguments):
        with pytest.raises(CollectionError, match="is being fitted by another process"):
            manifind.refit(manifind.load(museum.path))
        return original(*arguments)

    monkeypatch.setattr(refitting, "write_refit", another)
    manifind.refit(museum)


def test_a_refit_that_fails_changes_nothing(museum, monkeypatch):
    museum.add(NEW, NEW_NAMES)
    before = museum.search(NEW, 9)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "write_segments", full)
    with pytest.raises(CollectionError, match="No space left"):
        manifind.refit(museum)
    after = manifind.load(museum.path, verify=True).search(NEW, 9)
    assert after.ids.tolist() == before.ids.tolist()
    assert after.scores.tobytes() == before.scores.tobytes()


def test_a_share_of_changes_triggers_a_refit(museum):
    collection = manifind.load(museum.path, after_commit=manifind.refit_when(0.05))
    collection.add(NEW[:5], NEW_NAMES[:5])
    assert collection.changed == 5 / N
    collection.add(NEW[5:6], NEW_NAMES[5:6])
    assert collection.changed == 0
    assert "refit" in collection.info


def test_a_function_of_the_collection_triggers_a_refit(museum):
    asked = []

    def decide(collection):
        asked.append(collection.search(NEW[:1], 1).ids[0, 0])
        return len(asked) == 2

    collection = manifind.load(museum.path, after_commit=manifind.refit_when(decide))
    collection.add(NEW[:1], NEW_NAMES[:1])
    assert "refit" not in collection.info
    collection.remove([NAMES[0]])
    assert "refit" in collection.info
    assert asked == [NEW_NAMES[0]] * 2


@pytest.mark.parametrize("policy", [0, -0.1, None, "often"])
def test_a_policy_that_is_none_is_refused(policy):
    with pytest.raises(InputError, match="expected a share of items above 0, or"):
        manifind.refit_when(policy)


def test_an_interrupted_refit_goes_on(museum, tmp_path):
    museum.add(NEW, NEW_NAMES)
    whole = manifind.load(shutil.copytree(museum.path, tmp_path / "whole"))
    manifind.refit(whole, max_steps=4)

    def stop(progress):
        if progress.stage == "training" and progress.done == 3:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manifind.checkpoint.EVERY", 0.0)
        with pytest.raises(KeyboardInterrupt):
            manifind.refit(museum, max_steps=4, listener=stop, checkpoint=tmp_path / "work")
    assert any((tmp_path / "work").iterdir())
    manifind.refit(museum, max_steps=4, checkpoint=tmp_path / "work")
    assert museum.features.tobytes() == whole.features.tobytes()
    assert not (tmp_path / "work").exists()


def test_a_compressed_collection_cannot_be_refitted(museum, tmp_path):
    small = manifind.load(museum.export(tmp_path / "small", "compressed")[0])
    with pytest.raises(CollectionError, match="is compressed: it only answers"):
        manifind.refit(small)


def test_a_collection_that_nothing_was_added_to_has_not_drifted(museum):
    assert manifind.measure_drift(museum) == (0.0, None, None, None, None)
    museum.remove(NAMES[:12])
    assert manifind.measure_drift(museum).changed == 0.1


def clusters(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(6, D)) * 3
    return (centres[rng.integers(0, 6, n)] + rng.normal(size=(n, D)) * 0.3 + shift).astype(np.float32)


def test_items_of_another_kind_drift_more_than_items_of_the_same(tmp_path):
    model = manifind.GradNet(n_neighbors=5, layers=(16, 8), max_steps=20, n_components=30, guard=False, random_state=0)
    model.fit(clusters(300, 1))
    drifts = []
    for name, more in (("same", clusters(60, 2)), ("other", random_rows(60, 3) * 3)):
        collection = model.save(tmp_path / name)
        collection.add(more)
        drifts.append(manifind.measure_drift(collection))
    same, other = drifts
    assert same.changed == other.changed == 0.2
    assert same.agreement_added > other.agreement_added
    assert all(np.isfinite(value) for value in (*same, *other))
    assert manifind.measure_drift(collection) == other  # the same seed, the same answer
    json.dumps(other._asdict())


@pytest.mark.parametrize("role", ["descriptors", "lengths", "features", "graph", "model"])
def test_damage_is_neither_refitted_nor_exported_as_if_it_were_whole(museum, tmp_path, role):
    file = segment(museum.path, role)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x20
    file.write_bytes(content)
    before = files_of(museum.path)
    for write in (manifind.refit, lambda damaged: damaged.export(tmp_path / "small", "compressed")):
        with pytest.raises(CollectionError, match="is damaged"):
            write(manifind.load(museum.path))
    assert files_of(museum.path) == before
    assert not (tmp_path / "small").exists()
