"""The whole network: against loops, with nodes that have no edge, and both kinds of output."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from manifind.graph.knn_graph import renormalised, transition
from manifind.model.layers import Propagation
from manifind.model.network import GraphNetwork, joined_layers, takes_bfloat16
from manifind.model.sampling import whole_graph
from manifind.settings import GradNetSettings
from reference.graphs import as_csr, random_affinity
from reference.layers import joined_by_loops, network_by_loops

CPU = torch.device("cpu")
SETTINGS = GradNetSettings(
    layers=(5, 4, 3),
    layer="diffusion",
    negative_slope=0.2,
    dropout=0.3,
    output="concat",
    self_loops="identity",
    precision="float32",
)
VARIANTS = [
    replace(SETTINGS, layer=layer, self_loops=self_loops)
    for layer in ("diffusion", "gcn")
    for self_loops in ("identity", "renormalised")
]


def variant_name(settings):
    return f"{settings.layer}-{settings.self_loops}"


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def inputs(n, d, seed=0):
    return torch.randn(n, d, generator=generator(seed))


def matrix(A, settings):
    return transition(A) if settings.self_loops == "identity" else renormalised(A)


def run(A, H0, settings, dropout=None, seed=0):
    S = matrix(A, settings)
    network = GraphNetwork(H0.shape[1], settings, generator(seed))
    hop = Propagation(S, CPU, symmetric=True)
    return network, network(network.prepare(hop, H0), whole_graph(hop, len(settings.layers)), dropout)


def join(outputs, output):
    return torch.cat(joined_layers(outputs, output), dim=1)


def weights_of(network):
    return [tuple(W.detach().numpy() for W in layer.parameters()) for layer in network.layers]


@pytest.mark.equation(17)
def test_layers_are_joined_one_after_the_other_by_hand():
    outputs = [torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0]]), torch.tensor([[4.0, 5.0]])]
    assert join(outputs, "concat").tolist() == [[1, 2, 3, 4, 5]]
    assert join(outputs, "last").tolist() == [[4, 5]]


@pytest.mark.equation(6, 11, 16, 17)
@pytest.mark.parametrize("settings", VARIANTS, ids=variant_name)
@pytest.mark.parametrize("layers", [(4,), (5, 4, 3)], ids=["one", "three"])
def test_the_network_equals_the_loops(settings, layers):
    settings = replace(settings, layers=layers)
    A, H0 = random_affinity(10, 3, 0), inputs(10, 6)
    network, outputs = run(A, H0, settings)
    self_weight = 1.0 if settings.self_loops == "identity" else 0.0
    expected = network_by_loops(matrix(A, settings).toarray(), H0, weights_of(network), 0.2, self_weight)
    assert len(outputs) == len(layers) + 1
    for ours, theirs in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(ours.detach(), theirs, atol=1e-5)
    np.testing.assert_allclose(join(outputs, "concat").detach(), joined_by_loops(expected), atol=1e-5)


@pytest.mark.equation(17)
def test_joined_features_are_as_wide_as_all_layers_and_the_last_as_its_own():
    _, outputs = run(random_affinity(10, 3, 1), inputs(10, 6), SETTINGS)
    H = join(outputs, "concat")
    assert H.shape == (10, 6 + 5 + 4 + 3)
    torch.testing.assert_close(H[:, -3:], join(outputs, "last"))
    torch.testing.assert_close(H[:, :6], inputs(10, 6))


@pytest.mark.parametrize("settings", VARIANTS, ids=variant_name)
def test_a_node_without_an_edge_comes_out_as_if_it_were_alone(settings):
    A = random_affinity(12, 4, 2).toarray()
    A[5] = A[:, 5] = 0
    H0 = inputs(12, 6)
    _, together = run(as_csr(A), H0, settings)
    _, alone = run(as_csr([[0]]), H0[5:6], settings)
    for ours, theirs in zip(together, alone, strict=True):
        torch.testing.assert_close(ours[5:6], theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("settings", VARIANTS, ids=variant_name)
def test_two_parts_that_are_not_connected_do_not_hear_each_other(settings):
    one, two = random_affinity(8, 3, 3).toarray(), random_affinity(6, 3, 4).toarray()
    H0 = inputs(14, 6)
    _, together = run(as_csr(np.block([[one, np.zeros((8, 6))], [np.zeros((6, 8)), two]])), H0, settings)
    _, first = run(as_csr(one), H0[:8], settings)
    torch.testing.assert_close(together[-1][:8], first[-1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("settings", VARIANTS, ids=variant_name)
def test_permuting_the_nodes_permutes_the_features(settings):
    A, H0 = random_affinity(12, 4, 5).toarray(), inputs(12, 6)
    order = np.random.default_rng(0).permutation(12)
    _, plain = run(as_csr(A), H0, settings)
    _, permuted = run(as_csr(A[np.ix_(order, order)]), H0[order], settings)
    torch.testing.assert_close(permuted[-1], plain[-1][order], rtol=1e-5, atol=1e-5)


def test_every_layer_leaves_unit_rows():
    _, outputs = run(random_affinity(12, 4, 6), inputs(12, 6), SETTINGS)
    for H in outputs[1:]:
        torch.testing.assert_close(H.norm(dim=1), torch.ones(12))


def test_dropout_changes_every_layer_but_not_the_inputs():
    A, H0 = random_affinity(12, 4, 7), inputs(12, 6)
    (_, plain), (_, dropped), (_, again) = (run(A, H0, SETTINGS, g) for g in (None, generator(1), generator(1)))
    assert torch.equal(plain[0], dropped[0])
    for a, b, c in zip(plain[1:], dropped[1:], again[1:], strict=True):
        assert not torch.equal(a, b)
        assert torch.equal(b, c)


def test_the_squared_norm_counts_every_weight():
    network = GraphNetwork(6, SETTINGS, generator())
    expected = sum(float((W**2).sum()) for layer in weights_of(network) for W in layer)
    assert network.squared_norm().item() == pytest.approx(expected, rel=1e-6)
    assert sum(W.size for layer in weights_of(network) for W in layer) == 2 * (6 * 5 + 5 * 4 + 4 * 3)


@pytest.mark.parametrize("settings", VARIANTS, ids=variant_name)
def test_gradients_of_all_weights_agree_with_finite_differences(settings):
    A, H0 = random_affinity(5, 3, 8), inputs(5, 2).double()
    settings = replace(settings, layers=(3, 2))
    S = matrix(A, settings).astype(np.float64)
    network = GraphNetwork(2, settings, generator()).double()
    constants = network.prepare(Propagation(S, CPU, symmetric=True), H0)
    batch = whole_graph(Propagation(S, CPU, symmetric=True), 2)
    names = [name for name, _ in network.named_parameters()]

    def features(*weights):
        call = torch.func.functional_call(network, dict(zip(names, weights, strict=True)), (constants, batch, None))
        return join(call, "concat")

    weights = [p.detach().requires_grad_() for p in network.parameters()]
    assert torch.autograd.gradcheck(features, weights, fast_mode=True)


def test_the_same_generator_gives_the_same_network():
    one, two, other = (GraphNetwork(6, SETTINGS, generator(seed)) for seed in (3, 3, 4))
    for a, b, c in zip(one.parameters(), two.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        assert not torch.equal(a, c)


def test_bfloat16_changes_features_and_gradients_by_its_rounding_only():
    A, H0 = random_affinity(12, 4, 7), inputs(12, 6)
    (exact, full), (rounded, narrow) = (
        run(A, H0, replace(SETTINGS, precision=precision), None) for precision in ("float32", "bfloat16")
    )
    for network, outputs in ((exact, full), (rounded, narrow)):
        outputs[-1].square().mul(torch.arange(3)).sum().backward()
        assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in network.parameters())
    assert not torch.equal(full[-1], narrow[-1])
    torch.testing.assert_close(narrow[-1], full[-1], rtol=0, atol=0.02)
    for a, b in zip(exact.parameters(), rounded.parameters(), strict=True):
        cosine = torch.nn.functional.cosine_similarity(a.grad.flatten(), b.grad.flatten(), dim=0)
        assert cosine > 0.99  # not entry by entry: a sign near zero may turn, and with it the slope


@pytest.mark.parametrize(
    ("precision", "expected"), [("float32", False), ("bfloat16", True), ("by device", False), ("auto", None)]
)
def test_the_type_of_the_constants_is_what_was_asked_for(precision, expected):
    wanted = torch.cpu._is_avx512_bf16_supported() if expected is None else expected
    assert takes_bfloat16(precision, CPU) == wanted
    assert takes_bfloat16("auto", torch.device("cuda"))
