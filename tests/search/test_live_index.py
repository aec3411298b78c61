"""Fitted items of which some are gone, and later ones: searched together as by looking at every single one."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manifind.errors import InputError
from manifind.graph.preprocess import Preprocessor, unit_rows
from manifind.index import vector_index as spaces
from manifind.ranking import Ranking
from manifind.search import live_index as home
from manifind.search.feature_model import FeatureModel, QuerySettings
from manifind.search.live_index import AddedItems, LiveIndex
from reference.neighbours import score

d, D, NEIGHBOURS = 3, 4, 2
BEHIND = np.float32(2.001)


def rows(n, width, seed, n_different=None):
    """n rows, of which only some are different, so that there are ties."""
    rng = np.random.default_rng(seed)
    different = rng.normal(size=(n_different or max(n, 1), width)).astype(np.float32)
    return different[rng.integers(len(different), size=n)] if n_different else different[:n]


def made(n, a, seed, gone=(), inside=None, n_different=None, kind="exact"):
    """An index with n fitted items and a later ones, whose features come from the same few."""
    features = unit_rows(rows(n + a, D, seed, n_different))
    descriptors = rows(n + a, d, seed + 1)
    inside = np.ones(n, dtype=np.bool_) if inside is None else inside
    settings = QuerySettings(NEIGHBOURS, "euclidean", 1, kind)
    nodes = np.arange(n)
    learned = FeatureModel(Preprocessor("none"), settings, descriptors[:n], features[:n], nodes, inside)
    later = AddedItems(
        descriptors[n:],
        np.ones((a, 1), dtype=np.float32),
        features[n:],
        np.zeros((a, NEIGHBOURS), dtype=np.int64),
        np.zeros((a, NEIGHBOURS), dtype=np.float32),
    )
    return LiveIndex(learned, ~np.isin(np.arange(n), list(gone)), later)


def ranked_by_loops(index, features, descriptors, k, wanted=None):
    """The k best of all that is there and wanted: by falling score, then by rising row."""
    learned, n = index.learned, len(index.present)
    there = [*np.flatnonzero(index.present), *range(n, n + len(index.added))]
    there = [row for row in there if wanted is None or wanted[row]]
    ids, scores = [], []
    for feature, descriptor in zip(features, descriptors, strict=True):
        found = []
        for row in there:
            own = learned.features[row] if row < n else index.added.features[row - n]
            value = score(feature, own, "cosine")
            if row < n and not learned.inside[row]:
                value = 1 / (1 - score(descriptor, learned.descriptors[row], "euclidean")) - BEHIND
            found.append((-value, row))
        best = sorted(found)[:k]
        ids.append([row for _, row in best])
        scores.append([-value for value, _ in best])
    shape = (len(features), min(k, len(there)))
    return Ranking(np.array(ids, dtype=np.int64).reshape(shape), np.array(scores, np.float32).reshape(shape))


def same(found, expected):
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert found.scores.dtype == np.float32


@st.composite
def shelves(draw):
    """A index, and which of its rows may be found."""
    n, a = draw(st.integers(1, 30)), draw(st.integers(0, 6))
    gone = draw(st.sets(st.integers(0, n - 1)))
    inside = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))) if draw(st.booleans()) else None
    wanted = np.array(draw(st.lists(st.booleans(), min_size=n + a, max_size=n + a)))
    different = draw(st.sampled_from([None, 1, 3]))
    return made(n, a, draw(st.integers(0, 99)), gone, inside, different), wanted


QUERIES = unit_rows(rows(3, D, 500)), rows(3, d, 501)


@given(drawn=shelves(), share=st.floats(0, 1))
@settings(max_examples=200, derandomize=True)
def test_any_number_of_the_best_is_what_loops_find(drawn, share):
    index, _ = drawn
    if not len(index.rows):
        with pytest.raises(InputError, match="there is nothing to find"):
            index.rank(*QUERIES, 1)
        return
    k = 1 + int(share * (len(index.rows) - 1))
    same(index.rank(*QUERIES, k), ranked_by_loops(index, *QUERIES, k))


@given(drawn=shelves(), k=st.integers(1, 45))
@settings(max_examples=200, derandomize=True)
def test_among_those_that_are_wanted_the_best_are_what_loops_find_and_never_more_than_there_are(drawn, k):
    index, wanted = drawn
    same(index.rank(*QUERIES, k, wanted), ranked_by_loops(index, *QUERIES, k, wanted))


@given(drawn=shelves(), k=st.integers(1, 8))
@settings(max_examples=100, derandomize=True)
def test_one_query_or_many_give_the_same_answer(drawn, k):
    index, wanted = drawn
    together = index.rank(*QUERIES, k, wanted)
    for row in range(3):
        alone = index.rank(QUERIES[0][[row]], QUERIES[1][[row]], k, wanted)
        np.testing.assert_array_equal(alone.ids[0], together.ids[row])
        np.testing.assert_array_equal(alone.scores[0], together.scores[row])


@pytest.mark.parametrize("different", [None, 2, 40])
@pytest.mark.parametrize("kind", ["exact", "sq8"])
def test_many_items_are_searched_among_as_few_are(kind, different, monkeypatch):
    index = made(400, 30, 7, gone=range(0, 400, 3), n_different=different, kind=kind)
    expected = ranked_by_loops(index, *QUERIES, 25)
    same(index.rank(*QUERIES, 25), expected)
    monkeypatch.setattr(home, "EXACT_UP_TO", 0)
    apart = made(400, 30, 7, gone=range(0, 400, 3), n_different=different, kind=kind)
    same(apart.rank(*QUERIES, 25), expected)


def test_through_codes_those_that_are_gone_are_never_found_and_most_of_the_best_are(monkeypatch):
    monkeypatch.setattr(home, "EXACT_UP_TO", 0)
    monkeypatch.setattr(spaces, "EXACT_UP_TO", 0)
    gone = np.flatnonzero(np.random.default_rng(0).random(2000) < 0.4)
    index = made(2000, 20, 8, gone=gone, kind="sq8")
    assert index.learned.indexes()["features"] is not None
    found, expected = index.rank(*QUERIES, 20), ranked_by_loops(index, *QUERIES, 20)
    assert not np.isin(found.ids, gone).any()
    overlap = [len(set(a) & set(b)) / 20 for a, b in zip(found.ids, expected.ids, strict=True)]
    assert np.mean(overlap) > 0.9
    by_row = dict(zip(expected.ids[0].tolist(), expected.scores[0].tolist(), strict=True))
    for row, value in zip(found.ids[0].tolist(), found.scores[0].tolist(), strict=True):
        assert value == by_row.get(row, value)


def test_who_comes_later_stands_behind_the_fitted_of_the_same_score():
    index = made(5, 3, 0, gone=[1], n_different=1)
    found = index.rank(*QUERIES, 7)
    assert found.ids.tolist() == [[0, 2, 3, 4, 5, 6, 7]] * 3
    assert index.rank(*QUERIES, 2, np.arange(8) > 3).ids.tolist() == [[4, 5]] * 3


def test_who_comes_later_stands_before_what_truncation_left_out():
    index = made(6, 2, 3, inside=np.array([True, False] * 3))
    found = index.rank(*QUERIES, 8)
    assert (np.sort(found.ids[:, 5:]) == [1, 3, 5]).all()
    assert (found.scores[:, 5:] < -1).all()


def test_rows_are_gathered_from_both_in_any_order():
    index = made(6, 3, 1, gone=[0, 2])
    assert index.rows.tolist() == [1, 3, 4, 5, 6, 7, 8]
    both = {
        name: np.concatenate([getattr(index.learned, name), getattr(index.added, name)])
        for name in ("features", "descriptors")
    }
    for some in ([8, 1, 6, 1], [3, 4], [7], [], [2]):
        wanted = np.array(some, dtype=np.int64)
        np.testing.assert_array_equal(index.features(wanted), both["features"][wanted])
        np.testing.assert_array_equal(index.descriptors(wanted), both["descriptors"][wanted])


@pytest.mark.parametrize("k", [0, -1, True, 2.0, "3", None, np.True_])
def test_a_k_that_is_no_number_of_results_is_refused(k):
    with pytest.raises(InputError, match="k = "):
        made(6, 2, 1, gone=[3]).rank(*QUERIES, k)


@pytest.mark.parametrize("k", [0, -1, True, 2.0, "3", None, np.True_, float("nan")])
def test_a_k_that_is_no_number_of_results_is_refused_under_a_condition_too(k):
    with pytest.raises(InputError, match="k = ") as refused:
        made(6, 2, 1, gone=[3]).rank(*QUERIES, k, np.ones(8, dtype=np.bool_))
    assert "expected a whole number of at least 1" in refused.value.problem


def test_a_k_beyond_the_number_of_items_finds_all_of_them():
    index = made(6, 2, 1, gone=[3])
    same(index.rank(*QUERIES, 1000), index.rank(*QUERIES, 7))
    allowed = np.arange(8) % 2 == 0
    same(index.rank(*QUERIES, 1000, allowed), index.rank(*QUERIES, int(allowed.sum()), allowed))
    assert index.rank_by_descriptors(QUERIES[1], 1000).ids.shape == (len(QUERIES[1]), 7)
    assert index.rank_by_descriptors(QUERIES[1], 1000, allowed).ids.shape == (len(QUERIES[1]), 4)


def test_where_everything_is_gone_there_is_nothing_to_find():
    index = made(4, 0, 1, gone=range(4))
    with pytest.raises(InputError, match="every item has been removed"):
        index.rank(*QUERIES, 1)
    assert index.rank(*QUERIES, 3, np.ones(4, dtype=np.bool_)).ids.shape == (3, 0)


def test_where_nobody_is_wanted_nobody_is_found():
    found = made(4, 2, 1).rank(*QUERIES, 3, np.zeros(6, dtype=np.bool_))
    assert found.ids.shape == found.scores.shape == (3, 0)
    assert found.ids.dtype == np.int64


def test_only_later_items_are_found_where_all_fitted_are_gone():
    index = made(4, 3, 1, gone=range(4))
    same(index.rank(*QUERIES, 3), ranked_by_loops(index, *QUERIES, 3))


def test_nothing_is_written_to():
    index = made(9, 3, 2, gone=[4])
    arrays = [index.learned.features, index.present, index.added.features, *QUERIES]
    before = [array.copy() for array in arrays]
    index.rank(*QUERIES, 5)
    index.rank(*QUERIES, 5, np.ones(12, dtype=np.bool_))
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@given(a=st.integers(0, 5), b=st.integers(0, 5), seed=st.integers(0, 9))
@example(a=0, b=0, seed=0)
@settings(max_examples=30, derandomize=True)
def test_placed_items_are_joined_and_taken_as_arrays_are(a, b, seed):
    one, other = made(1, a, seed).added, made(1, b, seed + 1).added
    both = AddedItems.join([one, other])
    assert len(both) == a + b
    for name in ("descriptors", "lengths", "features", "neighbours", "distances"):
        np.testing.assert_array_equal(getattr(both[:a], name), getattr(one, name))
        np.testing.assert_array_equal(getattr(both[a:], name), getattr(other, name))
        assert getattr(AddedItems.join([one[:0], one]), name).shape == getattr(one, name).shape
        assert getattr(one[:0], name).dtype == getattr(one, name).dtype
