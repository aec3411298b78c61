"""Anchor codes: the smallest error on the simplex of the nearest anchors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from manifind.graph import anchors as sparse_coding
from manifind.graph.anchors import (
    anchor_codes,
    certified_gap,
    kmeans_anchors,
    project_to_simplex,
    simplex_least_squares,
)
from reference.graphs import clusters
from reference.neighbours import nearest_by_loops
from reference.sparse_coding import codes_by_solver, project_by_bisection, simplex_objective


def rows(*values):
    return np.array(values, dtype=np.float32)


def random_problem(n, B, d, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=(B, d)).astype(np.float32)


vectors = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=st.floats(-100, 100, allow_subnormal=False)
)


@pytest.mark.equation(9)
def test_codes_of_points_on_a_line_by_hand():
    Z = anchor_codes(rows([0.25], [-0.5], [1.0], [7.0]), rows([0], [1]), 2).toarray()
    np.testing.assert_allclose(Z, [[0.75, 0.25], [1, 0], [0, 1], [0, 1]], atol=1e-5)


@pytest.mark.equation(9)
def test_codes_inside_and_outside_a_triangle_by_hand():
    anchors = rows([0, 0], [3, 0], [0, 3])
    inside, beyond_the_edge, beyond_a_corner = [1, 1], [1, -5], [-1, -1]
    Z = anchor_codes(rows(inside, beyond_the_edge, beyond_a_corner), anchors, 3).toarray()
    np.testing.assert_allclose(Z, [[1 / 3, 1 / 3, 1 / 3], [2 / 3, 1 / 3, 0], [1, 0, 0]], atol=1e-5)


@pytest.mark.equation(9)
@pytest.mark.parametrize(("B", "c", "d"), [(12, 3, 5), (20, 5, 8), (6, 6, 10)])
def test_codes_match_a_quadratic_programming_solver(B, c, d):
    X, anchors = random_problem(25, B, d, seed=B)
    Z = anchor_codes(X, anchors, c).toarray()
    expected = codes_by_solver(X, anchors, c)
    np.testing.assert_allclose(Z, expected, atol=1e-3)
    for x, z, z_solver in zip(X, Z, expected, strict=True):
        best = simplex_objective(x, anchors, z_solver)
        assert simplex_objective(x, anchors, z) <= best * (1 + 1e-6) + 1e-12


@pytest.mark.equation(9)
@pytest.mark.parametrize("c", [1, 2, 5, 30])
def test_codes_are_non_negative_sum_to_one_and_lie_on_the_nearest_anchors(c):
    X = clusters(200, 6, 4, seed=1)
    anchors = kmeans_anchors(X, 20, 0)
    codes = anchor_codes(X, anchors, c)
    Z = codes.toarray()
    assert codes.shape == (200, 20)
    assert codes.dtype == np.float32
    assert codes.has_sorted_indices
    assert (codes.data > 0).all()
    np.testing.assert_allclose(Z.sum(axis=1, dtype=np.float64), 1, atol=1e-6)
    ids, _ = nearest_by_loops(X, anchors, min(c, 20), "euclidean")
    for i in range(200):
        assert set(np.flatnonzero(Z[i])) <= set(ids[i])


@pytest.mark.equation(9)
def test_an_item_that_is_an_anchor_is_its_own_code():
    _, anchors = random_problem(1, 12, 6, seed=2)
    Z = anchor_codes(anchors, anchors, 5).toarray()
    np.testing.assert_allclose(Z, np.eye(12), atol=1e-5)
    np.testing.assert_allclose(Z @ anchors, anchors, atol=1e-5)


@pytest.mark.equation(9)
def test_an_item_inside_the_hull_of_its_anchors_is_rebuilt():
    rng = np.random.default_rng(3)
    anchors = rng.normal(size=(5, 9)).astype(np.float32)
    weights = rng.dirichlet(np.ones(5), size=20).astype(np.float32)
    Z = anchor_codes((weights @ anchors).astype(np.float32), anchors, 5).toarray()
    np.testing.assert_allclose(Z, weights, atol=1e-3)


@pytest.mark.equation(9)
def test_no_corner_and_no_mixture_of_two_is_better():
    X, anchors = random_problem(10, 8, 4, seed=4)
    Z = anchor_codes(X, anchors, 8).toarray()
    for x, z in zip(X, Z, strict=True):
        error = simplex_objective(x, anchors, z)
        for corner in np.eye(8):
            for share in (0.01, 0.1, 1.0):
                assert error <= simplex_objective(x, anchors, (1 - share) * z + share * corner) + 1e-6


@pytest.mark.equation(9)
def test_one_code_is_all_on_the_nearest_anchor():
    X, anchors = random_problem(15, 7, 3, seed=5)
    codes = anchor_codes(X, anchors, 1)
    assert (codes.data == 1).all()
    assert codes.indices.tolist() == nearest_by_loops(X, anchors, 1, "euclidean")[0][:, 0].tolist()


@pytest.mark.equation(9)
def test_moving_everything_does_not_change_the_codes():
    X, anchors = random_problem(20, 9, 5, seed=6)
    moved = anchor_codes(X + np.float32(2), anchors + np.float32(2), 4).toarray()
    np.testing.assert_allclose(moved, anchor_codes(X, anchors, 4).toarray(), atol=1e-3)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_scale_of_the_descriptors_does_not_change_the_codes(scale):
    X, anchors = random_problem(20, 9, 5, seed=7)
    scaled = anchor_codes(X * np.float32(scale), anchors * np.float32(scale), 4).toarray()
    np.testing.assert_allclose(scaled, anchor_codes(X, anchors, 4).toarray(), atol=1e-3)


def test_blocks_of_rows_do_not_change_the_codes(monkeypatch):
    X, anchors = random_problem(30, 9, 5, seed=8)
    whole = anchor_codes(X, anchors, 4).toarray()
    monkeypatch.setattr(sparse_coding, "_DOUBLES_PER_BLOCK", 7 * 4 * 5)
    np.testing.assert_allclose(anchor_codes(X, anchors, 4).toarray(), whole, atol=1e-4)


def test_anchors_that_coincide_share_a_weight_that_sums_to_one():
    Z = anchor_codes(rows([0.5, 0]), rows([0, 0], [0, 0], [1, 0]), 3).toarray()
    np.testing.assert_allclose([Z[0, :2].sum(), Z[0, 2]], [0.5, 0.5], atol=1e-5)


def test_an_item_equal_to_all_its_anchors_has_a_finite_code():
    Z = anchor_codes(np.ones((1, 3), dtype=np.float32), np.ones((4, 3), dtype=np.float32), 2).toarray()
    assert Z.sum() == pytest.approx(1)
    assert (Z >= 0).all()


@settings(max_examples=100)
@given(vectors)
def test_the_projection_is_the_nearest_point_of_the_simplex(y):
    z = project_to_simplex(y)
    np.testing.assert_allclose(z, [project_by_bisection(row.tolist()) for row in y], atol=1e-10)


@settings(max_examples=100)
@given(vectors, st.integers(0, 2**16))
def test_no_other_point_of_the_simplex_is_nearer_than_the_projection(y, seed):
    z = project_to_simplex(y)
    assert (z >= 0).all()
    np.testing.assert_allclose(z.sum(axis=1), 1, atol=1e-10)
    others = np.random.default_rng(seed).dirichlet(np.full(y.shape[1], 0.5), size=20)
    nearest = ((y - z) ** 2).sum(axis=1)
    for other in others:
        assert (nearest <= ((y - other) ** 2).sum(axis=1) * (1 + 1e-12) + 1e-9).all()


def test_projections_by_hand():
    y = np.array([[0.2, 0.3, 0.5], [1.0, 1.0, -5.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    expected = [[0.2, 0.3, 0.5], [0.5, 0.5, 0], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]]
    np.testing.assert_allclose(project_to_simplex(y), expected, atol=1e-15)


def test_the_certified_gap_is_never_negative_and_bounds_the_error():
    rng = np.random.default_rng(9)
    M = rng.normal(size=(40, 4, 6))
    G = M @ M.transpose(0, 2, 1)
    z = rng.dirichlet(np.ones(4), size=40)
    best = simplex_least_squares(G)
    gap = certified_gap(G, z)
    assert (gap >= 0).all()
    value, smallest = (np.einsum("bi,bij,bj->b", w, G, w) / 2 for w in (z, best))
    assert (value - smallest <= gap + 1e-9).all()


def test_the_solver_stops_where_the_gap_is_certified():
    rng = np.random.default_rng(10)
    M = rng.normal(size=(50, 5, 3))  # rank 3 only: the solution need not be unique
    G = M @ M.transpose(0, 2, 1)
    z = simplex_least_squares(G)
    trace = np.trace(G, axis1=1, axis2=2)
    assert (certified_gap(G, z) <= 1e-9 * trace).all()


def test_many_problems_at_once_are_solved_as_one_by_one():
    rng = np.random.default_rng(11)
    M = rng.normal(size=(20, 4, 6))
    G = M @ M.transpose(0, 2, 1)
    alone = np.concatenate([simplex_least_squares(G[i : i + 1]) for i in range(20)])
    np.testing.assert_allclose(simplex_least_squares(G), alone, atol=1e-4)


def test_a_solver_without_iterations_still_answers_on_the_simplex(monkeypatch):
    monkeypatch.setattr(sparse_coding, "_MOST_ITERATIONS", 1)
    X, anchors = random_problem(5, 6, 3, seed=12)
    Z = anchor_codes(X, anchors, 4).toarray()
    np.testing.assert_allclose(Z.sum(axis=1), 1, atol=1e-6)
    assert (Z >= 0).all()
