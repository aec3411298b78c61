"""Anchors: how many, where, and always the same ones for the same seed."""

import numpy as np
import pytest

from manifind.graph.anchors import kmeans_anchors
from manifind.index import exact
from reference.graphs import clusters
from reference.neighbours import nearest_by_loops


def test_the_same_seed_gives_the_same_anchors():
    X = clusters(300, 5, 6, seed=0)
    np.testing.assert_array_equal(kmeans_anchors(X, 10, 3), kmeans_anchors(X.copy(), 10, 3))


def test_another_seed_gives_other_anchors():
    X = clusters(300, 5, 6, seed=0)
    assert not np.array_equal(kmeans_anchors(X, 10, 3), kmeans_anchors(X, 10, 4))


@pytest.mark.parametrize(("n", "n_anchors", "B"), [(50, 8, 8), (8, 8, 8), (5, 8, 5), (1, 100, 1)])
def test_there_are_as_many_anchors_as_asked_for_or_as_items(n, n_anchors, B):
    U = kmeans_anchors(clusters(n, 3, 2, seed=1), n_anchors, 0)
    assert U.shape == (B, 3)
    assert U.dtype == np.float32
    assert U.flags.c_contiguous
    assert np.isfinite(U).all()


def test_with_as_many_anchors_as_items_every_item_is_an_anchor():
    X = clusters(9, 3, 3, seed=2)
    U = kmeans_anchors(X, 20, 0)
    np.testing.assert_allclose(U[np.lexsort(U.T)], X[np.lexsort(X.T)], rtol=1e-6)


def test_every_anchor_is_the_mean_of_the_items_nearest_to_it():
    X = clusters(150, 2, 4, seed=3)
    U = kmeans_anchors(X, 4, 0)
    ids, _ = nearest_by_loops(X, U, 1, "euclidean")
    means = [X[ids[:, 0] == anchor].mean(axis=0) for anchor in range(4)]
    np.testing.assert_allclose(U, means, atol=1e-4)


def test_one_anchor_is_the_mean_of_everything():
    X = clusters(100, 4, 3, seed=4)
    np.testing.assert_allclose(kmeans_anchors(X, 1, 0)[0], X.mean(axis=0), atol=1e-5)


def test_a_sample_of_a_large_set_is_enough(monkeypatch):
    monkeypatch.setattr(exact, "_MOST_POINTS_PER_CENTRE", 10)
    X = clusters(2000, 3, 2, seed=5)
    U = kmeans_anchors(X, 2, 0)
    assert U.shape == (2, 3)
    assert np.isfinite(U).all()


def test_nothing_is_written_to_the_input_or_the_terminal(capfd):
    X = clusters(20, 3, 2, seed=6)
    X.flags.writeable = False
    kmeans_anchors(X, 15, 0)
    assert capfd.readouterr() == ("", "")
