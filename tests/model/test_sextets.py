"""Sextets: every sample fits its definition, every neighbour has its chance, small graphs have a way out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.errors import GraphError
from manifind.model.sampling import SextetSampler
from manifind.text import count
from reference.graphs import as_csr, path_of_three, random_affinity
from reference.sextets import far_from_all, far_from_anchor

# A condition is tried 64 times before the next weaker one; with this share of suitable nodes, one draw
# in ten thousand million misses.
SAFE_SHARE = 0.3


class Drawn:
    """Sextets, with a name for each of the six."""

    def __init__(self, sextets):
        self.nodes, self.a_ij, self.a_kl = sextets
        self.i, self.j, self.k, self.l, self.u, self.v = sextets.nodes


class Sampler(SextetSampler):
    def draw(self, b):
        return Drawn(super().draw(b))


def sampler(A, seed=0, ends=None):
    return Sampler(A, np.random.default_rng(seed), ends)


def complete(n):
    return as_csr(1 - np.eye(n))


def ring(n):
    A = np.zeros((n, n))
    A[np.arange(n), (np.arange(n) + 1) % n] = 1
    return as_csr(A + A.T)


@settings(max_examples=60)
@given(st.integers(3, 40), st.floats(0.5, 12), st.integers(0, 2**16))
def test_every_sextet_fits_its_definition(n, mean_degree, seed):
    affinity = random_affinity(n, mean_degree, seed)
    if affinity.nnz == 0:
        return
    A = affinity.toarray()
    s = sampler(affinity, seed).draw(40)
    rows = zip(*s.nodes.tolist(), s.a_ij.tolist(), s.a_kl.tolist(), strict=True)
    for i, j, k, l, u, v, a_ij, a_kl in rows:  # noqa: E741 - the paper's letter
        assert A[i, j] == a_ij > 0
        assert A[k, l] == a_kl > 0
        for stranger, anchor, partner in ((u, i, j), (v, k, l)):
            strict, weak = far_from_all(A, (i, j, k, l)), far_from_anchor(A, anchor, partner)
            assert stranger not in (anchor, partner)
            if len(strict) >= SAFE_SHARE * n:
                assert stranger in strict
            elif len(weak) >= SAFE_SHARE * n:
                assert stranger in weak


def test_the_first_and_third_node_are_uniform_over_the_nodes_with_a_neighbour():
    A = random_affinity(12, 2, 1).toarray()
    A[3] = A[:, 3] = 0
    affinity = as_csr(A)
    connected = np.flatnonzero(np.diff(affinity.indptr))
    s = sampler(affinity).draw(22_000)
    for nodes in (s.i, s.k):
        counts = np.bincount(nodes, minlength=12)
        assert counts[3] == 0
        expected = 22_000 / len(connected)
        assert abs(counts[connected] - expected).max() < 5 * expected**0.5


def test_the_second_node_is_uniform_over_the_neighbours_whatever_their_weight():
    A = np.zeros((9, 9))
    A[0, 1:5] = [0.001, 0.1, 0.5, 1.0]
    s = sampler(as_csr(A + A.T)).draw(40_000)
    for first, second in ((s.i, s.j), (s.k, s.l)):
        of_hub = second[first == 0]
        counts = np.bincount(of_hub, minlength=9)[1:5]
        assert counts.sum() == len(of_hub)
        assert abs(counts - len(of_hub) / 4).max() < 5 * (len(of_hub) / 4) ** 0.5


def test_strangers_are_uniform_over_the_nodes_far_from_all_four():
    n = 10
    A = np.zeros((n, n))
    A[0, 1] = A[1, 0] = 1  # the only edge: i, j, k, l are 0 and 1
    s = sampler(as_csr(A)).draw(8_000)
    for strangers in (s.u, s.v):
        counts = np.bincount(strangers, minlength=n)
        assert counts[:2].tolist() == [0, 0]
        assert abs(counts[2:] - 1000).max() < 5 * 1000**0.5


def test_the_two_edges_are_drawn_independently():
    s = sampler(ring(20)).draw(20_000)
    assert np.corrcoef(s.i, s.k)[0, 1] == pytest.approx(0, abs=0.03)
    assert (s.u != s.v).any()


@pytest.mark.parametrize("n", [3, 4, 6])
def test_on_a_complete_graph_any_third_node_is_the_stranger(n):
    s = sampler(complete(n)).draw(200)
    for stranger, anchor, partner in ((s.u, s.i, s.j), (s.v, s.k, s.l)):
        assert not (stranger == anchor).any()
        assert not (stranger == partner).any()
    assert set(np.concatenate([s.u, s.v]).tolist()) == set(range(n))


def test_on_a_path_of_three_the_stranger_is_the_node_that_is_left():
    s = sampler(path_of_three()).draw(300)
    np.testing.assert_array_equal(s.i + s.j + s.u, np.full(300, 3))
    np.testing.assert_array_equal(s.k + s.l + s.v, np.full(300, 3))


def test_on_a_dense_graph_the_stranger_is_at_least_no_neighbour_of_the_first():
    A = 1 - np.eye(8)
    for a in range(0, 8, 2):
        A[a, a + 1] = A[a + 1, a] = 0  # everyone has one stranger; no one is far from all four of a sextet
    s = sampler(as_csr(A)).draw(300)
    np.testing.assert_array_equal(s.u, s.i ^ 1)
    np.testing.assert_array_equal(s.v, s.k ^ 1)


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_than_three_nodes_are_refused(n):
    with pytest.raises(GraphError, match=f"only {count(n, 'distinct item')}, and") as refusal:
        sampler(complete(n))
    assert "three" in refusal.value.hint


def test_the_same_seed_draws_the_same_sextets_and_another_does_not():
    A = random_affinity(50, 4, 2)
    one, two, other = (sampler(A, seed).draw(64) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one.nodes, two.nodes)
    assert not np.array_equal(one.nodes, other.nodes)


def test_two_draws_of_one_sampler_differ():
    drawing = sampler(random_affinity(50, 4, 2))
    assert not np.array_equal(drawing.draw(64).nodes, drawing.draw(64).nodes)


def test_a_sextet_is_six_nodes_and_two_weights():
    s = sampler(random_affinity(50, 4, 3)).draw(5)
    assert s.nodes.shape == (6, 5)
    assert s.a_ij.dtype == s.a_kl.dtype == np.float32


def test_the_second_node_is_drawn_in_proportion_to_where_walks_end():
    ends = np.zeros((9, 9))
    ends[0, 1:5] = [0.25, 0.5, 0.75, 1]
    ends[1:, 0] = 1
    s = sampler(ring(9), 0, as_csr(ends)).draw(60_000)
    of_hub = s.j[s.i == 0]
    counts = np.bincount(of_hub, minlength=9)
    expected = len(of_hub) * np.array([0, 0.1, 0.2, 0.3, 0.4, 0, 0, 0, 0])
    assert (abs(counts - expected) <= 5 * expected**0.5).all()
    np.testing.assert_allclose(s.a_ij[s.i == 0], ends[0][of_hub], rtol=1e-6)


def test_the_ends_of_a_walk_are_no_strangers_in_either_direction():
    ends = np.zeros((12, 12))
    ends[0, 5] = ends[6, 0] = 0.5
    s = sampler(ring(12), 1, as_csr(ends)).draw(4000)
    assert set(s.i) == {0, 6}
    of_first = s.i == 0
    assert not np.isin(s.u[of_first], [0, 1, 11, 5, 6]).any()


@settings(max_examples=30)
@given(st.integers(3, 30), st.integers(0, 2**16))
def test_every_second_node_is_an_end_of_a_walk_from_the_first(n, seed):
    ends = random_affinity(n, 3, seed)
    if ends.nnz == 0:
        return
    s = sampler(ring(n), seed, ends).draw(50)
    dense = ends.toarray()
    np.testing.assert_array_equal(dense[s.i, s.j], s.a_ij)
    np.testing.assert_array_equal(dense[s.k, s.l], s.a_kl)
    assert (s.a_ij > 0).all()


def test_nodes_without_a_single_edge_between_them_are_refused():
    with pytest.raises(GraphError, match="of the 5 nodes that are trained on, no two are neighbours"):
        sampler(as_csr(np.zeros((5, 5))))
