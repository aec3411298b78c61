"""Judged queries: kept through everything that happens to a collection, and scored for features and descriptors."""

import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import manifind
from collection.crafting import rows_of
from collection.small_collection import NAMES, D, N, random_rows
from images.painted import paint
from manifind import QueryPart
from manifind.collection.format import DATABASE
from manifind.errors import CollectionError, InputError
from manifind.model.index_folder import index_folder

ITEM = QueryPart(id=NAMES[0])


@pytest.fixture(scope="module")
def original(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("judged") / "c"
    model.save(path, NAMES)
    return path


@pytest.fixture
def collection(original, tmp_path):
    return manifind.load(shutil.copytree(original, tmp_path / "c"))


def judged(collection):
    return [(one.label, set(one.right), set(one.wrong)) for one in manifind.load(collection.path).judgements.all()]


def test_judgements_add_up_and_can_be_taken_back(collection):
    first = collection.judgements.add(ITEM, right=NAMES[1:3], wrong=[NAMES[3]])
    assert (set(first.right), first.wrong) == ({NAMES[1], NAMES[2]}, (NAMES[3],))
    collection.judgements.add(ITEM, right=[NAMES[3]], wrong=[NAMES[4]], neither=[NAMES[1]])
    assert judged(collection) == [(NAMES[0], {NAMES[2], NAMES[3]}, {NAMES[4]})]
    last = collection.judgements.add(ITEM, neither=NAMES[1:5])
    assert last.right == last.wrong == ()
    assert judged(collection) == []


def test_a_query_is_known_again_whatever_the_order_of_its_parts(collection):
    vector = random_rows(1, 3)[0]
    parts = [QueryPart(vector=vector), QueryPart(id=NAMES[5], weight=-0.5)]
    collection.judgements.add(parts, right=[NAMES[1]])
    assert collection.judgements.of(parts[::-1]).right == (NAMES[1],)
    assert collection.judgements.of([parts[0], QueryPart(id=NAMES[5])]).right == ()
    assert collection.judgements.of(QueryPart(vector=vector.astype(np.float64))).right == ()
    assert judged(collection)[0][0] == f"a descriptor and not {NAMES[5]}"


def test_a_stored_query_finds_what_it_found(collection):
    parts = [QueryPart(vector=random_rows(1, 3)[0], weight=2), QueryPart(id=NAMES[5])]
    collection.judgements.add(parts, right=[NAMES[1]])
    (stored,) = manifind.load(collection.path).judgements.all()
    for by in ("features", "descriptors"):
        found, expected = (collection.search_combined(one, 20, by=by) for one in (stored.parts, parts))
        assert found.ids.tolist() == expected.ids.tolist()


def test_judgements_stay_through_changes_undo_and_refits(collection):
    collection.judgements.add(ITEM, right=NAMES[1:3], wrong=NAMES[3:5])
    expected = judged(collection)
    collection.remove([NAMES[1]])
    collection.undo()
    collection.add(random_rows(2, 1), ["new/1", "new/2"])
    manifind.refit(collection)
    assert judged(collection) == expected
    assert manifind.load(collection.path, verify=True).judgements.scores().n_queries == 1


def test_another_collection_in_the_same_place_has_no_judgements(collection, other_model):
    collection.judgements.add(ITEM, right=[NAMES[1]])
    other_model.save(collection.path, NAMES, overwrite=True)
    assert judged(collection) == []
    manifind.load(collection.path, verify=True)


def test_items_that_are_gone_do_not_count(collection):
    collection.judgements.add(ITEM, right=NAMES[1:3], wrong=NAMES[3:5])
    collection.remove(NAMES[3:5])
    assert collection.judgements.scores() is None
    collection.undo()
    collection.remove([NAMES[0]])
    assert collection.judgements.scores() is None


def test_who_judges_what_is_not_there_is_told_so(collection):
    with pytest.raises(InputError, match="there is no item with the id 'nobody'"):
        collection.judgements.add(ITEM, right=["nobody"])
    with pytest.raises(InputError, match="there is no item with the id 'nobody'"):
        collection.judgements.add(QueryPart(id="nobody"), right=NAMES[:1])
    assert judged(collection) == []


@pytest.mark.parametrize("vector", [np.ones(D + 1), np.full(D, np.nan), np.full(D, 1e300), np.ones((2, D)), ["x"] * D])
def test_a_query_that_cannot_be_asked_cannot_be_judged(collection, vector):
    with pytest.raises(InputError):
        collection.judgements.add(QueryPart(vector=vector), right=NAMES[:1])
    assert judged(collection) == []


def average_precision(order, right):
    found, total = 0, 0.0
    for place, item in enumerate(order, 1):
        if item in right:
            found += 1
            total += found / place
    return 100 * total / len(right)


def test_the_scores_are_the_mean_average_precision_over_the_judged_items(collection):
    rng, values = np.random.default_rng(0), {"features": [], "descriptors": []}
    for query in range(0, 30, 3):
        items = rng.choice(np.setdiff1d(np.arange(N), [query]), 12, replace=False)
        right, wrong = [NAMES[row] for row in items[:4]], [NAMES[row] for row in items[4:]]
        part = QueryPart(id=NAMES[query]) if query % 2 else QueryPart(vector=random_rows(1, query)[0])
        collection.judgements.add(part, right, wrong)
        for by, found in values.items():
            order = collection.search_combined([part], N, by=by).ids[0].tolist()
            found.append(average_precision([item for item in order if item in (*right, *wrong)], right))
    scores = collection.judgements.scores()
    assert scores.n_queries == 10
    assert scores.gradnet.mean == pytest.approx(np.mean(values["features"]))
    assert scores.knn.mean == pytest.approx(np.mean(values["descriptors"]))
    assert scores.gain.mean == pytest.approx(scores.gradnet.mean - scores.knn.mean)
    assert scores.gradnet.low <= scores.gradnet.mean <= scores.gradnet.high


def test_a_query_is_not_among_its_own_results(collection):
    collection.judgements.add(ITEM, right=[NAMES[0]], wrong=[NAMES[3]])
    assert collection.judgements.scores() is None


def test_words_and_parts_of_pictures_are_stored_as_descriptors(tmp_path):
    for number in range(6):
        paint(tmp_path / "photos" / f"{number}.png", number)
    index_folder(tmp_path / "photos", tmp_path / "c", "pixels", {"n_neighbors": 3, "max_steps": 1})
    collection = manifind.load(tmp_path / "c")
    part = QueryPart(picture=tmp_path / "photos" / "2.png", crop=(0, 0, 0.5, 1))
    collection.judgements.add(part, right=["1.png"], wrong=["3.png"])
    (tmp_path / "photos" / "2.png").unlink()
    (stored,) = collection.judgements.all()
    assert stored.label == "2.png"
    assert stored.parts[0].vector.shape == (1024,)
    assert collection.judgements.scores().n_queries == 1


@pytest.mark.parametrize(
    ("parts", "vectors"),
    [
        ("[]", b""),
        ("{}", b""),
        ("[1]", b""),
        ('[{"id": "x"}]', b""),
        ('[{"id": "x", "weight": 0}]', b""),
        ('[{"id": "x", "weight": 1e999}]', b""),
        ('[{"weight": 1}]', b"12345"),
        ('[{"weight": 1}]', b""),
        ('[{"weight": 1, "picture": "/etc/passwd"}]', b"1234"),
        ('[{"id": ["x"], "weight": 1, "crop": 3}]', b""),
        ("[" * 200 + "]" * 200, b""),
    ],
)
def test_crafted_judgements_are_refused_in_words(collection, parts, vectors):
    collection.judgements.add(ITEM, right=[NAMES[1]])
    with closing(sqlite3.connect(collection.path / DATABASE)) as database:
        database.execute("UPDATE queries SET parts = ?, vectors = ?", (parts, vectors))
        database.commit()
    sign_notes(collection.path)
    with pytest.raises(CollectionError, match="is damaged: a judged query cannot be read"):
        manifind.load(collection.path).judgements.all()


def sign_notes(path):
    """Make the recorded sums fit, as someone who means harm would."""
    from collection.small_collection import edit
    from manifind.collection.format import NOTES, RowSum

    total = RowSum()
    for table in NOTES:
        total.add_notes(table, rows_of(path, f"SELECT * FROM {table}"))
    edit(path, "UPDATE manifest SET value = ? WHERE key = 'notes'", f'"{total}"')


def test_a_query_of_another_width_is_refused_when_it_is_scored(collection):
    collection.judgements.add(QueryPart(vector=np.ones(D)), right=[NAMES[1]], wrong=[NAMES[2]])
    with closing(sqlite3.connect(collection.path / DATABASE)) as database:
        database.execute("UPDATE queries SET vectors = ?", (np.ones(D + 1, "<f4").tobytes(),))
        database.commit()
    sign_notes(collection.path)
    with pytest.raises(InputError, match="7"):
        manifind.load(collection.path).judgements.scores()
