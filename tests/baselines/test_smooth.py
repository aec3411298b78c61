"""Smoothed descriptors: the mean of what a walk finds."""

import numpy as np
from scipy.linalg import inv

from manifind.baselines.diffusion import Smooth
from manifind.graph.knn_graph import transition
from reference.graphs import clusters

X = clusters(40, 70, 4, seed=0)  # more columns than a block


def test_features_are_the_descriptors_times_the_inverse_with_unit_rows():
    model = Smooth(n_neighbors=5, graph="union", alpha=0.8).fit(X)
    S = transition(model.affinity_).toarray().astype(np.float64)
    smooth = inv(np.eye(40) - 0.8 * S) @ model.descriptors_
    smooth /= np.linalg.norm(smooth, axis=1, keepdims=True)
    np.testing.assert_allclose(model.features_, smooth, atol=1e-5)


def test_with_hardly_any_walk_they_are_the_descriptors():
    model = Smooth(n_neighbors=5, alpha=1e-6).fit(X)
    np.testing.assert_allclose(model.features_, model.descriptors_, atol=1e-5)


def test_an_unseen_query_between_two_items_gets_features_between_theirs_and_an_item_its_own():
    model = Smooth(n_neighbors=5, n_query_neighbors=2).fit(X)
    one, other = np.argsort(((X - X[0]) ** 2).sum(axis=1))[:2]
    feature = model.transform(0.6 * X[[one]] + 0.4 * X[[other]])
    assert (feature @ model.features_[[one, other]].T > 0.9).all()
    np.testing.assert_array_equal(model.transform(X), model.features_)
