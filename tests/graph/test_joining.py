"""The weights by which an unseen query joins: by hand, against the walks of a graph that it joins, at the limits."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.graph.adaptive_weights import SHARP, EdgeShape
from manifind.graph.joining import JoiningShape, NodeScales, joining_shape, joining_weights, walk_factors
from manifind.graph.preprocess import unit_rows

USUAL = JoiningShape(0.25, 0.5)


def row(*values):
    return np.array([values], dtype=np.float32)


def by_loops(distances, near, width, own):
    mean, weights = sum(distances) / len(distances), []
    for distance, spread, degree, length in zip(distances, *near, strict=True):
        s = width * (own * mean + (1 - own) * spread)
        a = math.exp(-(distance**2) / (2 * s**2))
        weights.append(a * math.sqrt(length / math.sqrt(degree + a)))
    return [weight / max(weights) for weight in weights]


def test_three_neighbours_by_hand():
    # s = 1 for all: the edges weigh e^-0.5, e^-2 and e^-2.
    near = NodeScales(row(2, 2, 2), row(1, 1, 4), row(1, 2, 2))
    found = joining_weights(
        row(1, 2, 2) * np.float32(6 / 5), NodeScales(row(2, 2, 2), *near[1:]), JoiningShape(0.6, 0.5)
    )
    edges = [math.exp(-0.5), math.exp(-2), math.exp(-2)]
    nodes = zip(edges, (1, 1, 4), (1, 2, 2), strict=True)
    expected = np.array([edge * math.sqrt(length / math.sqrt(degree + edge)) for edge, degree, length in nodes])
    np.testing.assert_allclose(found[0], expected / expected.max(), rtol=1e-6)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 8), width=st.floats(0.1, 2), own=st.floats(0.5, 1))
@settings(max_examples=60, derandomize=True)
def test_they_equal_the_loops(seed, k, width, own):
    rng = np.random.default_rng(seed)
    distances, *near = rng.uniform(0.5, 1.5, size=(4, 3, k)).astype(np.float32)
    found = joining_weights(distances, NodeScales(*near), JoiningShape(width, own))
    for q in range(3):
        np.testing.assert_allclose(
            found[q], by_loops(distances[q], [part[q] for part in near], width, own), rtol=1e-3, atol=1e-6
        )


def test_walks_from_a_query_with_weak_edges_end_where_the_weighted_ends_of_its_neighbours_are():
    rng = np.random.default_rng(0)
    N, alpha = 12, 0.9
    A = rng.uniform(size=(N, N)) * (rng.uniform(size=(N, N)) < 0.5)
    A = A + A.T + np.eye(N, k=1) + np.eye(N, k=-1)
    np.fill_diagonal(A, 0)
    edges = np.zeros(N)
    edges[[2, 5, 9]] = [1e-6, 2e-6, 5e-7]  # so weak that the walks of all others stay as they are
    joined = np.block([[A, edges[:, None]], [edges[None], np.zeros((1, 1))]])

    def walks(graph):
        degrees = graph.sum(axis=1)
        S = graph / np.sqrt(degrees[:, None] * degrees[None])
        return np.linalg.inv(np.eye(len(graph)) - alpha * S)

    W = walks(A)
    lengths, degrees = np.linalg.norm(W, axis=1), A.sum(axis=1)
    near = NodeScales(*(part.astype(np.float32)[None, [2, 5, 9]] for part in (degrees, degrees, lengths)))
    weak = edges[None, [2, 5, 9]].astype(np.float32)
    weights = weak * walk_factors(weak, near)
    features = unit_rows(W.astype(np.float32))
    found = unit_rows(weights @ features[[2, 5, 9]])[0]
    exact = walks(joined)[-1, :N]
    np.testing.assert_allclose(found, exact / np.linalg.norm(exact), atol=1e-3)


def test_the_more_edges_a_node_has_the_less_it_weighs():
    near = NodeScales(row(1, 1), row(1, 100), row(1, 1))
    weights = joining_weights(row(1, 1), near, JoiningShape(1.0, 0.5))
    assert weights[0, 0] == 1
    assert weights[0, 1] < 0.4


def test_a_query_far_from_everything_still_has_a_nearest_neighbour():
    distances = row(1000, 1001, 2000)
    weights = joining_weights(
        distances, NodeScales(row(1e-3, 1e-3, 1e-3), row(1, 1, 1), row(1, 1, 1)), JoiningShape(0.01, 0.5)
    )
    assert weights[0, 0] == 1
    assert np.isfinite(weights).all()
    assert (np.diff(weights[0]) <= 0).all()


@pytest.mark.parametrize("distance", [0.0, 1e-30, 1e30])
@pytest.mark.parametrize("value", [0.0, 1e-30, 1e30])
def test_no_scale_makes_a_nan(distance, value):
    for part in range(3):
        near = [row(1, 1), row(1, 1), row(1, 1)]
        near[part] = row(value, 1)
        weights = joining_weights(row(distance, distance), NodeScales(*near), USUAL)
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()
        everywhere = [np.full_like(one, value) if number == part else one for number, one in enumerate(near)]
        assert np.isfinite(joining_weights(row(distance, distance), NodeScales(*everywhere), USUAL)).all()


def test_one_query_or_many_weigh_alike_bit_for_bit():
    rng = np.random.default_rng(0)
    distances, *near = rng.uniform(0.5, 1.5, size=(4, 50, 10)).astype(np.float32)
    together = joining_weights(distances, NodeScales(*near), USUAL)
    for q in range(50):
        alone = joining_weights(distances[[q]], NodeScales(*(part[[q]] for part in near)), USUAL)
        np.testing.assert_array_equal(alone[0], together[q])


def test_edges_to_queries_are_as_wide_as_the_graphs_own_in_the_mean_distance_of_fewer_neighbours():
    distances = np.array([[1, 2, 3], [1, 2, 3]], dtype=np.float32)
    found = joining_shape(distances, distances[:, :1].mean(axis=1), EdgeShape(0.3, 0.5, 0))
    assert found == pytest.approx((0.3 * 2, 0.75))


def test_narrow_ones_are_widened():
    distances = np.ones((2, 3), dtype=np.float32)
    assert joining_shape(distances, distances[:, 0], SHARP) == pytest.approx((0.22, 0.5))
    assert joining_shape(distances * 0, distances[:, 0] * 0, SHARP) == pytest.approx((0.22, 0.5))


def test_the_more_is_the_querys_own_the_less_matters_how_far_nodes_are_from_their_nearest():
    near = NodeScales(row(1, 2), row(1, 1), row(1, 1))
    mixed, own = (joining_weights(row(1, 1), near, JoiningShape(0.5, share))[0] for share in (0.5, 1.0))
    np.testing.assert_array_equal(own, [1, 1])
    assert mixed[0] < mixed[1]
