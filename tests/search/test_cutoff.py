"""How sure results are: by hand, as properties, and that strangers and relatives are told apart end to end."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifind import GradNet, load
from manifind.collection.searchable import QueryPart
from manifind.errors import InputError
from manifind.ranking import Ranking
from manifind.search.cutoff import Cutoff, RatedRanking, measure_cutoff, read_cutoff

ELEVEN = tuple(float(step) for step in range(11))
PLAIN = Cutoff(0.5, 10.0, ELEVEN)


def groups(n_groups=12, per_group=12, d=16, seed=0):
    """Clusters around far apart centres."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n_groups, d)), per_group, axis=0) + 0.05 * rng.normal(size=(n_groups * per_group, d))
    return X.astype(np.float32), np.repeat(np.arange(n_groups), per_group)


@pytest.fixture(scope="module")
def fitted():
    X, labels = groups()
    return GradNet(random_state=0, max_steps=30).fit(X), X, labels


@pytest.fixture(scope="module")
def collection(fitted, tmp_path_factory):
    return fitted[0].save(tmp_path_factory.mktemp("cut") / "groups.manifind")


def test_middle_parts_two_heaps_by_hand():
    scores = np.array([[0.9, 1.0, 0.1, 0.0]], dtype=np.float32)
    found = measure_cutoff(scores, np.arange(101, dtype=np.float32))
    assert found.middle == pytest.approx(0.5, abs=0.01)
    assert found.steepness == pytest.approx(100)  # 0.9 / 0.05^2, which is more than the steepest
    assert found.distances == pytest.approx(tuple(range(90, 101)))


def test_middle_lies_between_a_narrow_heap_and_a_wide_one():
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(0, 0.03, 6000), rng.normal(0.6, 0.2, 3000)]).astype(np.float32)
    found = measure_cutoff(scores, np.ones(3, dtype=np.float32))
    wrong = (scores[:6000] >= found.middle).mean() + (scores[6000:] < found.middle).mean()
    otsu_wrong = (scores[:6000] >= 0.33).mean() + (scores[6000:] < 0.33).mean()
    assert 0.1 < found.middle < 0.3
    assert wrong < otsu_wrong


@pytest.mark.parametrize("scores", [[], [0.3], [0.3, 0.3, 0.3]])
def test_scores_that_cannot_be_parted_still_give_a_cutoff(scores):
    found = measure_cutoff(np.array(scores, dtype=np.float32), np.ones(3, dtype=np.float32))
    assert np.isfinite(found.middle)
    assert found.steepness == 100


def test_certainty_is_a_half_in_the_middle_and_nothing_for_a_stranger():
    scores = np.array([[0.9, 0.5, 0.1]], dtype=np.float32)
    expected = [[1 / (1 + math.exp(-10 * (s - 0.5))) for s in (0.9, 0.5, 0.1)]]
    np.testing.assert_allclose(PLAIN.certainty(scores), expected, rtol=1e-5)
    assert PLAIN.certainty(scores, np.zeros(1, dtype=np.float32)).max() == 0


def test_familiarity_falls_from_the_loneliest_tenth_to_the_farthest_item():
    found = PLAIN.familiarity(np.array([0.0, 5.0, 10.0, 99.0], dtype=np.float32))
    np.testing.assert_allclose(found, [1, 0.5, 0, 0], atol=1e-6)


@given(
    st.lists(st.floats(-1, 1, width=32), min_size=0, max_size=40),
    st.lists(st.floats(0, 1e3, width=32), min_size=1, max_size=30),
)
def test_whatever_was_measured_is_read_again_and_never_rises_along_a_row(scores, nearest):
    found = measure_cutoff(np.array([scores], dtype=np.float32), np.array(nearest, dtype=np.float32))
    assert read_cutoff(found.to_dict()) == found
    falling = np.sort(np.array([scores or [0.0]], dtype=np.float32))[:, ::-1]
    certainty = found.certainty(falling, found.familiarity(np.array(nearest[:1], dtype=np.float32)))
    assert ((certainty >= 0) & (certainty <= 1)).all()
    assert (np.diff(certainty, axis=1) <= 0).all()


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {},
        {**PLAIN.to_dict(), "more": 1},
        {**PLAIN.to_dict(), "middle": "0.5"},
        {**PLAIN.to_dict(), "middle": True},
        {**PLAIN.to_dict(), "steepness": float("nan")},
        {**PLAIN.to_dict(), "steepness": 1e300},
        {**PLAIN.to_dict(), "steepness": -1.0},
        {**PLAIN.to_dict(), "middle": 1e300},
        {**PLAIN.to_dict(), "middle": 10**400},
        {**PLAIN.to_dict(), "distances": [*ELEVEN[:-1], float("inf")]},
        {**PLAIN.to_dict(), "distances": [0.0] * 10},
        {**PLAIN.to_dict(), "distances": list(ELEVEN[::-1])},
        {**PLAIN.to_dict(), "distances": [*ELEVEN[:-1], "10"]},
        {**PLAIN.to_dict(), "distances": "01234567890"},
    ],
)
def test_what_is_no_cutoff_counts_as_none(stored):
    assert read_cutoff(stored) is None


