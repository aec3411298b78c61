"""The random walk with restart and its limit."""

import numpy as np
import pytest

from manifind.errors import InputError
from manifind.graph.diffusion import closed_form, limit, walk
from manifind.graph.knn_graph import transition
from reference.diffusion import limit_by_elimination, walk_by_loops
from reference.graphs import as_csr, path_of_three, random_affinity

ROOT_TWO = 2**0.5


@pytest.mark.equation(3)
def test_two_steps_on_a_path_of_three_by_hand():
    S, f0 = transition(path_of_three()), np.array([1.0, 0.0, 0.0])
    a = (2 / 3) ** 0.5
    np.testing.assert_array_equal(walk(S, f0, 0.5, 0), f0)
    np.testing.assert_allclose(walk(S, f0, 0.5, 1), [1 / 2, a / 2, 0], rtol=1e-6)
    np.testing.assert_allclose(walk(S, f0, 0.5, 2), [2 / 3, a / 4, ROOT_TWO / 12], rtol=1e-6)


@pytest.mark.equation(4)
def test_the_limit_on_a_path_of_three_by_hand():
    S, f0 = transition(path_of_three()), np.array([1.0, 0.0, 0.0])
    expected = [11 / 18, (2 / 3) ** 0.5 / 3, ROOT_TWO / 18]  # solved by substitution from the ends
    np.testing.assert_allclose(limit(S, f0, 0.5), expected, rtol=1e-6)


@pytest.mark.equation(3)
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_walk_equals_the_loops(steps):
    S = transition(random_affinity(15, 3, 0))
    f0 = np.random.default_rng(0).random(15)
    np.testing.assert_allclose(walk(S, f0, 0.8, steps), walk_by_loops(S.toarray(), f0, 0.8, steps), rtol=1e-10)


@pytest.mark.equation(4)
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9, 0.99])
def test_the_limit_equals_elimination_by_loops(alpha):
    S = transition(random_affinity(15, 3, 1))
    f0 = np.random.default_rng(1).random(15)
    np.testing.assert_allclose(limit(S, f0, alpha), limit_by_elimination(S.toarray(), f0, alpha), atol=1e-7)


@pytest.mark.equation(4)
@pytest.mark.parametrize("alpha", [0.5, 0.99, 0.999])
def test_the_limit_of_many_columns_equals_the_dense_solution(alpha):
    S = transition(random_affinity(80, 4, 2))
    f0 = np.eye(80)[:, :7]
    dense = (1 - alpha) * np.linalg.solve(np.eye(80) - alpha * S.toarray().astype(np.float64), f0)
    np.testing.assert_allclose(limit(S, f0, alpha), dense, atol=1e-6)


@pytest.mark.equation(3, 4)
def test_the_walk_converges_to_the_limit():
    S = transition(random_affinity(40, 4, 3))
    f0 = np.eye(40)[:, :3]
    end = limit(S, f0, 0.9)
    errors = [abs(walk(S, f0, 0.9, steps) - end).max() for steps in (0, 10, 50, 200)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-7


@pytest.mark.equation(3, 4)
def test_the_limit_is_a_fixed_point_of_the_walk():
    S = transition(random_affinity(40, 4, 4))
    f0 = np.random.default_rng(4).random((40, 2))
    end = limit(S, f0, 0.9)
    np.testing.assert_allclose(0.9 * (S @ end) + 0.1 * f0, end, atol=1e-7)


@pytest.mark.equation(3)
def test_the_root_of_the_degrees_does_not_move():
    A = random_affinity(40, 5, 5)
    root = np.sqrt(A.toarray().sum(axis=1, dtype=np.float64))
    np.testing.assert_allclose(walk(transition(A), root, 0.7, 20), root, atol=1e-5)


@pytest.mark.equation(4)
def test_a_column_of_zeros_stays_zero_beside_others():
    S = transition(random_affinity(30, 4, 6))
    f0 = np.zeros((30, 3))
    f0[2, 1] = 1
    end = limit(S, f0, 0.9)
    assert (end[:, [0, 2]] == 0).all()
    np.testing.assert_allclose(end[:, 1], limit(S, f0[:, 1], 0.9), atol=1e-12)
    assert (limit(S, np.zeros(30), 0.9) == 0).all()


@pytest.mark.equation(4)
def test_a_column_does_not_depend_on_the_columns_beside_it():
    S = transition(random_affinity(30, 4, 7))
    f0 = np.random.default_rng(7).random((30, 4)) * [1e-6, 1, 1e3, 1e6]
    together = limit(S, f0, 0.9)
    for column in range(4):
        alone = limit(S, f0[:, column], 0.9)
        np.testing.assert_allclose(together[:, column], alone, rtol=1e-6, atol=1e-8 * abs(alone).max())


@pytest.mark.equation(3, 4)
def test_a_node_without_an_edge_keeps_only_its_restart():
    S = transition(as_csr([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    f0 = np.array([0.0, 0.0, 1.0])
    np.testing.assert_allclose(walk(S, f0, 0.9, 3), 0.1 * f0, rtol=1e-12)
    np.testing.assert_allclose(limit(S, f0, 0.9), 0.1 * f0, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, float("nan")])
@pytest.mark.parametrize("name", ["walk", "limit"])
def test_alpha_outside_zero_and_one_is_refused(name, alpha):
    S, f0 = transition(path_of_three()), np.ones(3)
    with pytest.raises(InputError, match="0 < alpha < 1"):
        _ = walk(S, f0, alpha, 1) if name == "walk" else limit(S, f0, alpha)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_the_start_is_not_written_to(dtype):
    S = transition(path_of_three())
    f0 = np.array([1, 0, 0], dtype=dtype)
    walk(S, f0, 0.5, 5)
    limit(S, f0, 0.5)
    assert f0.tolist() == [1, 0, 0]


def test_the_closed_form_holds_the_limit_of_every_walk_exactly_symmetric():
    A = random_affinity(12, 4, 7)
    S = transition(A)
    all_walks = closed_form(S, 0.9)
    np.testing.assert_allclose(all_walks, limit(S, np.eye(12), 0.9, 1e-12), atol=1e-10)
    np.testing.assert_array_equal(all_walks, all_walks.T)


def test_the_closed_form_of_what_is_no_transition_matrix_is_refused():
    with pytest.raises(ArithmeticError, match="not positive definite"):
        closed_form(as_csr([[0, 2], [2, 0]]), 0.9)


def test_a_column_does_not_depend_on_the_others():
    S = transition(random_affinity(30, 4, 7))
    start = np.random.default_rng(0).random((30, 5)) * np.array([1, 1e-3, 1e3, 0, 1])
    together = limit(S, start, 0.95, 1e-6)
    for column in range(5):
        alone = limit(S, start[:, column : column + 1], 0.95, 1e-6)
        np.testing.assert_array_equal(alone[:, 0], together[:, column])
