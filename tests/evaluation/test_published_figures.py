"""Figures of plain nearest neighbours on real data, known from elsewhere, come out of the whole chain."""

import os
from pathlib import Path

import numpy as np
import pytest

from manifind.baselines import METHODS
from manifind.datasets.labelled import load_digits
from manifind.evaluation.protocols import bullseye, evaluate_lists, mean_average_precision
from manifind.evaluation.relevance import landmark_queries
from manifind.io.ground_truth import read_ground_truth

DATA = os.environ.get("MANIFIND_DATA")


def needs_data(test):
    """For tests that read the folder of data sets; skipped, with the reason, where nobody names it."""
    reason = "MANIFIND_DATA does not name a folder with the data sets"
    return pytest.mark.data(pytest.mark.skipif(not DATA, reason=reason)(test))


def arrays(name):
    with np.load(Path(DATA) / name, allow_pickle=False) as loaded:
        return dict(loaded)


def rankings(X, preprocess, k=None):
    """Every item's ranking of all items, or of its k nearest."""
    return METHODS["knn"](preprocess=preprocess).fit(X).search(k=k or len(X)).ids


def rows_of(names, of):
    """The descriptors of these names, in this order."""
    position = {name: row for row, name in enumerate(of["names"].tolist())}
    return of["descriptors"][[position[name] for name in names]]


def within(truth, names):
    """Ground truth over a part of its database: lists keep what the part has, as positions in it."""
    position = {name: row for row, name in enumerate(names)}
    new = np.array([position.get(name, -1) for name in truth.images])
    lists = {name: [np.sort(new[one][new[one] >= 0]) for one in each] for name, each in truth.lists.items()}
    return truth._replace(lists=lists, images=tuple(names))


def test_digits_have_mean_average_precision_65_87():
    digits = load_digits()
    score = mean_average_precision(rankings(digits.descriptors, "unit"), digits.labels)
    assert score.value == pytest.approx(65.87, abs=0.05)


@needs_data
def test_oxford5k_has_classic_mean_average_precision_40_29():
    truth = read_ground_truth(Path(DATA) / "oxford5k" / "gnd_oxford5k.json")
    caffenet = arrays("oxford5k/caffenet_fc7_pca128.npz")
    X = rows_of(truth.images, caffenet)
    ids = METHODS["knn"]().fit(X).search(rows_of(truth.queries, caffenet), k=len(X)).ids
    score = evaluate_lists(ids, truth)[0]
    assert score.n_queries == 55
    assert score.value == pytest.approx(40.29, abs=0.05)


@needs_data
def test_roxford5k_has_28_9_and_21_1_and_4_6_at_its_three_levels():
    truth = read_ground_truth(Path(DATA) / "oxford5k" / "gnd_roxford5k.json")
    caffenet = arrays("oxford5k/caffenet_fc7_pca128.npz")
    X = rows_of(truth.images, caffenet)
    ids = METHODS["knn"]().fit(X).search(rows_of(truth.queries, caffenet), k=len(X)).ids
    scores = {score.measure: score for score in evaluate_lists(ids, truth)}
    found = [scores[f"mAP {level}"].value for level in ("easy", "medium", "hard")]
    assert found == pytest.approx([28.9, 21.1, 4.6], abs=0.05)
    assert scores["mAP medium"].n_queries == 70


@needs_data
def test_a_part_of_paris6k_has_64_47_by_the_landmark_protocol():
    resnet = arrays("paris1274/resnet34.npz")
    whole = read_ground_truth(Path(DATA) / "paris1274" / "gnd_paris6k.json")
    truth = within(whole, resnet["names"].tolist())
    ids = rankings(resnet["descriptors"], "unit")[landmark_queries(truth)]
    score = evaluate_lists(ids, truth, protocol="landmarks")[0]
    assert score.n_queries == 338
    assert score.value == pytest.approx(64.47, abs=0.05)


@needs_data
def test_coil_20_has_mean_average_precision_60_11():
    coil = arrays("coil20/coil20_32x32.npz")
    ids = rankings(coil["images"].reshape(1440, -1), "unit")
    assert mean_average_precision(ids, coil["labels"]).value == pytest.approx(60.11, abs=0.05)


@needs_data
@pytest.mark.parametrize(
    ("array", "preprocess", "value"), [("masks", "unit", 63.30), ("efficientnet_lite0_gem", "center", 82.66)]
)
def test_mpeg_7_has_its_bullseye_with_the_query_counted(array, preprocess, value):
    shapes = arrays("mpeg7/mpeg7.npz")
    X = shapes[array].reshape(1400, -1).astype(np.float32)
    score = bullseye(rankings(X, preprocess, 40), shapes["labels"], 40, "counted")
    assert score.value == pytest.approx(value, abs=0.05)


@needs_data
def test_aligned_faces_have_bullseye_62_65_with_the_query_counted():
    faces = arrays("orl/orl_aligned_32x32.npz")
    ids = rankings(faces["images"].reshape(400, -1), "none", 16)
    assert bullseye(ids, faces["labels"], 15, "counted").value == pytest.approx(62.65, abs=0.05)
