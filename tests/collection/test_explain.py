"""Why: the strongest path is the one that all paths, tried by hand, are not stronger than."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy import sparse

import manifind
from manifind.collection.explain import Graph, _lengths, read_affinity
from manifind.errors import InputError
from manifind.graph.knn_graph import transition

SETTINGS = {"n_neighbors": 2, "layers": (4, 4), "max_steps": 1, "batch_size": 4, "preprocess": "none", "guard": False}


@pytest.fixture
def on_a_line(tmp_path):
    """Seven points on a line, the last one twice, one more far away."""
    at = [0.0, 1.0, 2.1, 3.3, 4.6, 6.0, 6.0, 90.0, 91.0]
    X = np.array([[x, 1.0] for x in at], dtype=np.float32)
    return manifind.GradNet(**SETTINGS, similarity="euclidean", random_state=0).fit(X).save(tmp_path / "c")


def strongest_by_trying(S, start, end):
    n = S.shape[0]
    best = 0.0
    for length in range(n - 1):
        for between in permutations([node for node in range(n) if node not in (start, end)], length):
            path = (start, *between, end)
            best = max(best, float(np.prod([S[a, b] for a, b in pairwise(path)])))
    return best


def test_the_path_is_the_strongest_of_all(on_a_line):
    graph = Graph(on_a_line.version)
    S = transition(read_affinity(on_a_line.version)).toarray()
    nodes = on_a_line.version.learned.nodes.tolist()
    for start in range(5):
        for end in range(start + 1, 6):
            steps = graph.path(start, end)
            weights = [step.weight for step in steps[1:]]
            assert steps[0].row == start
            assert steps[-1].row == end
            places = [nodes.index(step.row) for step in steps]
            np.testing.assert_allclose(weights, [S[a, b] for a, b in pairwise(places)], rtol=1e-5)
            expected = strongest_by_trying(S[:6, :6], start, end)
            assert np.prod(weights) == pytest.approx(expected, rel=1e-3)


def test_where_the_graph_does_not_lead_there_is_no_path(tmp_path):
    X = np.array([[x, 1.0] for x in (0, 1, 2.2, 3.5, 90, 91, 92.2, 93.5)], dtype=np.float32)
    apart = manifind.GradNet(**SETTINGS, similarity="euclidean", random_state=0).fit(X).save(tmp_path / "c")
    graph = Graph(apart.version)
    assert graph.path(0, 5) == []
    assert graph.path(0, 3) != []


def test_an_item_leads_to_itself_in_no_steps(on_a_line):
    assert Graph(on_a_line.version).path(3, 3) == [(3, 1.0)]


def test_an_item_that_equals_another_is_reached_through_it(on_a_line):
    steps = Graph(on_a_line.version).path(0, 6)
    assert steps[-1].row == 6
    assert steps[-2].row == 5
    assert steps[-1].weight == 1


def test_an_item_that_came_later_and_an_unseen_query_start_at_their_neighbours(on_a_line):
    on_a_line.add(np.array([[0.4, 1.0]], dtype=np.float32), [9])
    graph = Graph(on_a_line.version)
    later = graph.path(9, 4)
    assert later[0].row == 9
    assert later[1].row in (0, 1)
    assert later[-1].row == 4
    assert graph.path(4, 9)[-1].row == 9
    unseen = graph.path(np.array([3.0, 1.0], dtype=np.float32), 0)
    assert unseen[0].row is None
    assert unseen[-1].row == 0


def test_weights_by_rank_fall(on_a_line):
    weights = Graph(on_a_line.version).weights_by_rank(5)
    assert (np.diff(weights) <= 0).all()
    S = transition(read_affinity(on_a_line.version)).toarray()
    assert weights[0] == pytest.approx(S.max(axis=1).mean(), rel=1e-5)


def test_a_graph_with_queries_in_it_says_that_it_cannot_tell(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    settings = {**SETTINGS, "n_neighbors": 4}
    saved = manifind.GradNet(**settings, random_state=0).fit(X, queries=X[:2] + 0.1).save(tmp_path / "c")
    with pytest.raises(InputError, match="queries in its graph"):
        Graph(saved.version)


def test_lengths_of_weights_are_positive_and_finite():
    lengths = _lengths(np.array([0.0, 1e-45, 0.5, 1.0, 1.1], dtype=np.float32))
    assert (lengths > 0).all()
    assert np.isfinite(lengths).all()
    assert sparse.csr_array(lengths[None]).nnz == 5
