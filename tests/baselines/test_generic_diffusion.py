"""Generic diffusion: its parts against loops, all 72 of its variants, and when it stops."""

from itertools import islice, product

import numpy as np
import pytest

import manifind
from manifind.baselines import generic_diffusion
from manifind.baselines.generic_diffusion import (
    GenericDiffusion,
    by_row_maximum,
    diffusion,
    dominant_neighbours,
    initial_matrix,
    settled,
    transition_matrix,
    updated,
)
from manifind.graph.knn_graph import with_loops
from reference.graphs import as_csr, clusters, random_affinity
from reference.peers import (
    constrained_by_loops,
    dominant_by_loops,
    largest_by_loops,
    looped_by_loops,
    played_by_loops,
    row_normalised_by_loops,
    settled_by_loops,
    walked_by_loops,
)
from reference.transition import transition_by_loops

INITIAL = ("affinity", "identity", "transition", "knn")
TRANSITIONS = ("transition", "pagerank", "ncut", "knn", "dominant", "affinity")


def dense(T):
    return T if isinstance(T, np.ndarray) else T.toarray()


@pytest.fixture(scope="module")
def descriptors():
    return clusters(40, 6, 3, 0)


def test_two_steps_of_the_default_equal_the_definition_by_loops(descriptors):
    model = GenericDiffusion(n_neighbors=7, n_kept=4, steps=2).fit(descriptors)
    P_K = row_normalised_by_loops(largest_by_loops(looped_by_loops(model.affinity_.toarray()), 4))
    M = constrained_by_loops(P_K, P_K, 2)
    found = model._scores(model._at(np.arange(40)))
    np.testing.assert_allclose(found, M / M.max(axis=1, keepdims=True), rtol=1e-6)  # kept in float32


