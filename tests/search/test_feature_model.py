"""Answering from learned features: known rows exactly, truncation behind, and every k and batch alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.errors import InputError
from manifind.graph.duplicates import distinct_rows
from manifind.graph.preprocess import Preprocessor, fit_preprocessor, unit_rows
from manifind.search.feature_model import FeatureModel, QuerySettings
from reference.neighbours import nearest_by_loops
from reference.qfe import expanded_by_loops

N = 120  # with k + 16 candidates of four times as many items, faiss proposes; with k = n it does not


def random_rows(n, d, seed):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def learned(X, kind="none", inside=None, k=3, similarity="euclidean", passes=1, seed=0):
    """Random features for the rows of X, the same for equal rows."""
    preprocessor = fit_preprocessor(kind, X)
    prepared = preprocessor(X)
    distinct = distinct_rows(prepared)
    inside = np.ones(len(X), dtype=np.bool_) if inside is None else inside
    features = unit_rows(random_rows(len(distinct.first), 5, seed + 100))[distinct.of_row]
    nodes = distinct.first[inside[distinct.first]]
    return FeatureModel(preprocessor, QuerySettings(k, similarity, passes), prepared, features, nodes, inside)


@pytest.fixture(scope="module")
def plain():
    return learned(random_rows(N, 4, 0))


@pytest.fixture(scope="module")
def truncated():
    return learned(random_rows(N, 4, 0), inside=np.arange(N) % 3 != 0)


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("kind", ["none", "unit", "center", "whiten"])
def test_a_row_of_the_database_gets_exactly_its_feature(kind, passes):
    X = random_rows(N, 4, 1)
    answering = learned(X, kind, passes=passes)
    np.testing.assert_array_equal(answering.transform(X), answering.features)
    np.testing.assert_array_equal(answering.transform(X[50:51]), answering.features[50:51])


@pytest.mark.parametrize("kind", ["none", "unit", "center", "whiten"])
def test_duplicates_get_the_feature_of_the_first_of_them(kind):
    X = random_rows(40, 4, 2)
    X[[9, 30]] = X[3]
    answering = learned(X, kind)
    assert len(answering.nodes) == 38
    np.testing.assert_array_equal(answering.transform(X), answering.features)
    np.testing.assert_array_equal(answering.transform(X)[[9, 30]], answering.features[[3, 3]])


def test_minus_zero_is_zero():
    X = random_rows(40, 3, 3)
    X[5, 1] = 0.0
    X[6] = [0.0, -0.0, 2.0]
    answering = learned(X)
    Q = np.array([X[5], [-0.0, 0.0, 2.0]])
    Q[0, 1] = -0.0
    np.testing.assert_array_equal(answering.transform(Q), answering.features[[5, 6]])


def test_rows_in_double_precision_or_as_lists_are_recognised_too(plain):
    X = plain.descriptors
    np.testing.assert_array_equal(plain.transform(X.astype(np.float64)), plain.features)
    np.testing.assert_array_equal(plain.transform(X[:2].tolist()), plain.features[:2])


def test_a_row_off_by_one_bit_is_a_query_of_its_own(plain):
    Q = plain.descriptors[:1].copy()
    Q[0, 0] = np.nextafter(Q[0, 0], np.float32(9))
    assert not np.array_equal(plain.transform(Q), plain.features[:1])


@pytest.mark.equation(23)
def test_known_and_unseen_rows_may_come_together(plain):
    Q = random_rows(5, 4, 9)
    Q[[1, 4]] = plain.descriptors[[8, 2]]
    found = plain.transform(Q)
    np.testing.assert_array_equal(found[[1, 4]], plain.features[[8, 2]])
    for row in (0, 2, 3):
        loops = expanded_by_loops(Q[row], plain.descriptors, plain.features, 3, "euclidean", 1)
        np.testing.assert_allclose(found[row], loops, rtol=0, atol=1e-5)


def test_queries_are_preprocessed_as_the_database_was():
    X, Q = random_rows(N, 4, 4), random_rows(6, 4, 5)
    answering = learned(X, "center")
    moved = unit_rows(Q - X.mean(axis=0))
    for found, query in zip(answering.transform(Q), moved, strict=True):
        loops = expanded_by_loops(query, answering.descriptors, answering.features, 3, "euclidean", 1)
        np.testing.assert_allclose(found, loops, rtol=0, atol=1e-4)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["euclidean", "gaussian", "cosine"]), k=st.integers(1, N))
@settings(max_examples=60, derandomize=True)
def test_one_query_or_many_give_the_same_answer_bit_for_bit(seed, kind, k):
    answering = learned(
        random_rows(N, 4, 0), "unit", inside=np.arange(N) % 5 != 0, similarity=kind, passes=1 + seed % 2
    )
    Q = random_rows(5, 4, seed)
    Q[2] = answering.descriptors[seed % N]
    together, features = answering.search(Q, k), answering.transform(Q)
    for row in range(5):
        alone = answering.search(Q[row : row + 1], k)
        np.testing.assert_array_equal(alone.ids[0], together.ids[row])
        np.testing.assert_array_equal(alone.scores[0], together.scores[row])
        np.testing.assert_array_equal(answering.transform(Q[row : row + 1])[0], features[row])


@given(k=st.integers(1, N), is_truncated=st.booleans())
@settings(max_examples=80, derandomize=True)
def test_the_first_k_are_the_head_of_the_full_ranking(plain, truncated, k, is_truncated):
    answering, Q = truncated if is_truncated else plain, random_rows(4, 4, 6)
    everything, head = answering.search(Q, N), answering.search(Q, k)
    np.testing.assert_array_equal(head.ids, everything.ids[:, :k])
    np.testing.assert_array_equal(head.scores, everything.scores[:, :k])


@pytest.mark.parametrize("kind", ["plain", "truncated"])
def test_with_k_of_n_each_item_stands_once_and_scores_never_increase(kind, request):
    ids, scores = request.getfixturevalue(kind).search(random_rows(9, 4, 7), N)
    assert (np.sort(ids, axis=1) == np.arange(N)).all()
    assert (np.diff(scores, axis=1) <= 0).all()
    assert scores.dtype == np.float32


def test_without_truncation_the_ranking_is_by_cosine(plain):
    Q = random_rows(6, 4, 8)
    found = plain.search(Q, 10)
    ids, scores = nearest_by_loops(plain.transform(Q), plain.features, 10, "cosine")
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-6)


def test_what_is_inside_comes_first_by_cosine_and_the_rest_behind_by_original_similarity(truncated):
    Q = random_rows(6, 4, 8)
    ids, scores = truncated.search(Q, N)
    kept, rest = np.flatnonzero(truncated.inside), np.flatnonzero(~truncated.inside)
    head, head_scores = nearest_by_loops(truncated.transform(Q), truncated.features[kept], len(kept), "cosine")
    tail, distances = nearest_by_loops(Q, truncated.descriptors[rest], len(rest), "euclidean")
    np.testing.assert_array_equal(ids, np.concatenate([kept[head], rest[tail]], axis=1))
    np.testing.assert_allclose(scores[:, : len(kept)], head_scores, atol=1e-6)
    similarities = 1 / (1 - distances)
    spread = scores[:, len(kept) :] - similarities
    np.testing.assert_allclose(spread, spread[0, 0], atol=1e-6)  # moved down by one and the same number
    assert scores[:, len(kept) :].max() < -1


def test_an_item_outside_is_no_neighbour_of_a_query(truncated):
    outside = np.flatnonzero(~truncated.inside)[:4]
    nodes = truncated.nodes
    for item, found in zip(outside, truncated.transform(truncated.descriptors[outside]), strict=True):
        loops = expanded_by_loops(
            truncated.descriptors[item], truncated.descriptors[nodes], truncated.features[nodes], 3, "euclidean", 1
        )
        np.testing.assert_allclose(found, loops, rtol=0, atol=1e-5)


def test_scores_do_not_increase_even_where_a_cosine_is_rounded_below_minus_1():
    u = next(row for row in unit_rows(random_rows(500, 3, 0)) if np.float32((row.astype(float) ** 2).sum()) > 1)
    X = np.array([[0, 0], [9, 9], [0, 1]], dtype=np.float32)
    answering = FeatureModel(
        Preprocessor("none"),
        QuerySettings(1, "euclidean", 1),
        X,
        np.array([u, -u, u]),
        np.array([0, 1]),
        np.array([True, True, False]),
    )
    ids, scores = answering.search(X[2:], 3)  # nearest to the first, opposite to the second, equal to the third
    assert ids.tolist() == [[0, 1, 2]]
    assert scores[0, 1] < -1
    assert scores[0, 2] < scores[0, 1]


def test_equal_scores_stand_in_the_order_of_positions():
    X = random_rows(30, 3, 0)
    X[[4, 17, 29]] = X[11]
    ids, scores = learned(X).search(X[11:12], 5)
    assert ids[0, :4].tolist() == [4, 11, 17, 29]
    assert len(set(scores[0, :4].tolist())) == 1


@pytest.mark.parametrize("k", [0, -1, True, False, 2.0, "3", None, np.True_])
def test_a_k_that_is_no_number_of_results_is_refused_with_its_value(plain, k):
    with pytest.raises(InputError) as refusal:
        plain.search(random_rows(1, 4, 0), k)
    assert f"k = {k!r}" in refusal.value.problem
    assert "expected a whole number of at least 1" in refusal.value.problem


def test_a_k_beyond_the_number_of_items_finds_all_of_them(plain):
    Q = random_rows(2, 4, 0)
    np.testing.assert_array_equal(plain.search(Q, N + 5).ids, plain.search(Q, N).ids)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
def test_a_k_of_numpy_is_as_good_as_any(plain, kind):
    Q = random_rows(2, 4, 0)
    np.testing.assert_array_equal(plain.search(Q, kind(5)).ids, plain.search(Q, 5).ids)


@pytest.mark.parametrize(
    ("Q", "problem"),
    [
        (np.ones((2, 3)), "3 features, but it is expecting 4"),
        (np.ones(4), r"shape \(4,\); expected two dimensions"),
        (np.ones((0, 4)), "is empty"),
        ([[1, 2, np.nan, 4]], "NaN at row 0, column 2"),
        ([[1, 2, 3, 4], [1, -np.inf, 3, 4]], "infinity at row 1, column 1"),
        ([[1e300, 2, 3, 4]], "1e\\+300, too large for float32"),
        ([["a", "b", "c", "d"]], "has dtype <U1"),
    ],
)
@pytest.mark.parametrize("verb", ["search", "transform"])
def test_queries_that_cannot_be_used_are_refused_with_the_value(plain, verb, Q, problem):
    with pytest.raises(InputError, match=problem):
        plain.search(Q, 3) if verb == "search" else plain.transform(Q)


def test_queries_and_items_are_not_written_to(plain):
    Q = random_rows(3, 4, 0)
    Q[1] = plain.descriptors[4]
    before = Q.copy(), plain.descriptors.copy(), plain.features.copy()
    plain.search(Q, 5)
    for array, copy in zip((Q, plain.descriptors, plain.features), before, strict=True):
        np.testing.assert_array_equal(array, copy)
