"""Exact neighbours: the same for every path through the code, ties by position, never oneself."""

import itertools

import numpy as np
import pytest

from manifind.errors import GraphError
from manifind.index import exact as neighbours
from manifind.index.exact import graph_neighbours, nearest
from reference.neighbours import graph_neighbours_by_loops, nearest_by_loops


def random_rows(n, d, seed, metric="euclidean"):
    X = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True).astype(np.float32) if metric == "cosine" else X


def lattice(side, d):
    """All points with coordinates 0 ... side - 1: every distance occurs many times, exactly."""
    return np.array(list(itertools.product(range(side), repeat=d)), dtype=np.float32)


def repeated_directions(n, seed):
    """(n, 4) of 24 unit vectors whose inner products are exact: 0, 1/2, 1 and their negatives."""
    halves = list(itertools.product([-0.5, 0.5], repeat=4))
    axes = [*np.eye(4), *-np.eye(4)]
    directions = np.array([*halves, *axes], dtype=np.float32)
    return directions[np.random.default_rng(seed).integers(0, len(directions), size=n)]


@pytest.fixture
def all_pairs_calls(monkeypatch):
    """How many queries each call of the computation from all pairs was given."""
    calls = []
    original = neighbours.nearest_of_all

    def spy(queries, *arguments):
        calls.append(len(queries))
        return original(queries, *arguments)

    monkeypatch.setattr(neighbours, "nearest_of_all", spy)
    return calls


def test_three_points_on_a_line_find_each_other():
    X = np.array([[0], [1], [3]], dtype=np.float32)
    found = graph_neighbours(X, 2)
    assert found.ids.tolist() == [[1, 2], [0, 2], [1, 0]]
    assert found.distances.tolist() == [[1, 3], [1, 2], [2, 3]]


def test_ties_are_broken_by_position():
    X = np.array([[0], [1], [-1], [1], [-1]], dtype=np.float32)
    assert graph_neighbours(X, 3).ids[0].tolist() == [1, 2, 3]
    assert nearest(X[:1], X, 4, "euclidean").ids.tolist() == [[0, 1, 2, 3]]


def test_the_node_itself_is_removed_by_its_number_among_duplicates():
    X = np.array([[5], [5], [5], [9]], dtype=np.float32)
    found = graph_neighbours(X, 2)
    assert found.ids.tolist() == [[1, 2], [0, 2], [0, 1], [0, 1]]
    assert found.distances.tolist() == [[0, 0], [0, 0], [0, 0], [4, 4]]


def test_a_node_crowded_out_by_duplicates_keeps_the_first_of_them():
    X = np.zeros((7, 2), dtype=np.float32)
    found = graph_neighbours(X, 2)
    assert found.ids.tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1]]
    assert (found.distances == 0).all()


