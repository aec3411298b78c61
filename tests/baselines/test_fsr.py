"""Fast spectral ranking: with all eigenvectors it is manifold ranking."""

import numpy as np
import pytest

from manifind.baselines import diffusion as fsr
from manifind.baselines.diffusion import FSR, ManifoldRanking, leading_eigenpairs
from manifind.graph.knn_graph import transition
from reference.graphs import clusters

X = clusters(60, 6, 5, seed=1)
GRAPH = {"n_neighbors": 4, "graph": "mutual", "alpha": 0.95}


def test_with_full_rank_it_equals_the_closed_form_also_behind_the_last_item_reached():
    spectral, exact = FSR(**GRAPH, rank=60).fit(X).search(k=60), ManifoldRanking(**GRAPH).fit(X).search(k=60)
    np.testing.assert_array_equal(spectral.ids, exact.ids)
    np.testing.assert_allclose(spectral.scores, exact.scores, rtol=1e-4, atol=1e-9)
    assert (exact.scores < 0).any()  # some items were not reached


def test_a_lower_rank_is_nearer_to_the_closed_form_the_higher_it_is():
    exact = ManifoldRanking(**GRAPH).fit(X)
    full = exact._scores(exact._at(np.arange(60)))
    errors = []
    for rank in (5, 20, 40):
        model = FSR(**GRAPH, rank=rank).fit(X)
        errors.append(np.linalg.norm(model._scores(model._at(np.arange(60))) - full))
    assert errors[0] > errors[1] > errors[2] > 0


def test_both_ways_to_the_eigenvectors_span_the_same_space(monkeypatch):
    S = transition(ManifoldRanking(**{**GRAPH, "graph": "union"}).fit(X).affinity_)
    dense_values, dense = leading_eigenpairs(S, 10)
    monkeypatch.setattr(fsr, "_DENSE_EIGEN_UP_TO", 10)
    values, vectors = leading_eigenpairs(S, 10)
    np.testing.assert_allclose(np.sort(values), np.sort(dense_values), rtol=1e-8)
    np.testing.assert_allclose(vectors @ vectors.T, dense @ dense.T, atol=1e-6)


def test_a_rank_of_zero_is_refused():
    with pytest.raises(ValueError, match="rank = 0; expected a whole number of at least 1"):
        FSR(rank=0).fit(X)
