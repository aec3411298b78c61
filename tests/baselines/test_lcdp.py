"""Locally constrained diffusion, and the row-wise forms of an affinity that other methods share."""

import numpy as np
import pytest

import manifind
from manifind.baselines.diffusion import LCDP, constrained_diffusion
from manifind.graph.knn_graph import largest_per_row, row_normalised, with_loops
from reference.graphs import as_csr, clusters, path_of_three, random_affinity
from reference.peers import constrained_by_loops, largest_by_loops, looped_by_loops, row_normalised_by_loops


def test_one_step_on_a_path_of_three_by_hand():
    P = as_csr([[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]])
    P_K = as_csr([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])
    np.testing.assert_array_equal(constrained_diffusion(P, P_K, np.eye(3), 0), P.toarray())
    # (P_K P)_0 = (3/8, 1/2, 1/8), its products with the rows of P_K
    np.testing.assert_allclose(constrained_diffusion(P, P_K, np.eye(3)[:1], 1), [[7 / 16, 7 / 16, 5 / 16]], rtol=1e-12)


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize("K", [1, 3, None])
def test_all_rows_equal_the_recursion_on_the_whole_matrix(K, steps):
    A = random_affinity(12, 4, 0)
    P = row_normalised_by_loops(looped_by_loops(A.toarray()))
    P_K = row_normalised_by_loops(largest_by_loops(P, K or 12))
    p = row_normalised(with_loops(A))
    fast = constrained_diffusion(p, row_normalised(largest_per_row(p, K)), np.eye(12), steps)
    np.testing.assert_allclose(fast, constrained_by_loops(P, P_K, steps), rtol=1e-10)


def test_keeping_only_the_item_itself_leaves_the_transition_as_it_was():
    X = clusters(40, 6, 3, 0)
    still, moved = LCDP(n_neighbors=5, n_kept=1).fit(X), LCDP(n_neighbors=5, steps=0).fit(X)
    np.testing.assert_allclose(still.local_.toarray(), np.eye(40), rtol=1e-12)
    np.testing.assert_array_equal(still.search(k=40).ids, moved.search(k=40).ids)


def test_keeping_as_many_as_there_are_is_keeping_all():
    X = clusters(40, 6, 3, 0)
    np.testing.assert_array_equal(
        LCDP(n_neighbors=5, n_kept=40).fit(X).search(k=40).ids, LCDP(n_neighbors=5, n_kept=None).fit(X).search(k=40).ids
    )


def test_a_query_is_answered_alike_alone_and_among_others():
    model = LCDP(n_neighbors=6, n_kept=4).fit(clusters(40, 6, 3, 0))
    together = model._scores(model._at(np.arange(40)))
    for row in (0, 17, 39):
        np.testing.assert_array_equal(model._scores(model._at(np.array([row])))[0], together[row])


def test_rows_sum_to_one_and_rows_of_zeros_stay():
    P = row_normalised(as_csr([[0, 3, 1], [0, 0, 0], [2, 0, 0]])).toarray()
    np.testing.assert_allclose(P, [[0, 0.75, 0.25], [0, 0, 0], [1, 0, 0]], rtol=1e-12)


def test_loops_are_ones_beside_the_affinity_in_double_precision():
    looped = with_loops(path_of_three())
    assert looped.dtype == np.float64
    np.testing.assert_array_equal(looped.toarray(), [[1, 0.5, 0], [0.5, 1, 0.25], [0, 0.25, 1]])


@pytest.mark.parametrize("K", [1, 2, 5, 20])
def test_the_largest_of_each_row_are_those_of_a_full_sort(K):
    A = np.round(random_affinity(20, 9, 3).toarray(), 1)  # one decimal makes many of them equal
    np.testing.assert_array_equal(largest_per_row(as_csr(A), K).toarray(), largest_by_loops(as_csr(A).toarray(), K))


@pytest.mark.parametrize("settings", [{"n_kept": 0}, {"n_kept": 2.5}, {"steps": -1}, {"steps": None}])
def test_a_setting_that_is_no_count_is_refused(settings):
    with pytest.raises(manifind.InputError, match=f"{next(iter(settings))} = .*expected a whole number"):
        LCDP(**settings).fit(clusters(30, 4, 3, 0))
