"""Regularised diffusion: the eigen-form against the iteration, the inverse, and the system over all pairs."""

import numpy as np
import pytest

import manifind
from manifind.baselines.diffusion import RegularisedDiffusion, regularised_limit
from manifind.graph.knn_graph import renormalised, with_loops
from reference.graphs import as_csr, clusters, path_of_three, random_affinity
from reference.peers import regularised_by_loops


def dense(A):
    return renormalised(A).toarray().astype(np.float64)


def test_two_neighbours_by_hand():
    S = np.full((2, 2), 0.5)  # S^2 = S: the limit is I + S alpha / (1 - alpha), times 1 - alpha
    expected = [[1 / 4 + 3 / 8, 3 / 8], [3 / 8, 1 / 4 + 3 / 8]]
    np.testing.assert_allclose(regularised_limit(S, None, 0.75), expected, rtol=1e-12)
    np.testing.assert_allclose(regularised_limit(S, np.eye(2), 0.75), expected, rtol=1e-12)


@pytest.mark.parametrize("target", ["identity", "affinity"])
def test_the_limit_is_where_the_iteration_by_loops_ends(target):
    A = random_affinity(8, 3, 0)
    Y = np.eye(8) if target == "identity" else with_loops(A).toarray()
    found = regularised_limit(dense(A), None if target == "identity" else Y, 0.6)
    np.testing.assert_allclose(found, regularised_by_loops(dense(A), Y, 0.6, 60), atol=1e-11)


@pytest.mark.parametrize("alpha", [0.1, 0.9, 0.99])
def test_with_the_identity_it_is_the_inverse_over_two_steps(alpha):
    S = dense(random_affinity(40, 4, 1))
    inverse = (1 - alpha) * np.linalg.inv(np.eye(40) - alpha * S @ S)
    np.testing.assert_allclose(regularised_limit(S, None, alpha), inverse, atol=1e-10)


def test_with_the_affinity_it_solves_the_linear_system_over_all_pairs():
    A = random_affinity(9, 4, 2)
    S, Y = dense(A), with_loops(A).toarray()
    vec = 0.05 * np.linalg.solve(np.eye(81) - 0.95 * np.kron(S, S), Y.ravel())
    np.testing.assert_allclose(regularised_limit(S, Y, 0.95), vec.reshape(9, 9), atol=1e-11)


def test_what_no_path_reaches_is_exactly_zero():
    A = as_csr(np.kron(np.eye(3), random_affinity(10, 4, 3).toarray()))
    for Y in (None, with_loops(A).toarray()):
        limit = regularised_limit(dense(A), Y, 0.99)
        assert (limit[np.kron(np.eye(3), np.ones((10, 10))) == 0] == 0).all()
        assert (limit >= 0).all()
        assert (np.diag(limit) > 0).all()


def test_on_a_chain_a_neighbour_comes_before_the_neighbour_of_the_neighbour():
    limit = regularised_limit(dense(path_of_three()), None, 0.9)
    assert limit[0, 0] > limit[0, 1] > limit[0, 2] > 0
    bare = regularised_limit(path_of_three().toarray().astype(np.float64), None, 0.9)
    assert bare[0, 1] == 0 < bare[0, 2]  # what the ones on the diagonal are for


def test_both_targets_are_kept_as_what_the_settings_say():
    X = clusters(40, 6, 3, 0)
    for target in ("identity", "affinity"):
        model = RegularisedDiffusion(n_neighbors=5, alpha=0.9, target=target).fit(X)
        Y = None if target == "identity" else with_loops(model.affinity_).toarray()
        expected = regularised_limit(dense(model.affinity_), Y, 0.9)
        np.testing.assert_array_equal(model._scores(model._at(np.arange(40))), expected)


def test_a_query_is_answered_alike_alone_and_among_others():
    model = RegularisedDiffusion(n_neighbors=5).fit(clusters(40, 6, 3, 0))
    together = model._scores(model._at(np.arange(40)))
    for row in (0, 17, 39):
        np.testing.assert_array_equal(model._scores(model._at(np.array([row])))[0], together[row])


def test_more_items_than_allowed_are_refused_with_the_memory_they_would_take():
    with pytest.raises(manifind.InputError, match=r"RegularisedDiffusion holds 4 matrices.*max_items = 39"):
        RegularisedDiffusion(max_items=39).fit(clusters(40, 6, 3, 0))


@pytest.mark.parametrize("settings", [{"alpha": 1.0}, {"target": "ones"}, {"max_items": 0}])
def test_a_setting_out_of_range_is_refused(settings):
    with pytest.raises(manifind.InputError, match=f"{next(iter(settings))} = .*expected"):
        RegularisedDiffusion(**settings).fit(clusters(30, 4, 3, 0))
