"""k-reciprocal encoding: neighbourhoods, how they grow, and what the distance between them is."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.baselines.k_reciprocal import KReciprocal, distances, expanded, reciprocal, weighted
from manifind.baselines.query_expansion import KNN
from manifind.errors import InputError, UnseenQueriesError
from reference.graphs import as_csr, clusters
from reference.rerankers import k_reciprocal_by_loops


def mixed_distances(model, n):
    """(m, n) the negative score of each item, whatever its place."""
    ids, scores = model.search(k=n)
    out = np.empty(ids.shape)
    np.put_along_axis(out, ids, -scores.astype(np.float64), axis=1)
    return out


def test_three_points_on_a_line_by_hand():
    X = np.array([[0], [1], [3]], dtype=np.float32)  # 0 and 1 choose each other; 3 chooses 1, unanswered
    model = KReciprocal(preprocess="none", n_neighbors=1, n_averaged=1).fit(X)
    b = 1 / (1 + math.e)  # the share of the other in the neighbourhood of 0 or of 1
    np.testing.assert_allclose(model.affinity_.toarray(), [[1 - b, b, 0], [b, 1 - b, 0], [0, 0, 1]])
    near = 0.7 * (1 - 2 * b / (2 - 2 * b)) + 0.3 * 1
    expected = [[0, near, 0.7 + 0.9], [near, 0, 0.7 + 0.6], [0.7 + 0.9, 0.7 + 0.6, 0]]
    np.testing.assert_allclose(mixed_distances(model, 3), expected, rtol=1e-6, atol=1e-7)
    assert model.search(k=3).ids.tolist() == [[0, 1, 2], [1, 0, 2], [2, 1, 0]]


def test_a_half_neighbourhood_is_added_from_two_thirds_on():
    # The neighbourhood of 0 is {0, 1, 2}. Half of 1 is {0, 1, 3}: two of three are in it, so 3 comes in.
    # Half of 2 is {2, 4}: one of two, so 4 stays out.
    R, half = np.eye(5), np.eye(5)
    for matrix, pairs in ((R, [(0, 1), (0, 2)]), (half, [(0, 1), (1, 3), (2, 4)])):
        for i, j in pairs:
            matrix[i, j] = matrix[j, i] = 1
    assert np.flatnonzero(expanded(as_csr(R), as_csr(half)).toarray()[0]).tolist() == [0, 1, 2, 3]


@settings(max_examples=30)
@given(st.integers(3, 24), st.integers(0, 2**16), st.sampled_from([0.0, 0.3, 1.0]), st.data())
def test_the_distance_equals_the_loops(n, seed, weight, data):
    X = clusters(n, 4, 3, seed)
    k1 = data.draw(st.integers(1, n - 1))
    k2 = data.draw(st.integers(1, min(k1 + 1, 6)))
    model = KReciprocal(preprocess="none", n_neighbors=k1, n_averaged=k2, distance_weight=weight).fit(X)
    np.testing.assert_allclose(
        mixed_distances(model, n), k_reciprocal_by_loops(X, k1, k2, weight), rtol=1e-5, atol=1e-6
    )


def test_only_those_who_choose_each_other_are_neighbours():
    chosen = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 1], [3, 2, 1]])
    assert reciprocal(chosen).toarray().tolist() == [[1, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]]


def test_every_neighbourhood_sums_to_one_and_holds_its_own_node():
    model = KReciprocal().fit(clusters(200, 6, 5, seed=0))
    V = model.affinity_
    np.testing.assert_allclose(V.sum(axis=1), 1, rtol=1e-12)
    assert (V.data > 0).all()
    assert (V.diagonal() > 0).all()


def test_the_weight_of_a_member_falls_with_its_distance():
    X = np.array([[0], [1], [2]], dtype=np.float32)
    V = weighted(X, as_csr(np.ones((3, 3)))).toarray()
    np.testing.assert_allclose(V[0], np.exp([0, -1, -2]) / np.exp([0, -1, -2]).sum(), rtol=1e-12)


def test_the_distance_alone_gives_the_plain_ranking():
    X = clusters(150, 6, 4, seed=1)
    ranking, plain = KReciprocal(distance_weight=1.0).fit(X).search(k=150), KNN().fit(X).search(k=150)
    np.testing.assert_array_equal(ranking.ids, plain.ids)
    np.testing.assert_allclose(ranking.scores, plain.scores, atol=1e-6)


def test_items_that_share_nothing_with_the_query_stand_by_distance():
    X = np.concatenate([clusters(40, 4, 1, seed=2) + 30, clusters(40, 4, 1, seed=3) - 30])
    model = KReciprocal(preprocess="none", n_neighbors=8).fit(X)
    assert (model._jaccard(np.arange(40))[:, 40:] == 1).all()
    plain = KNN(preprocess="none").fit(X).search(k=80)
    np.testing.assert_array_equal(model.search(k=80).ids[:40, 40:], plain.ids[:40, 40:])


def test_the_jaccard_distance_is_symmetric_between_nothing_and_all():
    model = KReciprocal(n_neighbors=10).fit(clusters(120, 6, 4, seed=4))
    J = model._jaccard(np.arange(120))
    np.testing.assert_allclose(J, J.T, atol=1e-12)
    np.testing.assert_allclose(J.diagonal(), 0, atol=1e-12)
    assert ((J >= 0) & (J <= 1)).all()


def test_distances_from_products_are_as_good_as_from_differences():
    X = clusters(60, 7, 3, seed=5)
    X[30:] = X[:30] * np.float32(1 + 1e-6)  # so near that products in float64 keep few digits
    exact = np.linalg.norm(X[:5, None].astype(np.float64) - X[None], axis=2)
    np.testing.assert_allclose(distances(X[:5], X), exact, rtol=1e-12)
    assert (distances(X, X).diagonal() == 0).all()


def test_a_query_that_was_not_in_the_graph_is_refused_by_its_row():
    X = clusters(60, 4, 3, seed=6)
    model = KReciprocal(n_neighbors=5).fit(X)
    assert model.search(X[:2], k=1).ids.tolist() == [[0], [1]]
    with pytest.raises(UnseenQueriesError, match=r"KReciprocal ranks only .* row 1 of the queries"):
        model.search(X[:3] + np.array([[0], [0.5], [0]], dtype=np.float32))


def test_queries_given_to_fit_are_answered():
    X = clusters(60, 4, 3, seed=7)
    apart = KReciprocal(n_neighbors=5).fit(X[3:], queries=X[:3])
    joined = KReciprocal(n_neighbors=5).fit(X)
    np.testing.assert_allclose(mixed_distances(apart, 57), mixed_distances(joined, 60)[:3, 3:], rtol=1e-6, atol=1e-6)


def test_more_averaged_than_there_are_neighbours_is_refused():
    with pytest.raises(InputError, match="n_averaged = 7"):
        KReciprocal(n_neighbors=5, n_averaged=7).fit(clusters(60, 4, 3, seed=8))
    KReciprocal(n_neighbors=5, n_averaged=6).fit(clusters(60, 4, 3, seed=8))


@pytest.mark.parametrize(("name", "value"), [("n_averaged", 0), ("distance_weight", -0.1), ("distance_weight", 1.1)])
def test_a_setting_outside_its_range_is_refused(name, value):
    with pytest.raises(InputError, match=f"{name} = {value}; expected"):
        KReciprocal(**{name: value}).fit(clusters(60, 4, 3, seed=9))
