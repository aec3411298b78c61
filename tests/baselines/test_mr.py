"""Manifold ranking: the walk, its limit, and what stands where no walk arrives."""

import numpy as np
import pytest
from scipy.linalg import inv

from manifind.baselines import diffusion as mr
from manifind.baselines.diffusion import ManifoldRanking
from manifind.graph.knn_graph import transition
from reference.graphs import clusters

X = clusters(40, 6, 4, seed=0)
SETTINGS = {"n_neighbors": 5, "graph": "union", "alpha": 0.9}


def closed_form(model):
    S = transition(model.affinity_).toarray().astype(np.float64)
    return (1 - model.alpha) * inv(np.eye(len(S)) - model.alpha * S)


def test_scores_are_rows_of_the_closed_form():
    model = ManifoldRanking(**SETTINGS).fit(X)
    ids, scores = model.search(k=5)
    expected = np.take_along_axis(closed_form(model), ids, 1)
    np.testing.assert_allclose(scores, expected, rtol=1e-5)


def test_large_graphs_which_walk_query_by_query_give_the_same(monkeypatch):
    small = ManifoldRanking(**SETTINGS).fit(X).search(k=40)
    monkeypatch.setattr(mr, "_DENSE_UP_TO", 0)
    large = ManifoldRanking(**SETTINGS).fit(X).search(k=40)
    np.testing.assert_allclose(large.scores, small.scores, rtol=1e-5)


def test_the_iteration_reaches_the_closed_form():
    one, many = (ManifoldRanking(**SETTINGS, steps=steps).fit(X).search(k=5).scores for steps in (1, 400))
    limit = ManifoldRanking(**SETTINGS).fit(X).search(k=5).scores
    np.testing.assert_allclose(many, limit, rtol=1e-5)
    assert not np.allclose(one, limit, rtol=1e-2)


def test_an_unseen_query_is_the_sum_of_what_its_neighbours_would_be_times_their_similarity():
    model = ManifoldRanking(**SETTINGS, n_query_neighbors=2).fit(X)
    q = (X[:1] + X[1:2]) / 2
    start = model._start(model._prepare(q)).toarray()
    assert (start > 0).sum() == 2
    ids, scores = model.search(q, k=5)
    np.testing.assert_allclose(scores[0], (start @ closed_form(model))[0, ids[0]], rtol=1e-5)


def test_a_query_equal_to_an_item_is_that_item():
    model = ManifoldRanking(**SETTINGS).fit(X)
    np.testing.assert_array_equal(model.search(X[3:5], k=40).ids, model.search(k=40).ids[3:5])


def test_items_that_no_walk_reaches_follow_by_distance_with_negative_scores():
    far = np.concatenate([np.eye(3, 8) + 0.01 * np.eye(3, 8, 3), -np.eye(4, 8) + 0.01 * np.eye(4, 8, 4)])
    model = ManifoldRanking(preprocess="none", n_neighbors=2, graph="mutual").fit(far.astype(np.float32))
    ids, scores = model.search(k=7)
    reached = scores > 0
    assert 0 < reached.sum() < reached.size
    distances = np.linalg.norm(far[:, None] - far, axis=2)
    for query in range(7):
        behind = ids[query][~reached[query]]
        np.testing.assert_allclose(scores[query][~reached[query]], -distances[query, behind], rtol=1e-5)
        assert (np.diff(distances[query, behind]) >= -1e-6).all()


@pytest.mark.parametrize("alpha", [0, 1, 1.5, "0.9", None])
def test_a_restart_that_is_no_probability_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha = .*; expected a number between 0 and 1"):
        ManifoldRanking(alpha=alpha).fit(X)
