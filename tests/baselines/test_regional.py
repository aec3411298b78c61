"""Diffusion by conjugate gradients, over items and over regions."""

import numpy as np
import pytest

from manifind.baselines.diffusion import ManifoldRanking
from manifind.baselines.regional import Regional, image_numbers, pooling_weights
from manifind.errors import InputError
from reference.graphs import clusters

X = clusters(60, 6, 4, seed=0)
GRAPH = {"n_neighbors": 6, "graph": "union", "similarity": "euclidean", "alpha": 0.9}


def test_with_enough_iterations_it_is_manifold_ranking():
    ours = Regional(**GRAPH, iterations=200).fit(X).search(k=20)
    theirs = ManifoldRanking(**GRAPH).fit(X).search(k=20)
    np.testing.assert_array_equal(ours.ids, theirs.ids)
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-3)


def test_one_region_for_each_image_equals_the_global_form():
    Q = X[:5] + 0.01
    plain = Regional(**GRAPH).fit(X).search(Q, k=60)
    regions = Regional(**GRAPH).fit(X, images=np.arange(60)).search(Q, k=60, query_images=np.arange(5))
    np.testing.assert_array_equal(plain.ids, regions.ids)
    np.testing.assert_allclose(plain.scores, regions.scores, rtol=1e-6)


def test_regions_of_one_image_answer_together():
    images = np.repeat(np.arange(20), 3)
    ranking = Regional(**GRAPH).fit(X, images=images).search(k=20)
    np.testing.assert_array_equal(np.sort(ranking.ids, axis=1), np.tile(np.arange(20), (20, 1)))
    np.testing.assert_array_equal(ranking.ids[:, 0], np.arange(20))


def test_queries_of_several_regions_known_beforehand_are_answered_as_wholes():
    images, queries = np.repeat(np.arange(18), 3), np.array([0, 0, 0, 1, 1, 1])
    model = Regional(**GRAPH).fit(X[6:], X[:6], images=images, query_images=queries)
    assert model.search(k=18).ids.shape == (2, 18)


def test_a_region_that_appears_twice_counts_as_little_more_than_once():
    V = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    np.testing.assert_allclose(pooling_weights(V, np.zeros(3, dtype=np.int64)), [2 / 3, 2 / 3, 1])


def test_truncation_to_everything_changes_nothing_and_to_little_leaves_the_rest_behind():
    Q = X[:4] + 0.01
    whole, same = (Regional(**GRAPH, truncation=t).fit(X).search(Q, k=60) for t in (None, 60))
    np.testing.assert_array_equal(whole.ids, same.ids)
    few = Regional(**GRAPH, truncation=9, n_query_neighbors=3).fit(X).search(Q, k=60)
    assert ((few.scores > 0).sum(axis=1) <= 9 + 3).all()
    assert (few.scores[:, 0] > 0).all()


@pytest.mark.parametrize(
    ("images", "words"),
    [([0, 1], "expected 60 whole numbers"), (np.full(60, 0.5), "whole numbers"), (np.arange(60) * 2, "gaps")],
)
def test_numbers_of_images_that_make_no_sense_are_refused(images, words):
    with pytest.raises(InputError, match=words):
        Regional(**GRAPH).fit(X, images=images)


def test_without_numbers_every_row_is_an_image():
    assert image_numbers(None, 3, "images").tolist() == [0, 1, 2]