def test_a_rated_ranking_unpacks_as_any_and_survives_pickling():
    rated = PLAIN.applied(Ranking(np.array([[3, 1]]), np.array([[0.9, 0.1]], dtype=np.float32)))
    ids, scores = rated
    assert ids.tolist() == [[3, 1]]
    assert scores.shape == (1, 2)
    again = pickle.loads(pickle.dumps(rated.cut()))
    assert isinstance(again, RatedRanking)
    assert again.ids.tolist() == [[3]]
    assert again.lengths.tolist() == [1]


def test_a_cut_is_as_wide_as_its_longest_row():
    scores = np.array([[0.9, 0.8, 0.1], [0.9, 0.2, 0.1], [0.1, 0.0, 0.0]], dtype=np.float32)
    cut = PLAIN.applied(Ranking(np.arange(9).reshape(3, 3), scores)).cut()
    assert cut.ids.shape == (3, 2)
    assert cut.lengths.tolist() == [2, 1, 0]
    pytest.importorskip("pandas")
    table = cut.to_pandas()
    assert table["id"].tolist() == [0, 1, 3]
    assert (table["certainty"] >= 0.5).all()


def test_a_cut_of_everything_is_empty():
    cut = PLAIN.applied(Ranking(np.array([[1]]), np.array([[0.0]], dtype=np.float32))).cut()
    assert cut.ids.shape == (1, 0)
    assert cut.lengths.tolist() == [0]


def test_the_cut_answer_of_an_item_is_its_group(fitted):
    model, X, labels = fitted
    cut = model.search(k=len(X)).cut()
    for query, n in enumerate(cut.lengths):
        assert set(labels[cut.ids[query, :n]]) == {labels[query]}
        assert n >= 10


def test_strangers_get_nothing_and_relatives_get_theirs(fitted, collection):
    _, X, labels = fitted
    rng = np.random.default_rng(5)
    strangers = rng.normal(size=(50, X.shape[1])).astype(np.float32)
    found = collection.search(strangers, k=20, cut=True)
    assert (found.lengths <= 1).mean() >= 0.9
    relatives = X[::5] + 0.03 * rng.normal(size=X[::5].shape).astype(np.float32)
    near = collection.search(relatives, k=20, cut=True)
    assert (near.lengths >= 8).mean() > 0.8
    right = [set(labels[near.ids[i, :n]]) <= {labels[::5][i]} for i, n in enumerate(near.lengths)]
    assert all(right)


def test_without_a_cut_all_answers_stay_and_say_how_sure_they_are(fitted, collection):
    X = fitted[1]
    whole, cut = collection.search(X[:3], k=30), collection.search(X[:3], k=30, cut=True)
    assert whole.ids.shape == (3, 30)
    assert whole.certainty.shape == (3, 30)
    for row, n in enumerate(cut.lengths):
        assert cut.ids[row, :n].tolist() == whole.ids[row, :n].tolist()
        assert (whole.certainty[row, :n] >= 0.5).all()


def test_ids_words_and_combined_queries_are_rated_alike(fitted, collection):
    X = fitted[1]
    by_id = collection.search_ids([0, 13], k=20, cut=True)
    assert by_id.lengths.min() >= 10
    combined = collection.search_combined([QueryPart(id=0), QueryPart(vector=X[13])], k=40)
    assert combined.certainty.shape == (1, 40)
    # Words lie apart from all items, and are no strangers for that.
    words = collection.search_text(X[:1] + 3, k=20)
    assert words.certainty.max() > 0


def test_a_combined_query_is_as_familiar_as_its_most_familiar_part(fitted, collection):
    stranger = np.random.default_rng(9).normal(size=fitted[1].shape[1]).astype(np.float32) * 10
    alone = collection.search_combined([QueryPart(vector=stranger)], k=5)
    both = collection.search_combined([QueryPart(vector=stranger), QueryPart(id=0)], k=5)
    assert alone.certainty.max() < 0.5
    assert both.certainty.max() > alone.certainty.max()


def test_plain_neighbours_have_no_cut(collection, fitted):
    plain = collection.search(fitted[1][:2], by="descriptors")
    assert not isinstance(plain, RatedRanking)
    with pytest.raises(InputError, match="which results by descriptors belong"):
        collection.search(fitted[1][:2], by="descriptors", cut=True)


def test_a_collection_without_a_cutoff_answers_and_says_what_a_cut_needs(fitted, tmp_path, monkeypatch):
    from manifind.collection import version

    fitted[0].save(tmp_path / "c.manifind")
    monkeypatch.setattr(version, "read_cutoff", lambda _: None)
    old = load(tmp_path / "c.manifind")
    assert not isinstance(old.search(fitted[1][:1]), RatedRanking)
    with pytest.raises(InputError, match="--refit"):
        old.search(fitted[1][:1], cut=True)


def test_added_items_are_found_and_rated(fitted, tmp_path):
    collection = fitted[0].save(tmp_path / "c.manifind")
    (new,) = collection.add(fitted[1][:1] + 0.01)
    found = collection.search_ids([new], k=20, cut=True)
    assert found.lengths[0] >= 10


def test_a_compressed_collection_rates_as_the_whole_one(fitted, collection, tmp_path):
    collection.export(tmp_path / "small.manifind", to="compressed")
    small = load(tmp_path / "small.manifind")
    found, whole = small.search(fitted[1][:4], k=8, cut=True), collection.search(fitted[1][:4], k=8, cut=True)
    assert found.lengths.tolist() == whole.lengths.tolist()