@pytest.mark.parametrize("kind", INITIAL)
def test_the_beginnings_equal_the_loops(kind):
    A = random_affinity(12, 5, 0)
    looped = looped_by_loops(A.toarray())
    expected = {
        "affinity": looped,
        "identity": np.eye(12),
        "transition": row_normalised_by_loops(looped),
        "knn": row_normalised_by_loops(largest_by_loops(looped, 3)),
    }[kind]
    np.testing.assert_allclose(initial_matrix(kind, with_loops(A), 3), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", TRANSITIONS)
def test_the_transitions_equal_the_loops(kind):
    A = random_affinity(12, 5, 1)
    looped = looped_by_loops(A.toarray())
    P = row_normalised_by_loops(looped)
    expected = {
        "transition": P,
        "pagerank": 0.2 * np.linalg.inv(np.eye(12) - 0.8 * P),
        "ncut": transition_by_loops(looped),
        "knn": row_normalised_by_loops(largest_by_loops(looped, 4)),
        "dominant": row_normalised_by_loops(looped * dominant_by_loops(looped, 4)),
        "affinity": looped,
    }[kind]
    np.testing.assert_allclose(dense(transition_matrix(kind, with_loops(A), 4, 0.8)), expected, atol=1e-7)


@pytest.mark.parametrize("kind", TRANSITIONS)
def test_the_updates_equal_the_loops(kind):
    A = with_loops(random_affinity(9, 4, 2))
    T, M = transition_matrix(kind, A, 4, 0.85), np.random.default_rng(0).random((9, 9))
    t = dense(T)
    np.testing.assert_allclose(updated("walk", M, T, 0.7, 1.0), walked_by_loops(M, t, 0.7), rtol=1e-10)
    np.testing.assert_allclose(updated("tensor", M, T, 0.7, 1.0), constrained_by_loops(M, t, 1), rtol=1e-10)
    np.testing.assert_allclose(updated("game", M, T, 0.7, 1.0), played_by_loops(M, t), rtol=1e-10)


def test_a_row_that_meets_nobody_in_the_game_is_divided_by_no_less_than_a_share():
    M = np.array([[0.1, 0.2], [0.3, 0.4]])
    np.testing.assert_allclose(
        updated("game", M, as_csr(np.eye(2)), 0.5, 1.0),
        [[0.01 / 0.5, 0.06 / 0.5], [0.06 / 0.5, 0.16 / 0.5]],  # 1 / 2 is more than 0.07 and 0.22
        rtol=1e-6,
    )


def test_the_dominant_set_of_a_triangle_leaves_out_the_one_that_hangs_on():
    A = np.zeros((4, 4))
    for i, j, a in ((0, 1, 0.9), (0, 2, 0.9), (1, 2, 0.9), (0, 3, 0.3)):
        A[i, j] = A[j, i] = a
    mask = dominant_neighbours(with_loops(as_csr(A)), None).toarray() > 0
    np.testing.assert_array_equal(mask[0], [True, True, True, True])  # 3 has nobody but 0: it holds on to it
    mask = dominant_neighbours(with_loops(as_csr(A)), 3).toarray() > 0
    np.testing.assert_array_equal(mask[1], [True, True, True, False])


@pytest.mark.parametrize("K", [2, 5, None])
def test_dominant_neighbours_equal_the_loops(K):
    A = with_loops(random_affinity(25, 6, 4))
    np.testing.assert_array_equal(dominant_neighbours(A, K).toarray() > 0, dominant_by_loops(A.toarray(), K or 25))


@pytest.mark.parametrize(("initial", "transition"), list(product(INITIAL, TRANSITIONS)))
@pytest.mark.parametrize("update", ["walk", "tensor", "game"])
def test_each_of_the_72_ranks_every_item_once(descriptors, initial, transition, update):
    model = GenericDiffusion(n_neighbors=6, n_kept=5, initial=initial, transition=transition, update=update)
    ids, scores = model.fit(descriptors).search(k=40)
    np.testing.assert_array_equal(np.sort(ids, axis=1), np.tile(np.arange(40), (40, 1)))
    assert np.isfinite(scores).all()
    assert 1 <= model.n_steps_ <= 15


@pytest.mark.parametrize("update", ["walk", "tensor"])
def test_numbers_that_grow_without_end_are_scaled_and_rank_as_before(update, monkeypatch):
    A = with_loops(random_affinity(20, 6, 5))
    plain = next(islice(diffusion(A.toarray(), A, update, 0.85), 20, None))
    monkeypatch.setattr(generic_diffusion, "_HUGE", 10.0)
    scaled = next(islice(diffusion(A.toarray(), A, update, 0.85), 20, None))
    assert scaled.max() <= 10 < plain.max()
    np.testing.assert_allclose(by_row_maximum(scaled), by_row_maximum(plain), rtol=1e-5)


def test_a_thousand_steps_of_the_affinity_still_rank(descriptors):
    model = GenericDiffusion(n_neighbors=6, transition="affinity", steps=1000).fit(descriptors)
    assert np.isfinite(model.search(k=40).scores).all()


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_it_stops_where_the_loops_say(seed, least):
    A = with_loops(random_affinity(30, 5, seed))
    T = transition_matrix("knn", A, 4, 0.85)
    states = list(islice(diffusion(A.toarray(), T, "tensor", 0.85), 16))
    steps, M = settled(iter(states), 8, least)
    assert steps == settled_by_loops([by_row_maximum(M) for M in states], 8, least)
    np.testing.assert_array_equal(M, states[steps])


def test_rankings_that_keep_agreeing_more_stop_at_fifteen_steps():
    order = np.arange(16)
    heads = [[*order[:t], *range(100 + 16 * t, 116 + 15 * t)] for t in range(16)]  # one more in common each time
    states = []
    for head in heads:
        M = np.zeros((1, 400))
        M[0, head] = np.arange(len(head), 0, -1)
        states.append(M)
    assert settled(iter(states), 16, 1)[0] == 15


def test_steps_that_are_given_are_taken_exactly(descriptors):
    settings = {"n_neighbors": 6, "n_kept": 5}
    free = GenericDiffusion(**settings).fit(descriptors)
    same = GenericDiffusion(**settings, steps=free.n_steps_).fit(descriptors)
    np.testing.assert_array_equal(free.diffused_, same.diffused_)
    more = GenericDiffusion(**settings, steps=free.n_steps_ + 1).fit(descriptors)
    assert more.n_steps_ == free.n_steps_ + 1
    assert (more.diffused_ != free.diffused_).any()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"n_kept": 5}, (10, 1)),
        ({"n_kept": None}, (12, 1)),  # twice n_neighbors
        ({"n_kept": 5, "window": 7}, (7, 1)),
        ({"window": 1000}, (40, 1)),  # no more than there are items
        ({"n_kept": 5, "update": "game"}, (10, 1)),
        ({"n_kept": 5, "update": "walk"}, (10, 2)),  # its first step says nothing yet
    ],
)
def test_how_many_items_are_compared_and_from_which_step(descriptors, monkeypatch, settings, expected):
    seen = []
    monkeypatch.setattr(generic_diffusion, "settled", lambda states, *how: (seen.append(how), settled(states, *how))[1])
    GenericDiffusion(n_neighbors=6, **settings).fit(descriptors)
    assert seen == [expected]


def test_a_window_over_all_items_agrees_from_the_first_step_on(descriptors):
    assert GenericDiffusion(n_neighbors=6, window=40).fit(descriptors).n_steps_ == 1


def test_a_query_is_answered_alike_alone_and_among_others(descriptors):
    model = GenericDiffusion(n_neighbors=6, transition="pagerank").fit(descriptors)
    together = model._scores(model._at(np.arange(40)))
    for row in (0, 17, 39):
        np.testing.assert_array_equal(model._scores(model._at(np.array([row])))[0], together[row])


def test_more_items_than_allowed_are_refused_with_the_memory_they_would_take(descriptors):
    with pytest.raises(manifind.InputError, match=r"GenericDiffusion holds 4 matrices.*max_items = 39"):
        GenericDiffusion(max_items=39).fit(descriptors)


@pytest.mark.parametrize(
    "settings",
    [{"initial": "ones"}, {"transition": "walk"}, {"update": "knn"}, {"alpha": 0}, {"steps": 0}, {"window": 0}],
)
def test_a_setting_out_of_range_is_refused(descriptors, settings):
    with pytest.raises(manifind.InputError, match=f"{next(iter(settings))} = .*expected"):
        GenericDiffusion(**settings).fit(descriptors)
