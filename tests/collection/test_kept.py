"""A collection of every version, made once and kept: whatever this library becomes, it goes on answering as it did."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import manifind
from collection.small_collection import files_of, tidy
from manifind.collection.format import DATABASE, VERSION

KEPT = Path(__file__).parent / "kept"
D = 4


def rows(n, seed):
    return np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32)


def make_kept(folder=KEPT):
    """Make the collection and its answers, with the version of the library that is to be remembered:

    PYTHONPATH=tests python -c "from collection.test_kept import make_kept; make_kept()"
    """
    path = Path(folder) / f"version{VERSION}.manifind"
    settings = {"n_neighbors": 3, "layers": (6, 4), "n_anchors": 3, "n_codes": 2, "max_steps": 3, "batch_size": 8}
    model = manifind.GradNet(**settings, n_components=8, preprocess="center", random_state=0).fit(rows(12, 0))
    names = [f"rome/{number:02}.jpg" for number in range(10)] + ["paris é/1.jpg", "x'); DROP TABLE items;--"]
    fields = [{"year": 1980 + 3 * number, "tags": ["a", "b"][: number % 3]} for number in range(11)]
    collection = model.save(path, names, [*fields, None])
    late = [{"year": 2020, "place": "Rome"}, None, {"place": "Paris", "rating": 4.5}]
    collection.add(rows(3, 1), ["late/0", "late/1", "late/2"], late)
    collection.remove(["rome/04.jpg", "late/1"])
    collection.update(["rome/00.jpg"], metadata=[{"year": 1911, "ok": True}])
    part = [manifind.QueryPart(id="rome/01.jpg"), manifind.QueryPart(vector=rows(1, 5)[0], weight=-0.5)]
    collection.judgements.add(part, right=["rome/02.jpg", "late/0"], wrong=["paris é/1.jpg"])
    tidy(path)
    queries = np.concatenate([rows(4, 2), rows(12, 0)[[5]], rows(3, 1)[[2]]]).tolist()
    summary = {"queries": queries, **answers(manifind.load(path), queries)}
    (Path(folder) / f"version{VERSION}.json").write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    tidy(path)


def answers(collection, queries):
    """What it answers, as JSON has it."""
    asked = {
        "all": collection.search(queries, len(collection)),
        "three": collection.search(queries, 3),
        "where": collection.search(queries, 9, "year >= 1995 and not (tags contains 'b' or place = 'Rome')"),
        "ids": collection.search_ids(["rome/03.jpg", "late/2"], 5),
    }
    return {
        "ids": collection.ids.tolist(),
        "metadata": collection.metadata(collection.ids),
        "features": collection.features.tolist(),
        "transformed": collection.transform(queries).tolist(),
        "rankings": {name: [found.ids.tolist(), found.scores.tolist()] for name, found in asked.items()},
    }


@pytest.fixture(params=[1, 2, 3])
def kept(request, tmp_path):
    """A copy of a collection that was kept, and what it answered."""
    name = f"version{request.param}"
    summary = json.loads((KEPT / f"{name}.json").read_text())
    return shutil.copytree(next(KEPT.glob(f"{name}.[gm]*")), tmp_path / "c"), summary


def test_a_kept_collection_answers_as_it_did(kept):
    path, summary = kept
    found = answers(manifind.load(path, verify=True), summary["queries"])
    assert found["ids"] == summary["ids"]
    assert found["metadata"] == summary["metadata"]
    np.testing.assert_allclose(found["features"], summary["features"], atol=1e-6)
    np.testing.assert_allclose(found["transformed"], summary["transformed"], atol=1e-6)
    for name, (ids, scores) in summary["rankings"].items():
        assert found["rankings"][name][0] == ids
        np.testing.assert_allclose(found["rankings"][name][1], scores, atol=1e-6)


def test_a_kept_collection_is_added_to_and_removed_from(kept):
    path, summary = kept
    collection = manifind.load(path)
    collection.add(rows(2, 7), ["new/0", "new/1"], [{"year": 1}, None])
    collection.remove(["late/0", "rome/05.jpg", "new/1"])
    collection.update(["late/2"], rows(1, 8))
    again = manifind.load(path, verify=True)
    gone = {"late/0", "rome/05.jpg", "late/2"}
    assert again.ids.tolist() == [*(name for name in summary["ids"] if name not in gone), "new/0", "late/2"]
    assert again.search(rows(2, 7)[:1], 1).ids.tolist() == [["new/0"]]
    assert again.search(rows(1, 8), 1, "rating > 4").ids.tolist() == [["late/2"]]


def test_a_kept_collection_is_fitted_anew_and_keeps_its_items(kept):
    path, summary = kept
    collection = manifind.load(path)
    manifind.refit(collection)
    again = manifind.load(path, verify=True)
    assert again.info["refit"]["warm"]
    assert again.changed == 0
    assert again.ids.tolist() == summary["ids"]
    assert again.metadata(again.ids) == summary["metadata"]
    assert again.search(rows(3, 1)[[0, 2]], 1).ids.tolist() == [["late/0"], ["late/2"]]


def test_a_collection_of_version_1_stays_as_it_is_until_it_is_written_and_is_then_of_version_3(tmp_path):
    path = shutil.copytree(KEPT / "version1.gradnet", tmp_path / "c")
    before = files_of(path)
    collection = manifind.load(path, verify=True)
    assert collection.manifest["format"] == 1
    assert files_of(path) == before
    collection.update(["late/2"], metadata=[{"rating": 5}])
    assert collection.manifest == manifind.load(path, verify=True).manifest
    assert (collection.manifest["format"], collection.manifest["sequence"]) == (3, 1)
    collection.remove(["late/2"])
    assert manifind.load(path).manifest["sequence"] == 2


def test_a_handle_of_version_1_goes_on_when_another_has_written_first(tmp_path):
    path = shutil.copytree(KEPT / "version1.gradnet", tmp_path / "c")
    one, other = manifind.load(path), manifind.load(path)
    one.remove(["late/2"])
    other.remove(["late/0"])
    assert not {"late/0", "late/2"} & set(manifind.load(path, verify=True).ids.tolist())


def test_a_kept_collection_of_version_3_has_its_judgements_and_can_be_undone(tmp_path):
    collection = manifind.load(shutil.copytree(KEPT / "version3.manifind", tmp_path / "c"))
    (query,) = collection.judgements.all()
    assert (query.label, set(query.right)) == ("rome/01.jpg and not a descriptor", {"rome/02.jpg", "late/0"})
    labels = [step.label for step in collection.history()]
    assert labels == ["described 1 item", "removed 2 items", "added 3 items"]
    for _ in labels:
        collection.undo()
    assert len(collection) == 12
    assert collection.metadata(["rome/00.jpg"]) == [{"year": 1980, "tags": []}]


def test_what_is_kept_is_small_and_whole():
    for path in (*KEPT.glob("*.gradnet"), *KEPT.glob("*.manifind")):
        files = files_of(path)
        assert sum(map(len, files.values())) < 60_000
        assert {file.name for file in path.iterdir()} == {DATABASE, "segments"}
