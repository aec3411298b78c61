"""Graph transduction: the walk in which the query keeps its label."""

import numpy as np
import pytest

import manifind
from manifind.baselines.diffusion import GraphTransduction, clamped_walk
from manifind.graph.knn_graph import row_normalised, with_loops
from reference.graphs import as_csr, clusters, random_affinity
from reference.peers import clamped_by_loops, looped_by_loops, row_normalised_by_loops


def test_three_steps_on_a_path_of_three_by_hand():
    P = as_csr([[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]])
    query = np.array([[1.0, 0, 0]])
    np.testing.assert_array_equal(clamped_walk(P, query, 1), [[1, 1 / 4, 0]])
    np.testing.assert_array_equal(clamped_walk(P, query, 2), [[1, 3 / 8, 1 / 8]])
    np.testing.assert_array_equal(clamped_walk(P, query, 3), [[1, 15 / 32, 1 / 4]])


@pytest.mark.parametrize("steps", [1, 2, 9])
def test_each_query_equals_the_loops(steps):
    P = row_normalised(with_loops(random_affinity(12, 3, 0)))
    found = clamped_walk(P, np.eye(12), steps)
    for query in range(12):
        np.testing.assert_allclose(found[query], clamped_by_loops(P.toarray(), query, steps), rtol=1e-10)


def test_scores_rise_with_the_steps_and_end_at_one_where_a_path_leads():
    A = random_affinity(30, 2, 1)
    P = row_normalised(with_loops(A))
    few, more, many = (clamped_walk(P, np.eye(30), steps) for steps in (5, 50, 20_000))
    assert (more >= few - 1e-12).all()
    assert (many <= 1 + 1e-12).all()
    reached = np.linalg.matrix_power(with_loops(A).toarray() > 0, 30) > 0
    assert not reached.all()
    np.testing.assert_allclose(many[reached], 1, rtol=1e-6)
    assert (many[~reached] == 0).all()


def test_the_score_is_the_share_of_walks_that_met_the_query():
    P = row_normalised(with_loops(random_affinity(6, 3, 2))).toarray()
    rng = np.random.default_rng(0)
    met = np.zeros(6)
    for item in range(6):
        at = np.full(20_000, item)
        hit = at == 0
        for _ in range(4):
            at = (P[at].cumsum(axis=1) > rng.random((len(at), 1))).argmax(axis=1)
            hit |= at == 0
        met[item] = hit.mean()
    expected = clamped_walk(as_csr(P), np.eye(6)[:1], 4)[0]
    np.testing.assert_allclose(met, expected, atol=0.015)


def test_the_walk_may_stay_where_it_is_as_an_item_is_most_similar_to_itself():
    model = GraphTransduction(n_neighbors=5).fit(clusters(40, 6, 3, 0))
    expected = row_normalised_by_loops(looped_by_loops(model.affinity_.toarray()))
    np.testing.assert_allclose(model.transition_.toarray(), expected, rtol=1e-12)
    np.testing.assert_array_equal(expected.argmax(axis=1), np.arange(40))


def test_a_query_is_answered_alike_alone_and_among_others():
    model = GraphTransduction(n_neighbors=5).fit(clusters(40, 6, 3, 0))
    together = model._scores(model._at(np.arange(40)))
    for row in (0, 17, 39):
        np.testing.assert_array_equal(model._scores(model._at(np.array([row])))[0], together[row])


@pytest.mark.parametrize("steps", [0, -3, 2.0, None])
def test_a_number_of_steps_that_is_none_is_refused(steps):
    with pytest.raises(manifind.InputError, match=r"steps = .*expected a whole number of at least 1"):
        GraphTransduction(steps=steps).fit(clusters(30, 4, 3, 0))
