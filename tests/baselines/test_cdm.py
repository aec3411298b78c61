"""Contextual dissimilarity: factors that even out how near the neighbours of an item are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.baselines.query_expansion import CDM, KNN, even_factors
from manifind.errors import InputError
from manifind.index.exact import graph_neighbours
from reference.graphs import clusters
from reference.neighbours import nearest_by_loops
from reference.rerankers import cdm_factors_by_loops


def uneven(n, seed):
    """(n, 4): two clusters, one of them five times as wide."""
    rng = np.random.default_rng(seed)
    wide = np.arange(n)[:, None] % 2 == 0
    return (rng.normal(size=(n, 4)) * np.where(wide, 5, 1) + 8 * wide).astype(np.float32)


def test_three_points_on_a_line_by_hand():
    X = np.array([[0], [1], [3]], dtype=np.float32)  # the nearest are 1, 1 and 2 away: their mean is 2^(1/3)
    model = CDM(preprocess="none", n_neighbors=1, alpha=1.0, iterations=1).fit(X)
    near, far = 2 ** (1 / 6), 2 ** (1 / 6 - 1 / 2)
    np.testing.assert_allclose(model.factors_, [near, near, far], rtol=1e-6)
    ids, scores = model.search(np.array([[1.9]], dtype=np.float32), k=3)
    assert ids.tolist() == [[2, 1, 0]]  # 1.1 and 0.9 away, but the point that stands alone is drawn nearer
    np.testing.assert_allclose(scores, [[-1.1 * far, -0.9 * near, -1.9 * near]], rtol=1e-6)


@settings(max_examples=30)
@given(st.integers(2, 20), st.integers(0, 2**16), st.floats(0.1, 1), st.integers(1, 5), st.data())
def test_the_factors_equal_the_loops(n, seed, alpha, iterations, data):
    X, k = clusters(n, 3, 3, seed), data.draw(st.integers(1, n - 1))
    factors = even_factors(graph_neighbours(X, n - 1), k, alpha, iterations)
    np.testing.assert_allclose(factors, cdm_factors_by_loops(X, k, alpha, iterations), rtol=5e-3)


@pytest.mark.parametrize("iterations", [1, 3])
def test_the_first_updates_equal_the_loops_closely(iterations):
    X = uneven(40, 0)
    model = CDM(preprocess="none", n_neighbors=10, alpha=1.0, iterations=iterations).fit(X)
    np.testing.assert_allclose(model.factors_, cdm_factors_by_loops(X, 10, 1.0, iterations), rtol=1e-5)


def test_scores_are_negative_distances_times_the_factor_of_the_item():
    X, Q = uneven(50, 1), uneven(6, 2)
    model = CDM(preprocess="none", n_neighbors=5).fit(X)
    ids, scores = model.search(Q, k=50)
    plain_ids, plain = nearest_by_loops(Q, X, 50, "euclidean")
    expected = np.empty((6, 50))
    np.put_along_axis(expected, plain_ids, plain * model.factors_[plain_ids], axis=1)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, ids, 1), rtol=1e-6)


def test_updates_bring_the_neighbour_distances_together():
    neighbours = graph_neighbours(uneven(200, 3), 199)

    def spread(delta):
        scaled = np.sort(neighbours.distances * delta[neighbours.ids] * delta[:, None], axis=1)
        return np.ptp(np.log(scaled[:, :10].mean(axis=1)))

    spreads = [spread(even_factors(neighbours, 10, 1.0, steps)) for steps in (1, 3, 30)]
    assert spread(np.ones(200)) > spreads[0] > spreads[1] > spreads[2]
    assert spreads[2] < 5e-3


def test_few_candidates_give_nearly_the_factors_of_all():
    X = uneven(400, 4)
    every, few = (even_factors(graph_neighbours(X, width), 10, 0.5, 3) for width in (399, 40))
    np.testing.assert_allclose(few, every, rtol=0.05)


def test_items_of_the_wide_cluster_are_drawn_nearer_and_factors_cancel_out():
    X = uneven(100, 5)
    factors = CDM(preprocess="none", n_neighbors=10).fit(X).factors_
    assert np.median(factors[::2]) < 1 < np.median(factors[1::2])
    np.testing.assert_allclose(np.log(factors).mean(), 0, atol=1e-12)


def test_evenly_spread_items_keep_the_plain_ranking():
    turn = 2 * np.pi * np.arange(36) / 36
    X = np.stack([np.cos(turn), np.sin(turn)], axis=1).astype(np.float32)
    Q = np.random.default_rng(6).normal(size=(5, 2)).astype(np.float32)
    np.testing.assert_allclose(CDM(n_neighbors=4).fit(X).factors_, 1, rtol=1e-5)
    np.testing.assert_array_equal(CDM(n_neighbors=4).fit(X).search(Q, k=36).ids, KNN().fit(X).search(Q, k=36).ids)


def test_copies_of_an_item_change_no_factor():
    X = uneven(60, 7)
    once = CDM(preprocess="none", n_neighbors=5).fit(X).factors_
    copied = CDM(preprocess="none", n_neighbors=5).fit(np.concatenate([X, np.repeat(X[:1], 20, axis=0)])).factors_
    np.testing.assert_array_equal(copied[:60], once)
    assert (copied[60:] == once[0]).all()


@pytest.mark.parametrize("X", [np.ones((1, 3)), np.ones((5, 3)), np.eye(2)])
def test_one_or_two_distinct_items_have_the_factor_one(X):
    model = CDM().fit(X)
    np.testing.assert_allclose(model.factors_, 1)
    assert model.search(k=len(X)).ids.shape == (len(X), len(X))


@pytest.mark.parametrize(("name", "value"), [("alpha", 0), ("alpha", 1.5), ("iterations", 0), ("n_neighbors", 0)])
def test_a_setting_outside_its_range_is_refused(name, value):
    with pytest.raises(InputError, match=f"{name} = {value}; expected"):
        CDM(**{name: value}).fit(uneven(30, 8))
