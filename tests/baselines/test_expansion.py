"""Query expansion and database augmentation: by hand, and their limits."""

import numpy as np
import pytest

from manifind.baselines.query_expansion import AQE, DBA, KNN, AlphaQE, cosine_powers, expanded
from reference.graphs import clusters

X = np.abs(clusters(40, 5, 4, seed=0))  # all cosines are positive


def rows(*values):
    return np.array(values, dtype=np.float32)


def test_a_point_plus_its_weighted_neighbours_by_hand():
    moved = expanded(rows([1, 0]), rows([0, 1], [1, 0]), np.array([[0, 1]]), rows([3, 3]))
    np.testing.assert_allclose(moved, [[0.8, 0.6]], atol=1e-6)


def test_a_negative_cosine_has_no_power_and_counts_nothing():
    ids = np.array([[0, 1]])
    powers = cosine_powers(rows([1, 0]), rows([0.6, 0.8], [-1, 0]), ids, 0.5)
    np.testing.assert_allclose(powers, [[0.6**0.5, 0]], rtol=1e-6)


def test_alpha_of_zero_is_average_query_expansion():
    average, weighted = AQE(n_neighbors=4).fit(X), AlphaQE(n_neighbors=4, alpha=0).fit(X)
    np.testing.assert_array_equal(average.search(k=40).ids, weighted.search(k=40).ids)


@pytest.mark.parametrize("method", [AlphaQE, DBA])
def test_with_a_very_large_alpha_neighbours_count_nothing_and_it_is_plain_search(method):
    plain = KNN().fit(X).search(k=40)
    np.testing.assert_array_equal(method(n_neighbors=4, alpha=1e5).fit(X).search(k=40).ids[:, 1:], plain.ids[:, 1:])


def test_an_augmented_item_is_itself_plus_its_others_times_their_cosine():
    model = DBA(n_neighbors=2, alpha=1).fit(X)
    x = model.descriptors_.astype(np.float64)
    cosines = x @ x.T - 2 * np.eye(40)
    first, second = np.argsort(-cosines, axis=1)[:, :2].T
    every = np.arange(40)
    total = x + cosines[every, first, None] * x[first] + cosines[every, second, None] * x[second]
    np.testing.assert_allclose(model.augmented_, total / np.linalg.norm(total, axis=1, keepdims=True), atol=1e-5)


def test_a_query_of_augmentation_can_be_expanded_too():
    one, other = (DBA(n_neighbors=3, n_query_neighbors=many).fit(X) for many in (None, 3))
    assert not np.array_equal(one.search(k=40).scores, other.search(k=40).scores)


def test_a_database_of_one_item_is_left_as_it_is():
    assert DBA().fit(X[:1]).search(X[:2], k=1).ids.tolist() == [[0], [0]]
