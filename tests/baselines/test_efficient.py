"""Efficient diffusion: cosines of profiles for what is in the graph, sums of profiles for what is not."""

import numpy as np
import pytest

from manifind.baselines.diffusion import Efficient
from manifind.baselines.query_expansion import KNN
from manifind.errors import InputError
from manifind.graph.knn_graph import transition
from reference.affinity import mutual_by_loops, similarity_by_loops
from reference.graphs import as_csr, clusters
from reference.neighbours import graph_neighbours_by_loops, nearest_by_loops
from reference.rerankers import cosine_by_loops, profile_by_loops

SMALL = {"preprocess": "none", "n_neighbors": 6, "truncation": 12}


def profiles_by_loops(X, n_neighbors, truncation, alpha=0.99):
    """(N, N) the profile of each row of X over the mutual graph of cubed cosines."""
    ids, distances = graph_neighbours_by_loops(X, n_neighbors)
    cubes = similarity_by_loops("cosine", X, X, ids, distances) ** 3
    S = transition(as_csr(mutual_by_loops(ids, cubes))).toarray()
    near, _ = nearest_by_loops(X, X, truncation, "euclidean")
    return np.array([profile_by_loops(S, sorted(near[i]), i, alpha, 20, 1e-6) for i in range(len(X))])


def by_item(ranking, n):
    """(m, n) the score of each item, whatever its place."""
    scores = np.empty((len(ranking.ids), n))
    np.put_along_axis(scores, ranking.ids, ranking.scores.astype(np.float64), axis=1)
    return scores


def two_arcs(n=60):
    rng = np.random.default_rng(0)
    t = np.linspace(0, np.pi, n)
    one = np.stack([np.cos(t), np.sin(t)], axis=1)
    other = np.stack([1 - np.cos(t), 0.5 - np.sin(t)], axis=1)
    X = np.concatenate([one, other]) + rng.normal(scale=0.01, size=(2 * n, 2))
    return X.astype(np.float32), np.repeat([0, 1], n)


def test_two_items_and_one_apart_by_hand():
    X = np.array([[1, 0], [1, 1e-3], [-1, 1]], dtype=np.float32)  # 0 and 1 choose each other; 2 is alone
    model = Efficient(preprocess="none", n_neighbors=1, alpha=0.5, truncation=2).fit(X)
    # S = [[0, 1], [1, 0]]: the profiles (4, 2) / 3 and (2, 4) / 3, with the cosine 16 / 20.
    np.testing.assert_allclose(model.profiles_.toarray()[:2] * 20**0.5, [[4, 2, 0], [2, 4, 0]], rtol=1e-6)
    np.testing.assert_allclose(model.lengths_, [20**0.5 / 3, 20**0.5 / 3, 1], rtol=1e-6)
    ids, scores = model.search(k=3)
    assert ids.tolist() == [[0, 1, 2], [1, 0, 2], [2, 1, 0]]
    np.testing.assert_allclose(scores[:, :2], [[1, 0.8], [1, 0.8], [1, -np.sqrt(4 + 0.999**2)]], rtol=1e-6)


@pytest.mark.parametrize("truncation", [4, 12, 25])
def test_a_query_in_the_graph_is_scored_by_the_cosine_of_profiles(truncation):
    X = clusters(25, 5, 3, seed=0)
    model = Efficient(**SMALL | {"truncation": truncation}).fit(X)
    O = profiles_by_loops(X, 6, truncation)  # noqa: E741
    expected = np.array([[cosine_by_loops(O[i], O[j]) for j in range(25)] for i in range(25)])
    scores = by_item(model.search(k=25), 25)
    reached = expected > 0
    assert 0 < reached.mean() < 1
    np.testing.assert_allclose(scores[reached], expected[reached], rtol=1e-4, atol=1e-6)
    assert (scores[~reached] < 0).all()


def test_an_unseen_query_is_scored_by_the_profiles_of_its_neighbours():
    X = clusters(40, 5, 3, seed=1)
    Q = X[:4] + np.float32(0.05)
    model = Efficient(**SMALL, n_query_neighbors=3).fit(X)
    ids, scores = nearest_by_loops(Q, X, 3, "euclidean")
    weights = similarity_by_loops("cosine", Q, X, ids, -scores) ** 3
    O = profiles_by_loops(X, 6, 12)  # noqa: E741
    expected = np.array([weights[row] @ O[ids[row]] for row in range(4)])
    scores = by_item(model.search(Q, k=40), 40)
    np.testing.assert_allclose(scores[expected > 0], expected[expected > 0], rtol=1e-4, atol=1e-6)
    assert (scores[expected == 0] < 0).all()


