"""What the method must show on real data, end to end, as a user would run it."""

import os
from pathlib import Path

import numpy as np
import pytest

from gradnet import METHODS, GradNet
from gradnet.data.digits import load_digits
from gradnet.evaluation.labels import bullseye, mean_average_precision

DATA = os.environ.get("GRADNET_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="GRADNET_DATA does not name a folder with the data sets")


@pytest.mark.slow
def test_default_settings_lift_digits_from_66_to_at_least_89():
    digits = load_digits()
    X, labels = digits.descriptors, digits.labels
    knn = METHODS["knn"](preprocess="unit").fit(X).search(k=len(X)).ids
    assert mean_average_precision(knn, labels).value == pytest.approx(65.87, abs=0.05)
    models = [GradNet(preprocess="unit", random_state=seed).fit(X) for seed in range(3)]
    scores = [mean_average_precision(model.search(k=len(X)).ids, labels).value for model in models]
    assert np.mean(scores) >= 89


@pytest.mark.slow
@pytest.mark.data
@needs_data
def test_one_stated_setting_lifts_aligned_faces_by_at_least_8_points():
    with np.load(Path(DATA) / "orl" / "orl_aligned_32x32.npz", allow_pickle=False) as arrays:
        X, labels = arrays["images"].reshape(400, -1), arrays["labels"]
    knn = bullseye(METHODS["knn"](preprocess="center").fit(X).search(k=16).ids, labels, 15).value
    model = GradNet(preprocess="center", n_neighbors=6, temperature=0.3, random_state=0).fit(X)
    assert knn == pytest.approx(64.5, abs=0.1)
    assert bullseye(model.search(k=16).ids, labels, 15).value >= knn + 8


@pytest.mark.slow
def test_digits_that_were_never_seen_are_found_nearly_as_well():
    digits = load_digits()
    X, labels = digits.descriptors, digits.labels
    held_out = np.arange(len(X)) % 5 == 0
    model = GradNet(random_state=0).fit(X[~held_out])
    plain = METHODS["knn"]().fit(X[~held_out])
    relevant = labels[held_out][:, None] == labels[~held_out]
    learned, raw = (m.search(X[held_out], k=100).ids for m in (model, plain))
    gain = np.take_along_axis(relevant, learned, 1).mean() - np.take_along_axis(relevant, raw, 1).mean()
    assert gain >= 0.08
