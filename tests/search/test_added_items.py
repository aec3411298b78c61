"""Items that come later: placed as queries are answered, and nobody else has a say in where."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.errors import InputError
from manifind.search.live_index import place
from reference.neighbours import nearest_by_loops
from search.test_feature_model import N, learned, random_rows

PARTS = ("descriptors", "lengths", "features", "neighbours", "distances")


@pytest.fixture(scope="module", params=["none", "unit", "center", "whiten"])
def fitted(request):
    X = random_rows(N, 4, 0)
    X[[9, 30]] = X[3]  # one node for three items
    return learned(X, request.param, inside=np.arange(N) % 7 != 0)


def test_features_are_what_a_query_gets(fitted):
    X = np.concatenate([random_rows(5, 4, 1), random_rows(N, 4, 0)[[3, 50]]])
    placed = place(fitted, X, 3)
    np.testing.assert_array_equal(placed.features, fitted.transform(X))
    np.testing.assert_array_equal(placed.features[5], fitted.features[9])
    np.testing.assert_array_equal(placed.descriptors, fitted.prepared(X))


def test_neighbours_are_the_nearest_nodes(fitted):
    placed = place(fitted, random_rows(6, 4, 2), 5)
    nodes = fitted.nodes
    ids, scores = nearest_by_loops(placed.descriptors, fitted.descriptors[nodes], 5, "euclidean")
    np.testing.assert_array_equal(placed.neighbours, nodes[ids])
    np.testing.assert_allclose(placed.distances, -scores, rtol=1e-6)
    assert (np.diff(placed.distances, axis=1) >= 0).all()
    assert placed.neighbours.dtype == np.int64


def test_there_are_never_more_neighbours_than_nodes(fitted):
    placed = place(fitted, random_rows(2, 4, 2), 10 * N)
    assert placed.neighbours.shape == placed.distances.shape == (2, len(fitted.nodes))
    assert (np.sort(placed.neighbours) == fitted.nodes).all()


def test_the_lengths_bring_the_descriptors_back(fitted):
    X = 7 * random_rows(5, 4, 3)
    placed = place(fitted, X, 3)
    np.testing.assert_allclose(fitted.preprocessor.restore(placed.descriptors, placed.lengths), X, rtol=1e-5, atol=1e-5)
    assert placed.lengths.shape == (5, 1)
    assert (placed.lengths > 0).all()


def test_zeros_are_placed_like_anything_else(fitted):
    placed = place(fitted, np.zeros((1, 4)), 3)
    assert (placed.lengths > 0).all()
    assert all(np.isfinite(getattr(placed, part)).all() for part in PARTS)


@given(seed=st.integers(0, 10**6), k=st.integers(1, N), order=st.permutations(range(5)), passes=st.sampled_from([1, 2]))
@settings(max_examples=40, derandomize=True)
def test_one_by_one_or_together_in_any_order_gives_the_same_bit_for_bit(seed, k, order, passes):
    fitted = learned(random_rows(N, 4, 0), "unit", passes=passes)
    X = random_rows(5, 4, seed)
    X[2] = fitted.descriptors[seed % N]
    together, other = place(fitted, X, k), place(fitted, X[list(order)], k)
    for row in range(5):
        alone = place(fitted, X[row : row + 1], k)
        for part in PARTS:
            np.testing.assert_array_equal(getattr(alone, part)[0], getattr(together, part)[row])
    for part in PARTS:
        np.testing.assert_array_equal(getattr(other, part), getattr(together, part)[list(order)])


@pytest.mark.parametrize(
    ("X", "problem"),
    [
        (np.ones((2, 3)), "3 features, but it is expecting 4"),
        (np.ones(4), "expected two dimensions"),
        (np.ones((0, 4)), "is empty"),
        ([[1, 2, np.nan, 4]], "NaN at row 0, column 2"),
        ([["a", "b", "c", "d"]], "has dtype <U1"),
    ],
)
def test_descriptors_that_cannot_be_used_are_refused(fitted, X, problem):
    with pytest.raises(InputError, match=problem):
        place(fitted, X, 3)


def test_what_is_given_is_not_written_to_and_not_shared(fitted):
    X = random_rows(3, 4, 4)
    before = X.copy()
    placed = place(fitted, X, 3)
    np.testing.assert_array_equal(X, before)
    X[:] = 0
    np.testing.assert_array_equal(placed.features, place(fitted, before, 3).features)
    np.testing.assert_array_equal(placed.descriptors, place(fitted, before, 3).descriptors)
