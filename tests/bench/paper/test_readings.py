"""Tests of the other readings of the paper: each does what it says for one fit, and what they are measured by."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from manifind.baselines import METHODS
from manifind.bench.cell import trial
from manifind.bench.held_out import TWICE, held_out
from manifind.bench.paper.declared import Run
from manifind.bench.task import LabelTruth, ListTruth, RetrievalTask
from manifind.evaluation.relevance import landmark_queries
from manifind.graph.knn_graph import transition, with_loops
from manifind.graph.manifold import build_manifold
from manifind.index.fit_context import FitContext
from manifind.io.ground_truth import GroundTruth
from manifind.model import network, sampling, trainer
from manifind.model.trainer import Trainer
from manifind.progress import ignore
from project import load_script
from reference.graphs import as_csr, clusters, random_affinity

other, readings = load_script("other_readings"), load_script("readings")
PAPER_NET, BULLSEYE = METHODS["gradnet-paper"], "bullseye@15 counted"
SHORT = {"epochs": 3, "n_anchors": 10, "n_neighbors": 5, "layers": [16, 8], "batch_size": 64, "random_state": 0}


def job(settings=SHORT, seed=0, **options):
    return {"settings": settings, "options": options, "seed": seed}


# ---- readings that are no settings


def test_literally_j_is_next_to_i_and_to_k():
    affinity = random_affinity(30, 6, seed=1)
    A = affinity.toarray()
    sextets = other.CommonNeighbourSampler(affinity, np.random.default_rng(0)).draw(500)
    i, j, k, l, u, v = sextets.nodes  # noqa: E741 - the paper's letter
    has_other = (A[j] > 0).sum(axis=1) > 1
    assert has_other.mean() > 0.9
    assert (A[j, k] > 0)[has_other].all()
    assert (k != i)[has_other].all()
    np.testing.assert_array_equal(sextets.a_ij, A[i, j])
    np.testing.assert_array_equal(sextets.a_kl, A[k, l])
    assert (sextets.a_ij > 0).all()
    assert (sextets.a_kl > 0).all()
    assert not ((u == i) | (u == j) | (v == k) | (v == l)).any()


def test_where_j_has_no_other_neighbour_k_is_any_node():
    pairs = np.kron(np.eye(5), [[0, 1], [1, 0]])
    i, _, k, *_ = other.CommonNeighbourSampler(as_csr(pairs), np.random.default_rng(0)).draw(400).nodes
    assert set(k.tolist()) == set(range(10))
    assert (k // 2 != i // 2).any()


def test_only_the_copies_for_the_features_have_unit_rows():
    Y = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    passed, features = other.activate_unnormalised(Y, 0.2, 0.3, None, 3)
    torch.testing.assert_close(passed, F.leaky_relu(Y, 0.2))
    torch.testing.assert_close(features, F.normalize(passed[:3]))


def test_both_copies_lose_the_same_entries():
    Y = torch.randn(50, 40, generator=torch.Generator().manual_seed(0))
    passed, features = other.activate_unnormalised(Y, 0.2, 0.3, torch.Generator().manual_seed(1), 50)
    assert torch.equal(passed == 0, features == 0)
    assert (passed == 0).float().mean().item() == pytest.approx(0.3, abs=0.05)
    kept = passed != 0
    torch.testing.assert_close(passed[kept], (F.leaky_relu(Y, 0.2) / 0.7)[kept])


def test_an_item_that_is_its_own_neighbour_stands_in_s_and_the_layer_still_adds_it():
    settings = PAPER_NET(**SHORT)
    manifold = build_manifold(clusters(40, 5, 3, seed=0), settings, FitContext())
    with other.READINGS["self"]():
        made = Trainer(manifold, settings, FitContext())
    expected = transition(with_loops(manifold.affinity))
    np.testing.assert_allclose(made.S.toarray(), expected.toarray(), atol=1e-6)
    assert (made.S.diagonal() > 0).all()
    assert made.network.layers[0].self_weight == 1


@pytest.mark.parametrize("reading", list(other.READINGS))
def test_a_reading_changes_one_fit_and_is_gone_afterwards(reading, faces):
    before = sampling.SextetSampler, trainer.transition, network.activate
    plain = trial(faces, PAPER_NET, job(), ignore)["values"]
    assert other.fit_reading(faces, PAPER_NET, job(reading=reading), ignore)["values"] != plain
    assert (sampling.SextetSampler, trainer.transition, network.activate) == before
    assert trial(faces, PAPER_NET, job(), ignore)["values"] == plain


# ---- what is measured


def test_right_edges_are_those_between_items_of_one_label():
    X = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1], [1, 1.1]], dtype=np.float32)
    task = RetrievalTask("", X, None, None, LabelTruth(np.array([0, 0, 1, 2, 1]), None))
    values = other.right_edges(task, PAPER_NET, job({"n_neighbors": 1}), ignore)["values"]
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosine = (unit @ unit.T)[~np.eye(5, dtype=bool)].mean()
    assert values == {"right, %": 50.0, "edges": 2.0, "cosine": pytest.approx(cosine, abs=1e-6)}


def test_before_the_first_epoch_a_network_is_as_it_is_without_training(faces):
    values = other.first_epochs(faces, PAPER_NET, job({**SHORT, "epochs": 10}, measure=BULLSEYE), ignore)["values"]
    untrained = trial(faces, PAPER_NET, job({**SHORT, "max_steps": 0}), ignore)["values"]
    assert values["score 0"] == pytest.approx(untrained[BULLSEYE])
    assert set(values) == {f"{what} {epoch}" for what in ("score", "cosine") for epoch in other.LOOKED_AT}
    features = PAPER_NET(**SHORT, max_steps=0).fit(faces.descriptors).features_
    cosines = (features @ features.T)[~np.eye(len(features), dtype=bool)]
    assert values["cosine 0"] == pytest.approx(cosines.mean(), abs=1e-5)


def test_the_terms_at_the_start_are_those_of_the_loss(faces):
    values = other.loss_terms(faces, PAPER_NET, job(), ignore)["values"]
    d = faces.descriptors.shape[1] + SHORT["n_anchors"]
    expected = sum(4 * a * b / (a + b) for a, b in ((d, 16), (16, 8)))  # twice d d' entries of variance 2 / (d + d')
    assert values["decay"] == pytest.approx(np.exp(-5) * expected, rel=0.2)
    assert 0 < values["local"] < 2 * np.log(2)
    assert values["ratio"] == pytest.approx(values["decay"] / (values["local"] + values["global"]))


@pytest.mark.parametrize("seed", [0, 1])
def test_held_out_queries_are_scored_as_the_package_scores_them(seed, faces):
    options = job({**SHORT, "random_state": seed}, seed, measure=BULLSEYE, measures=[BULLSEYE], twice=True)
    ours = other.expansions(faces, PAPER_NET, options, ignore)["values"]
    theirs = held_out(faces, PAPER_NET, options, ignore)["values"]
    assert ours["distance"] == pytest.approx(theirs[BULLSEYE])
    assert ours["twice, distance"] == pytest.approx(theirs[BULLSEYE + TWICE])


def test_neighbours_are_weighed_by_the_cosine_or_alike(faces):
    X, Q = faces.descriptors[::2], faces.descriptors[1:20:2]
    learned = PAPER_NET(**SHORT).fit(X).contents().learned
    prepared = learned.prepared(Q)
    as_cosine = replace(learned, queries=replace(learned.queries, similarity="cosine"))
    found = other.expand(learned, prepared, "cosine")
    np.testing.assert_allclose(found.scores, as_cosine.search(Q, len(X)).scores, atol=1e-5)
    near = learned.node_neighbours(prepared, SHORT["n_neighbors"]).ids
    mean = learned.features[near].mean(axis=1)
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    found, expected = other.expand(learned, prepared, "equal"), -np.sort(-mean @ learned.features.T)
    np.testing.assert_allclose(found.scores, expected, atol=1e-5)


@pytest.fixture(scope="module")
def landmark_task():
    """Three landmarks with 4, 6 and 10 right items, of which each is a query."""
    X = clusters(25, 4, 3, seed=0)
    right = [np.arange(0, 4), np.arange(4, 10), np.arange(10, 20)]
    truth = GroundTruth({"ok": right, "junk": [np.empty(0, dtype=np.int64)] * 3}, None, None)
    return RetrievalTask("", X, None, landmark_queries(truth), ListTruth(truth, "landmarks", 0))


def test_queries_are_drawn_as_a_fifth_as_many_as_landmarks_or_one_of_each(landmark_task):
    draws = {
        draw: [other.drawn_queries(landmark_task, "mAP", draw, np.random.default_rng(seed)) for seed in range(50)]
        for draw in ("fifth", "eleven", "landmarks")
    }
    assert {draw: {len(out) for out in found} for draw, found in draws.items()} == {
        "fifth": {4},
        "eleven": {3},
        "landmarks": {3},
    }
    of_query = np.repeat(np.arange(3), [4, 6, 10])
    assert all(sorted(of_query[out]) == [0, 1, 2] for out in draws["landmarks"])
    assert any(sorted(of_query[out]) != [0, 1, 2] for out in draws["eleven"])
    assert len({tuple(sorted(out)) for out in draws["landmarks"]}) > 10


def test_several_draws_have_a_deviation_and_one_has_none(landmark_task):
    values = [
        other.draws(landmark_task, METHODS["knn"], job({}, measure="mAP", draw="landmarks", draws=n), ignore)["values"]
        for n in (1, 5)
    ]
    assert [set(one) for one in values] == [{"mean"}, {"mean", "deviation"}]


# ---- sets and tables


def test_standardised_pixels_vary_alike_and_a_constant_one_stays_at_zero():
    X = np.array([[1, 10, 7], [3, 50, 7], [5, 30, 7]], dtype=np.float32)
    out = readings.standardised(X)
    np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(out.std(axis=0), [1, 1, 0], rtol=1e-6)


def test_a_column_shows_the_means_over_the_seeds_that_all_its_rows_have(results):
    runs = {name: Run("trial", name, "gradnet-paper") for name in ("ours", "theirs", "never")}
    for name, values in {"ours": (70.0, 72.0, 99.0), "theirs": (60.0, 61.0)}.items():
        for seed, value in enumerate(values):
            record = {"state": "done", "reason": "", "hint": "", "values": {BULLSEYE: value}}
            results.add(runs[name].key(seed), record)
    rows = {name: (readings.Cell(run), None) for name, run in runs.items()}
    assert readings.rendered(readings.Table(("", "a", "b"), rows), [results]).splitlines() == [
        "|  | a (2 seeds) | b |",
        "|---|--:|--:|",
        "| ours | 71.0 ± 1.4 |  |",
        "| theirs | 60.5 ± 0.7 |  |",
        "| never | not run |  |",
    ]


def test_every_run_is_made_once_and_what_takes_long_or_has_no_seed_with_one_seed():
    runs = readings.runs()
    assert len({repr(run.key(0)) for run in runs}) == len(runs)
    assert all(run.procedure in {"trial", *other.PROCEDURES} for run in runs)
    seeds = {repr(run): len(readings.seeds_of(run)) for run in runs}
    assert seeds[repr(readings.faces(n_neighbors=4).run)] == 3
    assert seeds[repr(readings.faces(epoch="edges").run)] == 1
    assert all(seeds[repr(run)] == 1 for run in runs if run.method == "knn")
