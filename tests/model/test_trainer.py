"""The loop: steps and rates, the same run for the same seed, and an end when the loss is no number."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from manifind import checkpoint
from manifind.checkpoint import NO_CHECKPOINT, Checkpoint
from manifind.errors import InputError, TrainingError
from manifind.graph.knn_graph import local_graph
from manifind.graph.manifold import Manifold, build_manifold
from manifind.graph.preprocess import unit_rows
from manifind.graph.subgraph import induced, sample_subgraph
from manifind.index.exact import graph_neighbours
from manifind.index.fit_context import FitContext
from manifind.model.trainer import Schedule, Trainer
from manifind.settings import GradNetSettings
from reference.graphs import as_csr, clusters

CPU = torch.device("cpu")
SETTINGS = GradNetSettings(
    n_neighbors=5,
    index="exact",
    graph="mutual",
    similarity="euclidean",
    n_anchors=6,
    n_codes=3,
    inputs="both",
    positives="edges",
    walk_weight=0.0,
    layers=(8, 6, 4),
    dropout=0.3,
    precision="float32",
    temperature=1.0,
    global_weight=1.0,
    epochs=3,
    batch_size=16,
    max_steps=None,
    learning_rate=1e-3,
    milestones=(1 / 3, 2 / 3),
)


@pytest.fixture(scope="module")
def manifold():
    return build_manifold(unit_rows(clusters(80, 5, 4, seed=0)), SETTINGS, FitContext())


def trainer(manifold, settings=SETTINGS, seed=0, checkpoint=NO_CHECKPOINT, **options):
    return Trainer(manifold, settings, FitContext(seed, checkpoint=checkpoint), **options)


def losses_of(training):
    return [report.loss for report in training.steps()]


def weights_of(training):
    return {name: weight.detach().numpy().copy() for name, weight in training.network.named_parameters()}


@pytest.mark.parametrize(
    ("epoch", "batch_size", "expected"), [("nodes", 64, 2), ("nodes", 100, 1), ("edges", 64, 4), ("edges", 250, 1)]
)
def test_an_epoch_sees_about_every_node_or_edge_once(epoch, batch_size, expected):
    ring = np.zeros((100, 100))
    for hop in (1, 2):
        ring[np.arange(100), (np.arange(100) + hop) % 100] = 1
    affinity = as_csr(ring + ring.T)  # 100 nodes, 200 edges
    schedule = Schedule(replace(SETTINGS, epoch=epoch, batch_size=batch_size), affinity)
    assert schedule.steps_per_epoch == expected
    assert schedule.total == 3 * expected


@pytest.mark.parametrize(
    ("batch_size", "n", "expected"), [(64, 100, 64), (None, 100, 800), (None, 2_048, 16_384), (None, 9_000, 16_384)]
)
def test_where_it_is_not_given_a_step_draws_eight_sextets_a_node_up_to_a_limit(batch_size, n, expected):
    affinity = as_csr(np.eye(2)).reshape(1, 4)  # only its number of rows counts
    affinity.resize((n, n))
    assert Schedule(replace(SETTINGS, batch_size=batch_size), affinity).sextets == expected


@pytest.mark.parametrize(("max_steps", "expected"), [(None, 15), (4, 4), (0, 0), (100, 15)])
def test_a_limit_on_steps_ends_the_training_earlier_but_never_later(manifold, max_steps, expected):
    settings = replace(SETTINGS, max_steps=max_steps)
    assert Schedule(settings, manifold.affinity).total == expected  # 80 nodes, 16 a batch, 3 epochs
    assert len(losses_of(trainer(manifold, settings))) == expected


@pytest.mark.parametrize(("n", "expected"), [(100, 150), (20_000, 150), (40_000, 75), (100_000, 30), (10**6, 30)])
def test_left_to_itself_training_takes_fewer_steps_where_each_costs_more(n, expected):
    affinity = as_csr(np.eye(2)).reshape(1, 4)  # only its number of rows counts
    affinity.resize((n, n))
    assert Schedule(replace(SETTINGS, max_steps="auto", epochs=10**6), affinity).total == expected


def test_reports_count_steps_and_epochs(manifold):
    reports = list(trainer(manifold).steps())
    assert [report.step for report in reports] == list(range(1, 16))
    assert [report.epoch for report in reports] == [1] * 5 + [2] * 5 + [3] * 5
    assert {report.total for report in reports} == {15}


def test_a_report_holds_the_parts_of_its_loss(manifold):
    settings = replace(SETTINGS, l2=0.0, local_weight=2.0, global_weight=0.5)
    for report in trainer(manifold, settings).steps():
        assert report.loss == pytest.approx(2 * report.local + 0.5 * report.global_, rel=1e-5)


def test_the_rate_is_halved_after_each_milestone(manifold, monkeypatch):
    rates = []
    training = trainer(manifold)
    step = training._step

    def recording(adam):
        rates.append(adam.param_groups[0]["lr"])
        return step(adam)

    monkeypatch.setattr(training, "_step", recording)
    losses_of(training)
    assert rates == [1e-3] * 5 + [5e-4] * 5 + [2.5e-4] * 5


def test_the_same_seed_gives_the_same_losses_bit_for_bit(manifold):
    one, two = trainer(manifold, seed=4), trainer(manifold, seed=4)
    assert losses_of(one) == losses_of(two)
    for a, b in zip(one.features(), two.features(), strict=True):
        assert torch.equal(a, b)


def test_another_seed_gives_other_losses(manifold):
    assert losses_of(trainer(manifold, seed=4)) != losses_of(trainer(manifold, seed=5))


def test_the_seed_decides_the_dropout_too(manifold):
    one, two, other = (trainer(manifold, seed=seed) for seed in (4, 4, 5))
    other.network.load_state_dict(one.network.state_dict())
    sextets = one._sampler.draw(16)
    with torch.no_grad():
        a, b, c = (training.batch_loss(sextets, dropout=True).total.item() for training in (one, two, other))
    assert a == b
    assert a != c


def test_the_global_random_states_are_left_alone(manifold):
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    losses_of(trainer(manifold))
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)


def test_training_lowers_the_loss_on_clusters(manifold):
    settings = replace(SETTINGS, epochs=16, milestones=(), learning_rate=1e-2, dropout=0.0, output="last")
    losses = losses_of(trainer(manifold, settings))
    assert np.mean(losses[-10:]) < 0.75 * np.mean(losses[:10])


def test_a_step_changes_every_weight(manifold):
    training = trainer(manifold)
    before = [p.detach().clone() for p in training.network.parameters()]
    next(training.steps())
    for old, new in zip(before, training.network.parameters(), strict=True):
        assert not torch.equal(old, new)


def test_a_loss_that_is_no_number_ends_the_training_with_advice(manifold):
    training = trainer(manifold)
    steps = training.steps()
    next(steps)
    with torch.no_grad():
        next(training.network.parameters())[0, 0] = float("nan")
    with pytest.raises(TrainingError, match="the loss is nan after 2 steps") as failure:
        next(steps)
    assert "learning_rate" in failure.value.hint
    assert isinstance(failure.value, ArithmeticError)


def test_an_infinite_loss_ends_the_training_too(manifold):
    training = trainer(manifold)
    with torch.no_grad():
        next(training.network.parameters())[0, 0] = 1e30  # its square leaves float32
    with pytest.raises(TrainingError, match="after 1 step;"):
        next(training.steps())


@pytest.mark.parametrize("output", ["concat", "last"])
@pytest.mark.parametrize("layers", [(8, 4), (8, 6, 4), (8, 6, 5, 4)], ids=["two", "three", "four"])
def test_a_zero_descriptor_without_an_edge_does_not_break_the_training(layers, output):
    X = clusters(40, 6, 2, seed=1)
    X[:20, 0] += 30
    X[20:, 0] -= 30
    X[7] = 0  # far from both halves, so that no one answers its choice
    A = local_graph(X, graph_neighbours(X, 4), "mutual", "euclidean")
    assert A[[7]].nnz == 0
    network = replace(SETTINGS, layers=layers, output=output, dropout=0.0)
    losses = losses_of(trainer(Manifold(A, X[:0], None, X), network))
    assert np.isfinite(losses).all()


@pytest.mark.parametrize(("output", "widths"), [("concat", [11, 8, 6, 4]), ("last", [4])])
def test_features_are_those_of_every_layer_or_of_the_last(manifold, output, widths):
    features = trainer(manifold, replace(SETTINGS, output=output)).features()
    assert [H.shape for H in features] == [(80, width) for width in widths]
    assert not any(H.requires_grad for H in features)


@pytest.mark.parametrize("self_loops", ["identity", "renormalised"])
def test_self_loops_stand_in_the_matrix_only_when_renormalised(manifold, self_loops):
    training = trainer(manifold, replace(SETTINGS, self_loops=self_loops))
    assert (training.S.diagonal() > 0).all() == (self_loops == "renormalised")
    assert {layer.self_weight for layer in training.network.layers} == {1.0 if self_loops == "identity" else 0.0}


def test_dropout_is_drawn_for_training_and_left_out_for_features(manifold):
    training = trainer(manifold)
    sextets = training._sampler.draw(16)
    with torch.no_grad():
        dropped = {training.batch_loss(sextets, dropout=True).total.item() for _ in range(5)}
        plain = {training.batch_loss(sextets, dropout=False).total.item() for _ in range(5)}
    assert len(dropped) == 5
    assert len(plain) == 1


def test_the_manifold_is_not_written_to(manifold):
    inputs, affinity = manifold.inputs.copy(), manifold.affinity.toarray()
    losses_of(trainer(manifold))
    np.testing.assert_array_equal(manifold.inputs, inputs)
    np.testing.assert_array_equal(manifold.affinity.toarray(), affinity)


# ---- going on where another training stopped


@pytest.mark.parametrize("stopped", [1, 4, 7, 15])
def test_a_training_that_is_stopped_and_continued_is_the_same_bit_for_bit(manifold, stopped, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 0)
    whole = trainer(manifold)
    expected = list(whole.steps())
    for _ in zip(range(stopped), trainer(manifold, checkpoint=Checkpoint(tmp_path, {})).steps(), strict=False):
        pass
    rest = trainer(manifold, seed=99, checkpoint=Checkpoint(tmp_path, {}))  # nothing of its own seed is left
    assert list(rest.steps()) == expected[stopped:]
    assert rest.curve == whole.curve == [(one.loss, one.local, one.global_) for one in expected]
    for a, b in zip(rest.features(), whole.features(), strict=True):
        assert torch.equal(a, b)


def test_a_step_whose_loss_is_no_number_is_not_kept(manifold, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 0)
    training = trainer(manifold, checkpoint=Checkpoint(tmp_path, {}))
    steps = training.steps()
    next(steps)
    with torch.no_grad():
        next(training.network.parameters())[0, 0] = float("nan")
    with pytest.raises(TrainingError):
        next(steps)
    assert len(Checkpoint(tmp_path, {}).load("training")["losses"]) == 1


def test_given_weights_are_where_the_training_starts(manifold):
    before = trainer(manifold, seed=4)
    losses_of(before)
    start = weights_of(before)
    for weight in start.values():
        weight.flags.writeable = False
    warm, cold = trainer(manifold, seed=5, start={**start, "reduction": np.eye(3)}), trainer(manifold, seed=5)
    for name, weight in weights_of(warm).items():
        np.testing.assert_array_equal(weight, start[name])
    assert losses_of(warm)[0] < losses_of(cold)[0]
    assert all((weight != start[name]).any() for name, weight in weights_of(warm).items())


def test_weights_of_another_network_are_refused_by_name(manifold):
    start = weights_of(trainer(manifold))
    narrow = replace(SETTINGS, layers=(8, 5, 4))
    with pytest.raises(InputError, match=r"'layers.1.W1' are \(8, 6\); expected \(8, 5\)"):
        trainer(manifold, narrow, start=start)
    del start["layers.2.W2"]
    with pytest.raises(InputError, match=r"'layers.2.W2' are missing; expected \(6, 4\)"):
        trainer(manifold, start=start)


def test_a_part_that_is_all_of_the_graph_trains_as_without_one(manifold):
    parted = trainer(manifold, subgraph=np.arange(80))
    assert losses_of(parted) == losses_of(trainer(manifold))


def test_trained_on_a_part_the_network_gives_features_of_all_nodes(manifold):
    part = sample_subgraph(manifold.affinity, 30, seed=0)
    parted = trainer(manifold, subgraph=part)
    losses = losses_of(parted)
    assert len(losses) == Schedule(SETTINGS, induced(manifold.affinity, part)).total
    assert losses != losses_of(trainer(manifold))
    whole = trainer(manifold, start=weights_of(parted))
    for one, other in zip(parted.features(), whole.features(), strict=True):
        assert len(one) == 80
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_a_step_on_a_part_hears_in_its_first_layer_what_the_whole_graph_says(manifold):
    """Its messages are constants of the whole graph; only further layers miss the edges that leave the part."""
    part = sample_subgraph(manifold.affinity, 30, seed=0)
    parted = trainer(manifold, subgraph=part)
    inside, everywhere = parted._parts(parted._whole, False), parted.features()
    for layer in (0, 1):
        torch.testing.assert_close(inside[layer], everywhere[layer][part], rtol=1e-5, atol=1e-6)
    assert (inside[2] - everywhere[2][part]).abs().max() > 1e-3