def test_without_truncation_profiles_are_the_exact_inverse():
    X = clusters(60, 5, 3, seed=2)
    model = Efficient(**SMALL | {"truncation": None}, iterations=500, tolerance=1e-12).fit(X)
    inverse = np.linalg.inv(np.eye(60) - 0.99 * transition(model.affinity_).toarray().astype(np.float64))
    np.testing.assert_allclose(model.profiles_.toarray() * model.lengths_[:, None], inverse, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.lengths_, np.linalg.norm(inverse, axis=1), rtol=1e-5)


@pytest.mark.parametrize("truncation", [60, 61, 10**9])
def test_a_truncation_to_all_nodes_or_more_is_none(truncation):
    X = clusters(60, 5, 3, seed=3)
    whole = Efficient(**SMALL | {"truncation": None}).fit(X).search(k=60)
    cut = Efficient(**SMALL | {"truncation": truncation}).fit(X).search(k=60)
    np.testing.assert_array_equal(cut.ids, whole.ids)
    np.testing.assert_array_equal(cut.scores, whole.scores)


def test_a_known_query_among_unseen_ones_is_answered_as_alone():
    X = clusters(60, 5, 3, seed=4)
    mixed = X[[7, 8, 9]] + np.array([[0], [0.1], [0]], dtype=np.float32)
    model = Efficient(**SMALL).fit(X)
    together, itself = model.search(mixed, k=60), model.search(k=60)
    for row, item in ((0, 7), (2, 9)):
        np.testing.assert_array_equal(together.ids[row], itself.ids[item])
        np.testing.assert_array_equal(together.scores[row], itself.scores[item])
    alone = model.search(mixed[1:2], k=60)
    np.testing.assert_array_equal(together.ids[1], alone.ids[0])
    np.testing.assert_array_equal(together.scores[1], alone.scores[0])


def test_queries_given_to_fit_are_compared_by_profile():
    X = clusters(60, 5, 3, seed=5)
    apart = Efficient(**SMALL).fit(X[3:], queries=X[:3]).search(k=57)
    joined = by_item(Efficient(**SMALL).fit(X).search(X[:3], k=60), 60)[:, 3:]
    np.testing.assert_allclose(by_item(apart, 57), joined, rtol=1e-5, atol=1e-6)


def test_what_no_query_reaches_stands_last_by_distance():
    X = np.concatenate([clusters(30, 4, 1, seed=6) + 20, -clusters(30, 4, 1, seed=7) - 20])
    ids, scores = Efficient(**SMALL).fit(X).search(k=60)
    assert (ids[:30, 30:] >= 30).all()
    plain = KNN(preprocess="none").fit(X).search(k=60)
    np.testing.assert_array_equal(ids[:30, 30:], plain.ids[:30, 30:])
    np.testing.assert_array_equal(scores[:30, 30:], plain.scores[:30, 30:])


def test_a_second_fit_forgets_the_first():
    first, second = clusters(50, 5, 3, seed=8), clusters(60, 5, 3, seed=9)
    model = Efficient(**SMALL).fit(first)
    model.search(k=5)
    again, fresh = model.fit(second).search(k=60), Efficient(**SMALL).fit(second).search(k=60)
    np.testing.assert_array_equal(again.ids, fresh.ids)
    np.testing.assert_array_equal(again.scores, fresh.scores)


def test_no_row_of_the_profiles_holds_more_than_the_truncation():
    model = Efficient(**SMALL).fit(clusters(80, 5, 3, seed=10))
    assert np.diff(model.profiles_.indptr).max() <= 12
    assert model.profiles_.dtype == np.float32
    assert model.profiles_.indices.dtype == np.int32


def test_it_finds_its_own_arc_where_distance_does_not():
    X, labels = two_arcs()
    own = labels[:, None] == labels
    model = Efficient(preprocess="none", n_neighbors=5, similarity="gaussian", truncation=80).fit(X)
    ours, plain = model.search(k=60).ids, KNN(preprocess="none").fit(X).search(k=60).ids
    assert np.take_along_axis(own, ours, 1).mean() > 0.95
    assert np.take_along_axis(own, plain, 1).mean() < 0.85


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 0),
        ("alpha", 1.0),
        ("truncation", 0),
        ("iterations", 0),
        ("tolerance", 0.0),
        ("n_query_neighbors", 0),
        ("similarity", "dot"),
        ("graph", "directed"),
    ],
)
def test_a_setting_outside_its_range_is_refused(name, value):
    with pytest.raises(InputError, match=f"{name} = {value!r}; expected"):
        Efficient(**{name: value}).fit(clusters(60, 5, 3, seed=0))
