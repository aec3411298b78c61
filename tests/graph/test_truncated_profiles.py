"""Diffusion profiles in graphs that are cut to the nearest nodes, and which nodes those are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.graph import diffusion as module
from manifind.graph.diffusion import nearest_sets, truncated_profiles, whole_profiles
from manifind.graph.knn_graph import transition
from manifind.index.exact import nearest
from reference.diffusion import limit_by_elimination
from reference.graphs import as_csr, clusters, path_of_three, random_affinity
from reference.rerankers import profile_by_loops


def random_sets(n, T, seed):
    """(n, T) int32, rising: each node and T - 1 others."""
    rng = np.random.default_rng(seed)
    others = [rng.choice(np.delete(np.arange(n), i), size=T - 1, replace=False) for i in range(n)]
    return np.array([np.sort([i, *row]) for i, row in enumerate(others)], dtype=np.int32)


def cut(S, alpha, T):
    return np.eye(len(T)) - alpha * S.toarray().astype(np.float64)[np.ix_(T, T)]


def test_profiles_of_two_nodes_of_a_path_of_three_by_hand():
    near = np.array([[0, 1], [0, 1], [1, 2]], dtype=np.int32)
    profiles = truncated_profiles(transition(path_of_three()), near, 0.5, 20, 1e-9).toarray()
    a, c = (2 / 3) ** 0.5, (1 / 3) ** 0.5  # the two edges of S; node 1 keeps its degree, of both
    expected = [[6 / 5, 3 * a / 5, 0], [3 * a / 5, 6 / 5, 0], [0, 6 * c / 11, 12 / 11]]
    np.testing.assert_allclose(profiles, expected, rtol=1e-6)


@pytest.mark.parametrize(("iterations", "tolerance"), [(1, 1e-6), (3, 1e-6), (20, 1e-6), (20, 0.1)])
def test_profiles_equal_the_loops_wherever_they_stop(iterations, tolerance):
    S, near = transition(random_affinity(30, 5, 0)), random_sets(30, 12, 0)
    profiles = truncated_profiles(S, near, 0.99, iterations, tolerance).toarray()
    for i in range(30):
        expected = profile_by_loops(S.toarray(), near[i].tolist(), i, 0.99, iterations, tolerance)
        np.testing.assert_allclose(profiles[i], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_with_enough_iterations_each_profile_solves_its_cut_system(alpha):
    S, near = transition(random_affinity(40, 4, 1)), random_sets(40, 15, 1)
    profiles = truncated_profiles(S, near, alpha, 200, 1e-12).toarray()
    for i in range(40):
        f = np.linalg.solve(cut(S, alpha, near[i]), near[i] == i)
        np.testing.assert_allclose(profiles[i, near[i]], f, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_whole_profiles_are_the_inverse(alpha):
    S = transition(random_affinity(15, 4, 2))
    inverse = [limit_by_elimination(S.toarray(), row, alpha) for row in np.eye(15)]
    whole = whole_profiles(S, alpha, 200, 1e-12).toarray()
    np.testing.assert_allclose(whole, np.array(inverse) / (1 - alpha), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("iterations", [2, 20])
def test_truncated_to_all_nodes_is_whole(iterations):
    S = transition(random_affinity(40, 4, 3))
    everyone = np.tile(np.arange(40, dtype=np.int32), (40, 1))
    cut_to_all = truncated_profiles(S, everyone, 0.99, iterations, 1e-6).toarray()
    whole = whole_profiles(S, 0.99, iterations, 1e-6).toarray()
    np.testing.assert_allclose(cut_to_all, whole, rtol=1e-5, atol=1e-6)


def test_the_whole_graph_in_several_blocks_is_the_same(monkeypatch):
    S = transition(random_affinity(40, 4, 3))
    at_once = whole_profiles(S, 0.99, 20, 1e-6).toarray()
    monkeypatch.setattr(module, "_DOUBLES_PER_BLOCK", 7 * 40)
    np.testing.assert_array_equal(whole_profiles(S, 0.99, 20, 1e-6).toarray(), at_once)


def test_a_node_without_an_edge_has_itself_for_a_profile():
    S = transition(as_csr([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    near = np.array([[0, 1], [0, 1], [0, 2]], dtype=np.int32)
    for profiles in (truncated_profiles(S, near, 0.9, 20, 1e-6), whole_profiles(S, 0.9, 20, 1e-6)):
        assert profiles[[2]].toarray().tolist() == [[0, 0, 1]]
        assert profiles[[2]].nnz == 1


def test_a_node_whose_neighbours_are_all_cut_away_has_itself_for_a_profile():
    near = np.array([[0, 2], [1, 2], [0, 2]], dtype=np.int32)  # in the path 0 - 1 - 2
    profiles = truncated_profiles(transition(path_of_three()), near, 0.9, 20, 1e-6).toarray()
    assert profiles[[0, 2]].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert profiles[1, 2] > 0


@settings(max_examples=25)
@given(st.integers(2, 25), st.floats(0.1, 0.99), st.integers(0, 2**16), st.data())
def test_profiles_are_not_negative_and_at_least_one_at_their_own_node(n, alpha, seed, data):
    S, T = transition(random_affinity(n, 4, seed)), data.draw(st.integers(1, n))
    profiles = truncated_profiles(S, random_sets(n, T, seed), alpha, 500, 1e-10).toarray()
    assert (profiles >= -1e-6).all()
    assert (profiles.diagonal() >= 1).all()


def test_a_profile_depends_neither_on_the_systems_beside_it_nor_on_the_threads(monkeypatch):
    S, near = transition(random_affinity(50, 5, 4)), random_sets(50, 10, 4)
    expected = truncated_profiles(S, near, 0.99, 6, 1e-3).toarray()
    for unknowns, threads in ((1, 1), (30, 1), (30, 3), (10**6, 2)):
        monkeypatch.setattr(module, "_UNKNOWNS_PER_STACK", unknowns)
        monkeypatch.setattr(module, "_n_threads", lambda threads=threads: threads)
        np.testing.assert_array_equal(truncated_profiles(S, near, 0.99, 6, 1e-3).toarray(), expected)


def test_neither_the_graph_nor_the_sets_are_written_to():
    S, near = transition(random_affinity(20, 2, 5)), random_sets(20, 6, 5)
    before = (S.toarray(), near.copy())
    truncated_profiles(S, near, 0.9, 20, 1e-6)
    np.testing.assert_array_equal(S.toarray(), before[0])
    np.testing.assert_array_equal(near, before[1])


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setattr(module, "_stack", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        truncated_profiles(transition(path_of_three()), random_sets(3, 2, 0), 0.9, 20, 1e-6)


# ---- which nodes are near


def sets_by_search(X, T):
    return np.sort(nearest(X, X, T, "euclidean").ids, axis=1)


@pytest.mark.parametrize("T", [1, 2, 40, 299, 300])
def test_the_nearest_sets_are_those_of_the_exact_search(T):
    X = clusters(300, 8, 5, seed=0)
    np.testing.assert_array_equal(nearest_sets(X, T), sets_by_search(X, T))


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(0, 2**16), st.data())
def test_ties_at_the_last_place_go_by_position(n, seed, data):
    corners = np.unique(np.random.default_rng(seed).integers(-2, 3, size=(n, 3)), axis=0)
    X = np.random.default_rng(seed).permutation(corners).astype(np.float32)
    T = data.draw(st.integers(1, len(X)))
    np.testing.assert_array_equal(nearest_sets(X, T), sets_by_search(X, T))


def test_rows_that_float32_cannot_tell_apart_are_told_apart():
    X = np.full((60, 4), 0.5, dtype=np.float32)
    X[:, 0] += np.arange(60, dtype=np.float32)[::-1] * 2**-24  # distances far below the rounding of squares
    np.testing.assert_array_equal(nearest_sets(X, 7), sets_by_search(X, 7))
    assert (nearest_sets(X, 1)[:, 0] == np.arange(60)).all()


def test_the_sets_do_not_depend_on_the_size_of_a_block(monkeypatch):
    X = clusters(200, 6, 4, seed=1)
    at_once = nearest_sets(X, 30)
    monkeypatch.setattr(module, "_FLOATS_PER_BLOCK", 1)
    np.testing.assert_array_equal(nearest_sets(X, 30), at_once)
