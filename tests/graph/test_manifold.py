"""The manifold: queries in front of the database, codes behind the descriptors."""

from dataclasses import replace

import numpy as np
import pytest

from manifind.errors import GraphError, InputError
from manifind.graph.duplicates import gather_nodes, join_queries
from manifind.graph.manifold import build_manifold, input_features, narrowed
from manifind.index.fit_context import FitContext
from manifind.settings import INPUTS, GradNetSettings
from reference.graphs import as_csr, clusters
from reference.inputs import inputs_by_loops, joined_by_loops

SETTINGS = GradNetSettings(
    n_neighbors=5,
    index="exact",
    graph="mutual",
    similarity="euclidean",
    n_anchors=7,
    n_codes=3,
    inputs="both",
    input_components=None,
    positives="edges",
    walk_weight=0.0,
)


def rows(*values):
    return np.array(values, dtype=np.float32)


@pytest.mark.equation(1)
def test_one_query_stands_in_front_of_two_items():
    nodes = join_queries(rows([9, 9]), rows([1, 2], [3, 4]))
    assert nodes.tolist() == [[9, 9], [1, 2], [3, 4]]


@pytest.mark.equation(1)
@pytest.mark.parametrize("m", [1, 4])
def test_joined_nodes_equal_the_loops(m):
    Q, X = clusters(m, 3, 2, seed=m), clusters(10, 3, 2, seed=0)
    assert join_queries(Q, X).tolist() == joined_by_loops(Q, X)


@pytest.mark.equation(1)
def test_both_parts_can_be_cut_out_of_the_joined_nodes_again():
    Q, X = clusters(4, 3, 2, seed=1), clusters(10, 3, 2, seed=0)
    nodes = join_queries(Q, X)
    np.testing.assert_array_equal(nodes[:4], Q)
    np.testing.assert_array_equal(nodes[4:], X)
    assert nodes.dtype == np.float32
    np.testing.assert_array_equal(join_queries(Q[:0], X), X)


@pytest.mark.equation(10)
def test_codes_are_appended_to_the_descriptors_by_hand():
    Z = as_csr([[0.25, 0.75], [1, 0], [0, 1]])
    H0 = input_features(rows([1, 2], [3, 4], [5, 6]), Z, "both")
    assert H0.tolist() == [[1, 2, 0.25, 0.75], [3, 4, 1, 0], [5, 6, 0, 1]]


@pytest.mark.equation(10)
def test_inputs_equal_the_loops():
    X = clusters(12, 4, 2, seed=2)
    Z = as_csr(np.random.default_rng(2).dirichlet(np.ones(5), size=12))
    assert input_features(X, Z, "both").tolist() == inputs_by_loops(X, Z.toarray())


@pytest.mark.equation(10)
def test_descriptors_or_codes_alone_are_the_two_sides_of_both():
    X, Z = clusters(12, 4, 2, seed=3), as_csr(np.eye(12)[:, :5])
    both = input_features(X, Z, "both")
    np.testing.assert_array_equal(input_features(X, Z, "descriptors"), both[:, :4])
    np.testing.assert_array_equal(input_features(X, Z, "codes"), both[:, 4:])
    assert {input_features(X, Z, inputs).dtype for inputs in INPUTS.choices} == {np.dtype(np.float32)}


def test_unknown_inputs_are_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"'pixels'.*'both', 'descriptors', 'codes'"):
        input_features(rows([1, 2]), as_csr([[1]]), "pixels")


def test_a_manifold_has_one_row_everywhere_for_each_node():
    X = clusters(60, 4, 3, seed=4)
    manifold = build_manifold(X, SETTINGS, FitContext())
    assert manifold.affinity.shape == (60, 60)
    assert manifold.anchors.shape == (7, 4)
    assert manifold.codes.shape == (60, 7)
    assert manifold.inputs.shape == (60, 11)
    assert np.diff(manifold.codes.indptr).max() <= 3
    np.testing.assert_array_equal(manifold.inputs[:, :4], X)
    np.testing.assert_array_equal(manifold.inputs[:, 4:], manifold.codes.toarray())


def test_the_same_seed_builds_the_same_manifold():
    X = clusters(60, 4, 3, seed=5)
    one, two = (build_manifold(X, SETTINGS, FitContext(8)) for _ in range(2))
    np.testing.assert_array_equal(one.inputs, two.inputs)
    np.testing.assert_array_equal(one.affinity.toarray(), two.affinity.toarray())


def test_a_manifold_of_too_few_items_is_refused():
    with pytest.raises(GraphError, match="n_neighbors = 5, but there are only 4"):
        build_manifold(clusters(4, 2, 1, seed=0), SETTINGS, FitContext())


def test_the_nodes_are_not_written_to():
    X = clusters(60, 4, 3, seed=6)
    X.flags.writeable = False
    before = X.copy()
    build_manifold(X, SETTINGS, FitContext())
    np.testing.assert_array_equal(X, before)


def test_nodes_are_distinct_and_every_query_and_item_knows_its_own():
    Q, X = rows([9, 9], [1, 2]), rows([1, 2], [3, 4], [1, 2], [9, 9])
    nodes = gather_nodes(Q, X, None)
    np.testing.assert_array_equal(nodes.descriptors, rows([9, 9], [1, 2], [3, 4]))
    np.testing.assert_array_equal(nodes.descriptors[nodes.of_queries], Q)
    np.testing.assert_array_equal(nodes.descriptors[nodes.of_items], X)
    np.testing.assert_array_equal(nodes.first_items, [0, 1, 3])
    assert nodes.inside.all()


def test_truncation_leaves_out_what_is_far_from_every_query():
    X = np.arange(10, dtype=np.float32)[:, None]
    nodes = gather_nodes(rows([0.1], [8.9]), X, 2)
    np.testing.assert_array_equal(np.flatnonzero(nodes.inside), [0, 1, 8, 9])
    np.testing.assert_array_equal(nodes.first_items, [0, 1, 8, 9])
    np.testing.assert_array_equal(nodes.descriptors[nodes.of_items[[0, 9]]], X[[0, 9]])
    assert (nodes.of_items[2:8] == -1).all()


def test_descriptors_of_few_directions_keep_their_inner_products_when_narrowed_to_as_many():
    X = clusters(30, 3, 2, seed=4) @ np.random.default_rng(4).normal(size=(3, 20)).astype(np.float32)
    narrow = narrowed(X, 3)
    assert narrow.shape == (30, 3)
    np.testing.assert_allclose(narrow @ narrow.T, X @ X.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_components", [None, 4, 9])
def test_descriptors_that_are_narrow_enough_are_left_alone(n_components):
    X = clusters(12, 4, 2, seed=2)
    assert narrowed(X, n_components) is X


def test_only_the_network_sees_the_narrower_descriptors():
    X = clusters(40, 12, 4, seed=0)
    full, narrow = (build_manifold(X, replace(SETTINGS, input_components=c), FitContext()) for c in (None, 5))
    assert (full.inputs.shape[1], narrow.inputs.shape[1]) == (12 + 7, 5 + 7)
    np.testing.assert_array_equal(full.affinity.toarray(), narrow.affinity.toarray())
    np.testing.assert_array_equal(full.anchors, narrow.anchors)
