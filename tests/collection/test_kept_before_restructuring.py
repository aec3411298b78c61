"""Collections written before the modules were moved and renamed: they open, answer as before, and take changes."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import manifind
from collection.small_collection import files_of, tidy
from images.painted import paint

EARLIER = Path(__file__).parent / "kept"
KEPT = EARLIER / "before_restructuring"
N, D = 40, 6
LONG = [2**63 - 1, -(2**63), 10**18, 9_007_199_254_740_993, 0, -7]  # 19 digits, and more than a float can tell apart
NAMES = ["plain", "fields", "numbers", "changed", "compressed", "compressed_pq", "photos"]
EARLIER_NAMES = ["version1.gradnet", "version2.gradnet"]
QUICK = {"n_neighbors": 3, "layers": (6, 4), "n_anchors": 3, "max_steps": 3, "batch_size": 8, "n_components": 8}


def rows(n, seed):
    return np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32)


def fit(n=N):
    """A model of items on a plane: of noise it would learn nothing, and answer as plain neighbours do."""
    plane = rows(n, 0)[:, :2] @ rows(2, 5)
    return manifind.GradNet(**QUICK, random_state=0).fit(plane + rows(n, 6) / 20)


def fields(n):
    return [{"year": 1980 + number, "tags": ["a", "b"][: number % 3], "place": "Rome é"} for number in range(n)]


def make_kept(folder=KEPT):
    """Make the collections and their answers, with the version of the library that is to be remembered:

    PYTHONPATH=tests python -c "from collection.test_kept_before_restructuring import make_kept; make_kept()"
    """
    folder.mkdir(exist_ok=True)
    fit().save(folder / "plain")
    fit().save(folder / "fields", [f"rome/{number:02}.jpg" for number in range(N)], fields(N))
    fit().save(folder / "numbers", [*LONG, *range(100, 100 + N - len(LONG))])
    changed = fit().save(folder / "changed", metadata=fields(N))
    changed.add(rows(4, 1), [10**18 + number for number in range(4)], [{"year": 2020}, None, None, None])
    changed.remove([3, 5, 10**18 + 1])
    changed.update([7], rows(1, 2))
    changed.update([8], metadata=[{"year": 1911}])
    manifind.load(folder / "fields").export(folder / "compressed", "compressed")
    fit(260).save(folder / "large").export(folder / "compressed_pq", "compressed", codes="pq")
    shutil.rmtree(folder / "large")
    painted, absolute = paint_few(folder / "painted"), Path.absolute
    with pytest.MonkeyPatch.context() as patch:  # the collection remembers where its pictures were: nowhere real
        patch.setattr(Path, "absolute", lambda path: Path("/painted") if path == painted else absolute(path))
        manifind.index_folder(painted, folder / "photos", "pixels", QUICK)
    shutil.rmtree(painted)
    summary = {"answers": {name: answers(manifind.load(kept_at(name))) for name in all_names()}}
    (folder / "answers.json").write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    for name in all_names():
        tidy(kept_at(name))


def paint_few(folder):
    for number in range(8):
        paint(folder / f"{number}.png", number)
        os.utime(folder / f"{number}.png", (1_700_000_000, 1_700_000_000))
    return folder


def all_names():
    return [*NAMES, *EARLIER_NAMES]


def kept_at(name):
    return (EARLIER if name in EARLIER_NAMES else KEPT) / name


def bits(values):
    """The float32 numbers of an array, bit for bit, a row each."""
    return [row.tobytes().hex() for row in np.atleast_2d(np.asarray(values, "<f4"))]


def numbers(texts):
    return np.array([np.frombuffer(bytes.fromhex(text), "<f4") for text in texts])


def queries_of(collection):
    width = collection.manifest["shape"]["dimension"]
    return np.random.default_rng(9).normal(size=(4, width)).astype(np.float32)


def answers(collection):
    """What a collection answers, as JSON has it."""
    queries = queries_of(collection)
    asked = {"three": collection.search(queries, 3), "all": collection.search(queries, len(collection))}
    asked["ids"] = collection.search_ids(collection.ids[[0, 2, -1]].tolist(), 5)
    if any("year" in entry for entry in collection.metadata(collection.ids)):
        asked["where"] = collection.search(queries, 5, "year >= 1985 and not tags contains 'b'")
    return {
        "ids": collection.ids.tolist(),
        "metadata": collection.metadata(collection.ids),
        "transformed": bits(collection.transform(queries)),
        "rankings": {name: [found.ids.tolist(), bits(found.scores)] for name, found in asked.items()},
    }


@pytest.fixture(scope="module")
def summary():
    return json.loads((KEPT / "answers.json").read_text())


@pytest.fixture(params=[*NAMES, *EARLIER_NAMES])
def kept(request, tmp_path, summary):
    """A copy of a collection, and what it answered."""
    return shutil.copytree(kept_at(request.param), tmp_path / request.param), summary["answers"][request.param]


def test_it_answers_as_before(kept):
    """Ids exactly; numbers to 1e-5, since another kind of processor sums in another order."""
    path, before = kept
    now = answers(manifind.load(path, verify=True))
    assert (now["ids"], now["metadata"]) == (before["ids"], before["metadata"])
    np.testing.assert_allclose(numbers(now["transformed"]), numbers(before["transformed"]), atol=1e-5)
    for name, (ids, scores) in before["rankings"].items():
        assert now["rankings"][name][0] == ids
        np.testing.assert_allclose(numbers(now["rankings"][name][1]), numbers(scores), atol=1e-5)


def test_reading_it_changes_no_byte(kept):
    path, _ = kept
    before = files_of(path)
    answers(manifind.load(path, verify=True))
    assert files_of(path) == before


@pytest.fixture(params=["plain", "fields", "numbers", "changed", "photos"])
def changeable(request, tmp_path, summary):
    return shutil.copytree(KEPT / request.param, tmp_path / "c"), summary["answers"][request.param]


def test_items_come_go_and_change_their_fields(changeable):
    path, before = changeable
    collection = manifind.load(path)
    new = [2**62, 2**62 + 1] if isinstance(before["ids"][0], int) else ["new é/0", "new/1"]
    vectors = queries_of(collection)[:2]
    collection.add(vectors, new, [{"year": 1850}, None])
    collection.remove([before["ids"][1]])
    collection.update([before["ids"][2]], metadata=[{"year": 1851}])
    again = manifind.load(path, verify=True)
    assert again.ids.tolist() == [before["ids"][0], *before["ids"][2:], *new]
    assert again.search(vectors, 1).ids.ravel().tolist() == new
    found = again.search(vectors, 5, "year < 1900")
    assert set(found.ids.ravel().tolist()) == {new[0], before["ids"][2]}


def test_it_is_fitted_anew_and_keeps_its_items(changeable):
    path, before = changeable
    manifind.refit(manifind.load(path))
    again = manifind.load(path, verify=True)
    assert again.ids.tolist() == before["ids"]
    assert again.metadata(again.ids) == before["metadata"]
    assert again.search_ids(before["ids"][:3], 1).ids.ravel().tolist() == before["ids"][:3]


@pytest.mark.parametrize("name", ["compressed", "compressed_pq"])
def test_a_compressed_one_refuses_changes(tmp_path, name):
    path = shutil.copytree(KEPT / name, tmp_path / "c")
    collection = manifind.load(path)
    with pytest.raises(manifind.CollectionError, match="only answers"):
        collection.remove(collection.ids[:1].tolist())


def test_a_folder_of_pictures_is_brought_up_to_date(tmp_path):
    path, folder = shutil.copytree(KEPT / "photos", tmp_path / "c"), paint_few(tmp_path / "painted")
    paint(folder / "new.png", 77)
    (folder / "3.png").unlink()
    outcome = manifind.index_folder(folder, path)
    again = manifind.load(path, verify=True)
    assert (outcome.counts["added"], outcome.counts["removed"], outcome.counts["unchanged"]) == (1, 1, 7)
    assert sorted(again.ids.tolist()) == [*(f"{number}.png" for number in range(8) if number != 3), "new.png"]


def test_ids_of_19_digits_are_told_apart(tmp_path):
    path = shutil.copytree(KEPT / "numbers", tmp_path / "c")
    collection = manifind.load(path)
    assert collection.ids[: len(LONG)].tolist() == LONG
    assert collection.search_ids(LONG, 1).ids.ravel().tolist() == LONG


def test_what_is_kept_is_small():
    for name in NAMES:
        assert sum(map(len, files_of(KEPT / name).values())) < 200_000