@pytest.mark.parametrize(("n", "k"), [(30, 5), (200, 3), (200, 40)])
def test_no_node_is_its_own_neighbour_on_a_lattice_with_duplicates(n, k):
    X = np.concatenate([lattice(5, 2)] * (-(-n // 25)))[:n]
    found = graph_neighbours(X, k)
    ids, distances = graph_neighbours_by_loops(X, k)
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_array_equal(found.distances, distances)
    assert not (found.ids == np.arange(n)[:, None]).any()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize(("n", "k"), [(20, 20), (60, 5), (150, 6)])
def test_nearest_equals_the_loops_on_random_rows(n, k, metric):
    X, Q = random_rows(n, 5, n, metric), random_rows(12, 5, n + 1, metric)
    found = nearest(Q, X, k, metric)
    ids, scores = nearest_by_loops(Q, X, k, metric)
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-6)


@pytest.mark.parametrize(("n", "k"), [(20, 4), (150, 6)])
def test_graph_neighbours_equal_the_loops_on_random_rows(n, k):
    X = random_rows(n, 4, n)
    found = graph_neighbours(X, k)
    ids, distances = graph_neighbours_by_loops(X, k)
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-6)


@pytest.mark.parametrize(("side", "d", "k"), [(14, 2, 4), (6, 3, 6), (4, 4, 20)])
def test_a_lattice_full_of_ties_equals_the_loops(side, d, k, all_pairs_calls):
    X = lattice(side, d)
    found = nearest(X, X, k, "euclidean")
    ids, scores = nearest_by_loops(X, X, k, "euclidean")
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_array_equal(found.scores, scores)
    assert len(X) > 4 * (k + 16), "the shortcut is not taken here"
    assert len(all_pairs_calls) <= 1


def test_more_ties_than_candidates_are_settled_from_all_pairs(all_pairs_calls):
    X = np.eye(150, dtype=np.float32)  # everything is sqrt(2) from everything else
    found = nearest(X, X, 4, "euclidean")
    assert all_pairs_calls == [150]
    assert found.ids[0].tolist() == [0, 1, 2, 3]
    assert found.ids[149].tolist() == [149, 0, 1, 2]
    np.testing.assert_allclose(found.scores[:, 1:], -(2**0.5), rtol=1e-7)


def test_equal_inner_products_are_settled_from_all_pairs(all_pairs_calls):
    X = repeated_directions(200, 0)
    found = nearest(X[:40], X, 12, "cosine")
    ids, scores = nearest_by_loops(X[:40], X, 12, "cosine")
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_array_equal(found.scores, scores)
    assert sum(all_pairs_calls) > 0


def test_rows_without_ties_do_not_need_all_pairs(all_pairs_calls):
    X = random_rows(300, 8, 0)
    nearest(X, X, 5, "euclidean")
    assert sum(all_pairs_calls) == 0


def test_rows_far_from_the_origin_are_still_exact(monkeypatch, all_pairs_calls):
    faiss = pytest.importorskip("faiss")  # here, since it must be imported after torch
    monkeypatch.setattr(faiss.cvar, "distance_compute_blas_threshold", 1)  # |q|^2 - 2 q.x + |x|^2 at any size
    X = random_rows(300, 8, 1) + np.float32(5000)
    proposed = neighbours._propose(X[:40], X, 21, "euclidean")
    found = nearest(X[:40], X, 5, "euclidean")
    ids, _ = nearest_by_loops(X[:40], X, 5, "euclidean")
    np.testing.assert_array_equal(found.ids, ids)
    assert all_pairs_calls == [40]
    missing = [set(row) - set(candidates) for row, candidates in zip(ids, proposed, strict=True)]
    assert any(missing), "faiss loses no digits here, so that nothing is tested"


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", ["random", "ties"])
def test_one_query_or_many_give_the_same_answer(metric, kind):
    if kind == "random":
        X = random_rows(200, 6, 3, metric)
    else:
        X = repeated_directions(200, 3) if metric == "cosine" else lattice(6, 3)[:200]
    together = nearest(X[:50], X, 7, metric)
    for i in range(50):
        alone = nearest(X[i : i + 1], X, 7, metric)
        np.testing.assert_array_equal(alone.ids[0], together.ids[i])
        np.testing.assert_array_equal(alone.scores[0], together.scores[i])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("n", [50, 216])
def test_the_size_of_a_block_does_not_change_the_answer(n, metric, monkeypatch):
    X = repeated_directions(n, 4) if metric == "cosine" else lattice(6, 3)[:n]
    whole = nearest(X, X, 9, metric)
    for doubles in (1, 64, 1000):
        monkeypatch.setattr(neighbours, "_DOUBLES_PER_BLOCK", doubles)
        blocked = nearest(X, X, 9, metric)
        np.testing.assert_array_equal(blocked.ids, whole.ids)
        np.testing.assert_array_equal(blocked.scores, whole.scores)


def test_the_first_k_do_not_depend_on_how_many_are_asked_for():
    X = np.concatenate([lattice(6, 3), random_rows(100, 3, 5)])
    everything = nearest(X[:40], X, len(X), "euclidean")
    for k in (1, 5, 40, 200):
        head = nearest(X[:40], X, k, "euclidean")
        np.testing.assert_array_equal(head.ids, everything.ids[:, :k])
        np.testing.assert_array_equal(head.scores, everything.scores[:, :k])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_all_of_them_are_found_once_each_and_scores_never_increase(metric):
    X = random_rows(90, 3, 6, metric)
    found = nearest(X[:5], X, 90, metric)
    assert (np.sort(found.ids, axis=1) == np.arange(90)).all()
    assert (np.diff(found.scores, axis=1) <= 0).all()


def test_too_few_items_are_refused_with_both_numbers():
    with pytest.raises(GraphError) as refusal:
        graph_neighbours(random_rows(5, 2, 0), 5)
    assert "n_neighbors = 5" in refusal.value.problem
    assert "only 5 distinct items" in refusal.value.problem
    assert "each has 4 others" in refusal.value.problem
    assert "at most 4" in refusal.value.hint


@pytest.mark.parametrize("k", [0, 1, 30])
def test_one_item_has_no_graph(k):
    with pytest.raises(GraphError, match="there is only 1 distinct item: all rows are equal") as refusal:
        graph_neighbours(np.ones((1, 2), dtype=np.float32), k)
    assert "two different items" in refusal.value.hint


def test_as_many_neighbours_as_there_are_others_is_allowed():
    found = graph_neighbours(random_rows(6, 2, 0), 5)
    for i in range(6):
        assert sorted(found.ids[i]) == [j for j in range(6) if j != i]


def test_the_input_is_not_written_to():
    X = lattice(6, 3)
    X.flags.writeable = False
    graph_neighbours(X, 4)
    assert X[-1].tolist() == [5, 5, 5]
