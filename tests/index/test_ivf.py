"""Compressed indexes: what they find is scored exactly, enough is found, and it is said how much."""

import numpy as np
import pytest

from manifind.errors import InputError
from manifind.index.exact import graph_neighbours, nearest
from manifind.index.ivf import WANTED_RECALL, InvertedFile
from manifind.index.vector_index import EXACT_UP_TO, make_index
from reference.graphs import clusters

METRICS = ["euclidean", "cosine"]


def rows(n=4000, d=16, seed=0):
    X = clusters(n, d, n // 20, seed=seed)
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module", params=[(codes, metric) for codes in ("sq8", "pq") for metric in METRICS])
def made(request):
    codes, metric = request.param
    X, Q = np.split(rows(n=4300), [4000])
    return X, Q, metric, InvertedFile(X, metric, codes, 10)


def test_at_least_98_percent_of_the_true_neighbours_are_found(made):
    X, Q, metric, index = made
    found, true = index.nearest(Q, 10), nearest(Q, X, 10, metric)
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.ids, true.ids, strict=True)])
    assert index.quality.recall >= WANTED_RECALL
    assert recall >= WANTED_RECALL - 0.02


def test_scores_are_those_of_the_vectors_and_not_of_their_codes(made):
    X, Q, metric, index = made
    found = index.nearest(Q, 5)
    exact = np.einsum("md,mkd->mk", Q.astype(float), X[found.ids].astype(float))
    if metric == "euclidean":
        exact = -np.linalg.norm(Q[:, None].astype(float) - X[found.ids], axis=2)
    np.testing.assert_allclose(found.scores, exact, rtol=1e-6, atol=1e-6)
    assert (np.diff(found.scores, axis=1) <= 0).all()


def test_one_query_or_many_give_the_same_answer(made):
    _, Q, _, index = made
    together = index.nearest(Q, 7)
    for row, query in enumerate(Q[:20]):
        alone = index.nearest(query[None], 7)
        np.testing.assert_array_equal(alone.ids[0], together.ids[row])
        np.testing.assert_array_equal(alone.scores[0], together.scores[row])


def test_by_codes_alone_most_neighbours_are_found_and_scores_are_near(made):
    _, Q, _, index = made
    rough, exact = index.nearest_by_codes(Q, 10), index.nearest(Q, 10)
    if index.quality.codes == "sq8":
        overlap = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(rough.ids, exact.ids, strict=True)])
        assert overlap >= 0.9
        np.testing.assert_allclose(rough.scores, exact.scores, atol=0.05)


def test_a_space_by_codes_answers_roughly_and_an_exact_one_exactly():
    X = rows()
    exact, coded = (make_index(X, "euclidean", index, 5) for index in ("exact", "sq8"))
    np.testing.assert_array_equal(exact.roughly_nearest(X[:9], 4).ids, exact.nearest(X[:9], 4).ids)
    np.testing.assert_allclose(coded.roughly_nearest(X[:9], 4).scores, exact.nearest(X[:9], 4).scores, atol=0.05)
    coarse = make_index(X, "euclidean", "pq", 5)
    np.testing.assert_array_equal(coarse.roughly_nearest(X[:9], 4).ids, coarse.nearest(X[:9], 4).ids)
    np.testing.assert_array_equal(coded.roughly_nearest(X[:2], 4000).ids, exact.nearest(X[:2], 4000).ids)


def test_the_same_seed_gives_the_same_index_and_the_database_is_left_alone():
    X = rows()
    before = X.copy()
    one, two = (InvertedFile(X, "euclidean", "sq8", 5, seed=4) for _ in range(2))
    np.testing.assert_array_equal(one.nearest(X[:100], 5).ids, two.nearest(X[:100], 5).ids)
    np.testing.assert_array_equal(X, before)


def test_codes_are_smaller_than_the_vectors(made):
    X, _, _, index = made
    assert index.quality.bytes_per_item < X.nbytes / len(X)


def test_a_ranking_longer_than_what_the_lists_hold_is_made_exactly():
    X = rows(n=200)
    index = InvertedFile(X, "euclidean", "sq8", 3)
    np.testing.assert_array_equal(index.nearest(X[:4], 199).ids, nearest(X[:4], X, 199, "euclidean").ids)


def test_equal_rows_that_crowd_the_lists_do_not_break_the_count():
    X = np.repeat(rows(n=40), 60, axis=0)
    found = InvertedFile(X, "euclidean", "sq8", 10).nearest(X[::60], 10)
    np.testing.assert_allclose(found.scores, 0, atol=1e-6)


def test_unknown_codes_are_refused():
    with pytest.raises(InputError, match="expected one of 'sq8', 'pq'"):
        InvertedFile(rows(n=50), "euclidean", "zip", 3)


def test_small_databases_are_searched_exactly_and_large_ones_through_codes():
    assert make_index(rows(n=100), "euclidean", "auto", 5).quality is None
    large = rows(n=EXACT_UP_TO + 1, d=4)
    assert make_index(large, "euclidean", "auto", 5).quality.codes == "sq8"
    assert make_index(large, "euclidean", "exact", 5).quality is None


def test_a_ranking_of_everything_is_exact_whatever_the_index():
    X = rows(n=500)
    space = make_index(X, "cosine", "sq8", 5)
    np.testing.assert_array_equal(space.nearest(X[:3], 500).ids, nearest(X[:3], X, 500, "cosine").ids)


def test_a_graph_by_codes_is_nearly_the_exact_one_and_nobody_is_its_own_neighbour():
    X = rows()
    space = make_index(X, "euclidean", "sq8", 9)
    found, true = graph_neighbours(X, 8, search=space.nearest), graph_neighbours(X, 8)
    assert (found.ids != np.arange(len(X))[:, None]).all()
    assert np.mean([len(set(a) & set(b)) / 8 for a, b in zip(found.ids, true.ids, strict=True)]) >= 0.97
