"""Normalised affinities: values, symmetry, spectrum, nodes without an edge."""

import numpy as np
import pytest

from manifind.graph.knn_graph import renormalised, transition
from reference.graphs import as_csr, path_of_three, random_affinity
from reference.transition import renormalised_by_loops, transition_by_loops


@pytest.mark.equation(2)
def test_transition_of_a_path_of_three_by_hand():
    a, b = (2 / 3) ** 0.5, (1 / 3) ** 0.5  # 0.5 / sqrt(1/2 * 3/4), 0.25 / sqrt(3/4 * 1/4)
    np.testing.assert_allclose(transition(path_of_three()).toarray(), [[0, a, 0], [a, 0, b], [0, b, 0]], rtol=1e-6)


@pytest.mark.equation(7)
def test_renormalised_path_of_three_by_hand():
    a, b = 0.5 / (1.5 * 1.75) ** 0.5, 0.25 / (1.75 * 1.25) ** 0.5  # degrees 3/2, 7/4, 5/4 with the loops
    expected = [[1 / 1.5, a, 0], [a, 1 / 1.75, b], [0, b, 1 / 1.25]]
    np.testing.assert_allclose(renormalised(path_of_three()).toarray(), expected, rtol=1e-6)


@pytest.mark.equation(2)
@pytest.mark.parametrize("seed", range(4))
def test_transition_equals_the_loops(seed):
    A = random_affinity(20, 2 + seed, seed)
    np.testing.assert_allclose(transition(A).toarray(), transition_by_loops(A.toarray()), rtol=1e-6)


@pytest.mark.equation(7)
@pytest.mark.parametrize("seed", range(4))
def test_renormalised_equals_the_loops(seed):
    A = random_affinity(20, 2 + seed, seed)
    np.testing.assert_allclose(renormalised(A).toarray(), renormalised_by_loops(A.toarray()), rtol=1e-6)


@pytest.mark.equation(2)
@pytest.mark.parametrize("seed", range(3))
def test_transition_is_exactly_symmetric_with_spectral_radius_one(seed):
    S = transition(random_affinity(60, 4, seed)).toarray()
    np.testing.assert_array_equal(S, S.T)
    eigenvalues = np.linalg.eigvalsh(S.astype(np.float64))
    assert abs(eigenvalues).max() <= 1 + 1e-6
    assert eigenvalues[-1] == pytest.approx(1, abs=1e-6)


@pytest.mark.equation(7)
@pytest.mark.parametrize("seed", range(3))
def test_renormalised_is_exactly_symmetric_with_spectral_radius_one(seed):
    S = renormalised(random_affinity(60, 4, seed)).toarray()
    np.testing.assert_array_equal(S, S.T)
    eigenvalues = np.linalg.eigvalsh(S.astype(np.float64))
    assert eigenvalues[-1] == pytest.approx(1, abs=1e-6)
    assert eigenvalues[0] > -1


@pytest.mark.equation(2)
def test_the_root_of_the_degrees_is_kept_by_the_transition():
    A = random_affinity(40, 5, 1)
    root = np.sqrt(A.toarray().sum(axis=1, dtype=np.float64))
    np.testing.assert_allclose(transition(A) @ root, root, atol=1e-6)


@pytest.mark.equation(7)
def test_the_root_of_the_degrees_with_loops_is_kept_by_the_renormalised_matrix():
    A = random_affinity(40, 5, 1)
    root = np.sqrt(1 + A.toarray().sum(axis=1, dtype=np.float64))
    np.testing.assert_allclose(renormalised(A) @ root, root, atol=1e-6)


@pytest.mark.equation(2)
def test_a_node_without_an_edge_has_a_row_of_zeros():
    S = transition(as_csr([[0, 1, 0], [1, 0, 0], [0, 0, 0]])).toarray()
    np.testing.assert_array_equal(S, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])


@pytest.mark.equation(7)
def test_a_node_without_an_edge_only_hears_itself_when_renormalised():
    S = renormalised(as_csr([[0, 1, 0], [1, 0, 0], [0, 0, 0]])).toarray()
    np.testing.assert_allclose(S, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]], rtol=1e-6)


@pytest.mark.equation(2)
def test_the_scale_of_the_affinities_does_not_matter():
    A = random_affinity(30, 4, 2)
    np.testing.assert_allclose(transition(A * np.float32(2**-100)).toarray(), transition(A).toarray(), rtol=1e-6)


@pytest.mark.parametrize("normalise", [transition, renormalised])
def test_the_affinity_is_not_written_to(normalise):
    A = random_affinity(20, 3, 0)
    before = A.copy()
    S = normalise(A)
    assert S.dtype == np.float32
    S.data[:] = 0
    np.testing.assert_array_equal(A.toarray(), before.toarray())
