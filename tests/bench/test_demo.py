"""Tests of manifind.bench.demo: a run on few digits, from its scores to its maps."""

import numpy as np
import pytest

from manifind.baselines.query_expansion import KNN
from manifind.bench import demo
from manifind.datasets.labelled import Digits, load_digits
from manifind.evaluation.protocols import mean_average_precision
from manifind.model.estimator import GradNet

N = 150


@pytest.fixture(scope="module")
def small():
    """The demonstration on 150 digits with three steps of training, and what its listener heard."""
    reports = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "load_digits", lambda: Digits(*(part[:N] for part in load_digits())))
        patch.setattr(demo, "GradNet", lambda **settings: GradNet(max_steps=3, **settings))
        return demo.run_demo(seed=5, listener=reports.append), reports


def test_the_three_methods_are_scored_in_this_order(small):
    result, _ = small
    assert [score.method for score in result.scores] == ["k-NN", "average query expansion", "GRAD-Net"]
    assert all(0 < score.mean_average_precision <= 100 and score.seconds > 0 for score in result.scores)


def test_the_score_of_knn_is_its_mean_average_precision_over_every_item(small):
    result, _ = small
    ids = KNN().fit(result.digits.descriptors).search(k=N).ids
    assert result.scores[0].mean_average_precision == mean_average_precision(ids, result.digits.labels).value


def test_examples_are_evenly_spaced():
    assert demo.example_queries(1797) == [0, 224, 449, 673, 898, 1123, 1347, 1572]


def test_examples_keep_a_hundred_results_and_never_the_query(small):
    result, _ = small
    assert [example.query for example in result.examples] == demo.example_queries(N)
    for example in result.examples:
        for ids in (example.nearest, example.learned):
            assert len(set(ids.tolist())) == demo.N_KEPT
            assert example.query not in ids


def test_the_query_is_left_out_wherever_it_stands():
    assert demo.others(np.array([4, 7, 2]), 7).tolist() == [4, 2]


def test_curve_and_maps_have_a_row_for_each_step_and_item(small):
    result, _ = small
    assert result.loss_curve.shape == (3, 3)
    assert result.descriptor_map.shape == result.feature_map.shape == (N, 2)
    assert np.isfinite(result.feature_map).all()


def test_the_result_carries_settings_seed_and_versions(small):
    result, _ = small
    assert result.seed == result.settings["random_state"] == 5
    assert result.settings["preprocess"] == "unit"
    assert {"manifind", "torch", "python"} <= result.versions.keys()


def test_the_listener_hears_each_stage_begin_in_order_and_end(small):
    _, reports = small
    stages = list(dict.fromkeys(p.stage for p in reports))
    assert stages == ["k-NN", "average query expansion", "graph", "walks", "positives", "training", "features", "maps"]
    assert all(p.done == p.total for p in {p.stage: p for p in reports}.values())
