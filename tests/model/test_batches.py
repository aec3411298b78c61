"""Exact batches: features, losses and gradients as on the whole graph."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from manifind.graph.knn_graph import local_graph, transition
from manifind.graph.manifold import Manifold
from manifind.index.exact import graph_neighbours
from manifind.index.fit_context import FitContext
from manifind.model.layers import Propagation
from manifind.model.sampling import SextetSampler, exact_batch, whole_graph
from manifind.model.trainer import Trainer
from manifind.settings import GradNetSettings
from reference.graphs import as_csr, clusters, random_affinity
from reference.subgraph import hops_by_loops

CPU = torch.device("cpu")
SETTINGS = GradNetSettings(
    layers=(24, 16, 8),
    dropout=0.3,
    precision="float32",
    temperature=1.0,
    global_weight=1.0,
    epochs=1,
    batch_size=16,
    max_steps=None,
    learning_rate=3e-4,
)


@pytest.fixture(scope="module")
def manifold():
    """2,000 nodes in a mutual graph, some of them without an edge."""
    X = clusters(2000, 6, 20, seed=0)
    A = local_graph(X, graph_neighbours(X, 5), "mutual", "euclidean")
    assert (np.diff(A.indptr) == 0).any()
    return Manifold(A, X[:0], None, X)


def trainer(manifold, settings, seed=0):
    return Trainer(manifold, settings, FitContext(seed))


def gradients(loss, network):
    network.zero_grad()
    loss.total.backward()
    return [p.grad.clone() for p in network.parameters()]


@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("layer", ["diffusion", "gcn"])
@pytest.mark.parametrize("self_loops", ["identity", "renormalised"])
def test_a_batch_gives_the_features_losses_and_gradients_of_the_whole_graph(manifold, n_layers, layer, self_loops):
    settings = replace(SETTINGS, layers=SETTINGS.layers[:n_layers], layer=layer, self_loops=self_loops)
    training = trainer(manifold, settings)
    wanted = np.random.default_rng(1).choice(2000, size=40, replace=False)
    with torch.no_grad():
        batch = exact_batch(training.S, wanted, n_layers, CPU)
        some = training.network(training._constants, batch, None)
    everything = training.features()
    assert len(some) == len(everything) == n_layers + 1
    for ours, whole in zip(some, everything, strict=True):
        torch.testing.assert_close(ours, whole[torch.from_numpy(wanted)], rtol=0, atol=1e-5)

    sextets = SextetSampler(manifold.affinity, np.random.default_rng(2)).draw(16)
    in_batch, on_whole = (
        training.batch_loss(sextets, dropout=False),
        training.whole_graph_loss(sextets, dropout=False),
    )
    assert in_batch.total.item() == pytest.approx(on_whole.total.item(), rel=1e-4)
    assert in_batch.local.item() == pytest.approx(on_whole.local.item(), rel=1e-4)
    assert in_batch.global_.item() == pytest.approx(on_whole.global_.item(), rel=1e-4, abs=1e-7)
    pairs = zip(gradients(in_batch, training.network), gradients(on_whole, training.network), strict=True)
    for ours, whole in pairs:
        assert (ours - whole).norm() <= 1e-4 * whole.norm()
        assert whole.norm() > 0


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_a_batch_holds_the_nodes_within_two_hops_for_every_layer_after_the_first(n_layers):
    S = transition(random_affinity(60, 2, 0))
    wanted = np.array([40, 3])
    batch = exact_batch(S, wanted, n_layers, CPU)
    distance = hops_by_loops(S.toarray(), wanted, 2 * (n_layers - 1))
    assert batch.n_wanted == 2
    assert batch.nodes[:2].tolist() == [40, 3]
    assert sorted(batch.nodes.tolist()) == sorted(distance)
    assert len(batch.hops) == n_layers - 1
    within = [sum(hops <= limit for hops in distance.values()) for limit in range(2 * n_layers - 1)]
    for layer, (near, far) in enumerate(batch.hops, start=2):
        left = 2 * (n_layers - layer)
        assert tuple(far.block.shape) == (within[left], within[left + 1])
        assert tuple(near.block.shape) == (within[left + 1], within[left + 2])


def test_the_hops_are_corners_of_the_matrix_in_the_order_of_the_batch():
    S = transition(random_affinity(60, 2, 1))
    batch = exact_batch(S, np.array([7, 50]), 3, CPU)
    nodes = batch.nodes.numpy()
    for near, far in batch.hops:
        for block in (near.block, far.block):
            rows, columns = block.shape
            np.testing.assert_array_equal(block.to_dense(), S.toarray()[np.ix_(nodes[:rows], nodes[:columns])])


def test_a_batch_of_nodes_without_an_edge_needs_nothing_else():
    batch = exact_batch(as_csr(np.zeros((5, 5))), np.array([4, 1]), 3, CPU)
    assert batch.nodes.tolist() == [4, 1]


def test_a_batch_of_all_nodes_gives_the_whole_graph_in_another_order(manifold):
    training = trainer(manifold, SETTINGS)
    order = np.random.default_rng(3).permutation(2000)
    with torch.no_grad():
        outputs = training.network(training._constants, exact_batch(training.S, order, 3, CPU), None)
    torch.testing.assert_close(outputs[-1], training.features()[-1][torch.from_numpy(order)], rtol=0, atol=1e-5)


def test_the_whole_graph_has_every_node_in_its_own_order():
    batch = whole_graph(Propagation(transition(random_affinity(20, 3, 2)), CPU, symmetric=True), 3)
    assert batch.nodes is None
    assert batch.n_wanted == 20
    assert len(batch.hops) == 2


def test_the_transition_matrix_is_not_written_to():
    S = transition(random_affinity(60, 2, 3))
    before = S.toarray()
    exact_batch(S, np.array([7, 50]), 3, CPU)
    np.testing.assert_array_equal(S.toarray(), before)


@pytest.mark.parametrize(("batch_size", "way"), [(16, "batch_loss"), (4096, "whole_graph_loss")])
def test_a_step_takes_the_whole_graph_only_where_it_needs_most_of_it(manifold, monkeypatch, batch_size, way):
    training = trainer(manifold, replace(SETTINGS, batch_size=batch_size))
    taken = []
    for name in ("batch_loss", "whole_graph_loss"):
        original = getattr(training, name)
        monkeypatch.setattr(training, name, lambda *given, name=name, call=original: taken.append(name) or call(*given))
    next(training.steps())
    assert taken == [way]
