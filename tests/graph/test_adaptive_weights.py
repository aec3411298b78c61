"""Adaptive weights: by hand, by loops, and that they are the sharp ones where nothing speaks against these."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifind import GradNet
from manifind.graph.adaptive_weights import (
    EdgeShape,
    adaptive_similarity,
    edge_shape,
    intrinsic_dimension,
    shared_neighbours,
    similarity_from_outside,
)
from manifind.graph.knn_graph import neighbour_similarity
from manifind.graph.neighbour_agreement import FULL_AGREEMENT, NeighbourAgreement
from manifind.index.exact import graph_neighbours
from reference.graphs import clusters

SURE = NeighbourAgreement(0.9, 1.0)


def cloud(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def test_dimension_of_three_distances_by_hand():
    distances = np.array([[1.0, 2.0, 4.0]], dtype=np.float32)
    expected = 2 / (math.log(4) + math.log(2))
    assert intrinsic_dimension(distances) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("d", [2, 4, 8])
def test_dimension_of_a_uniform_cloud_is_about_its_own(d):
    X = np.random.default_rng(0).uniform(size=(4000, d)).astype(np.float32)
    found = intrinsic_dimension(graph_neighbours(X, 10).distances)
    assert 0.75 * d < found < 1.35 * d


def test_dimension_survives_equal_distances_and_too_few_neighbours():
    assert intrinsic_dimension(np.ones((5, 4), dtype=np.float32)) == math.inf
    assert intrinsic_dimension(np.zeros((5, 4), dtype=np.float32)) == math.inf
    assert intrinsic_dimension(np.ones((5, 1), dtype=np.float32)) == 0


def test_shared_neighbours_by_hand():
    ids = np.array([[1], [0], [1], [2]])  # lists, with themselves: {0 1} {1 0} {2 1} {3 2}
    np.testing.assert_allclose(shared_neighbours(ids), [[1], [1], [1 / 3], [1 / 3]], rtol=1e-6)


@pytest.mark.parametrize("k", [3, 10, 14])
def test_shared_neighbours_equal_sets(k):
    ids = graph_neighbours(cloud(60, 3), k).ids
    lists = [{i, *ids[i, :10].tolist()} for i in range(len(ids))]
    expected = [[len(lists[i] & lists[j]) / len(lists[i] | lists[j]) for j in ids[i]] for i in range(len(ids))]
    np.testing.assert_allclose(shared_neighbours(ids), expected, rtol=1e-6)


def test_weights_equal_the_loops():
    ids, distances = graph_neighbours(cloud(50, 4), 8)
    shape, J, means = EdgeShape(0.3, 0.5, 1.0), shared_neighbours(ids), distances.mean(axis=1)
    expected = [
        [
            math.exp(-0.5 * (distances[i, a] / (0.3 * (means[i] + means[j]) / 2)) ** 2) * math.sqrt(J[i, a])
            for a, j in enumerate(ids[i])
        ]
        for i in range(len(ids))
    ]
    np.testing.assert_allclose(adaptive_similarity(ids, distances, shape), expected, rtol=1e-5)


def test_weights_of_a_manifold_of_few_dimensions_are_the_sharp_ones_to_the_bit():
    X = cloud(80, 3)
    ids, distances = graph_neighbours(X, 12)
    sharp = neighbour_similarity("sharp", X, X, ids, distances, distances.mean(axis=1))
    shape = edge_shape(intrinsic_dimension(distances), SURE)
    assert np.array_equal(adaptive_similarity(ids, distances, shape), sharp)


@pytest.mark.parametrize("agreement", [FULL_AGREEMENT, NeighbourAgreement(0.3, 1.0), NeighbourAgreement(-0.1, 0.0)])
def test_weights_stay_sharp_where_neighbours_are_not_known_to_be_reliable(agreement):
    assert edge_shape(30.0, agreement) == EdgeShape(0.2, 0.0, 0.0)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(-1, 1), st.floats(-1, 1))
def test_shape_rises_with_the_dimension_and_with_the_agreement(one, other, less, more):
    low, high = (
        edge_shape(dimension, NeighbourAgreement(agreement, 1.0))
        for dimension, agreement in zip(sorted((one, other)), sorted((less, more)), strict=True)
    )
    assert all(a <= b + 1e-12 for a, b in zip(low, high, strict=True))
    assert 0.2 <= low.width <= high.width <= 0.34 + 1e-9
    assert 0 <= low.sharing <= high.sharing <= 1


def test_shape_of_infinite_dimension_is_the_widest():
    assert edge_shape(math.inf, SURE) == pytest.approx(EdgeShape(0.34, 1.0, 2.0))


def test_weights_are_positive_where_all_neighbours_are_at_distance_zero():
    ids = np.array([[1, 2], [0, 2], [0, 1]])
    weights = adaptive_similarity(ids, np.zeros((3, 2), dtype=np.float32), EdgeShape(0.34, 1.0, 2.0))
    assert (weights > 0).all()
    assert weights.dtype == np.float32


def test_fit_says_what_the_edges_were_like():
    model = GradNet(max_steps=2, random_state=0).fit(cloud(200, 40))
    assert model.info_["intrinsic_dimension"] > 8
    assert model.info_["edges_like"].keys() == {"width", "sharing", "descriptor_weight"}
    assert GradNet(similarity="sharp", max_steps=2, random_state=0).fit(cloud(60, 4)).info_["edges_like"] is None


def test_a_width_that_is_given_takes_the_place_of_the_one_that_suits():
    model = GradNet(max_steps=2, random_state=0, kernel_width=0.5).fit(cloud(200, 40))
    assert model.info_["edges_like"]["width"] == 0.5
    narrow = GradNet(max_steps=2, random_state=0, kernel_width=0.1).fit(cloud(200, 40))
    assert narrow.manifold_.affinity.nnz < model.manifold_.affinity.nnz  # weak edges are left out


def test_adaptive_weights_are_measured_without_the_guard_too():
    X = np.concatenate([clusters(40, 5, 24, seed=1), clusters(40, 5, 24, seed=2)])
    with_guard, without = (GradNet(max_steps=2, random_state=0, guard=guard).fit(X) for guard in (True, False))
    assert with_guard.info_["edges_like"] == without.info_["edges_like"]


@pytest.mark.parametrize(("kind", "expected"), [("adaptive", "sharp"), ("gaussian", "gaussian")])
def test_an_item_that_comes_later_is_linked_by_weights_that_need_no_graph(kind, expected):
    assert similarity_from_outside(kind) == expected
