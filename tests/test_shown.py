"""What the default must show without a label, end to end, as a user would run it; docs/default.md has every set."""

import os

import numpy as np
import pytest

from manifind.baselines import METHODS
from manifind.bench.cell import trial
from manifind.bench.suite import SUITES, read_member
from manifind.datasets.catalogue import VARIABLE
from manifind.datasets.labelled import load_digits
from manifind.datasets.synthetic import make_pairs
from manifind.evaluation.protocols import mean_average_precision
from manifind.model.estimator import GradNet
from manifind.progress import ignore


def scores(name):
    """Of plain k-NN, preprocessed as suits the set, and of GRAD-Net as it comes."""
    member = next(one for one in SUITES["local"] if one.name == name)
    task = read_member(member)
    plain = trial(task, METHODS["knn"], {"settings": {"preprocess": member.preprocess[-1]}}, ignore)["values"]
    ours = trial(task, GradNet, {"settings": {"random_state": 0}}, ignore)["values"]
    return plain[member.measure], ours[member.measure]


@pytest.mark.slow
def test_digits_rise_from_66_to_at_least_90():
    plain, ours = scores("digits")
    assert plain == pytest.approx(65.87, abs=0.05)
    assert ours >= 90


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} does not name a folder with the data sets")
def test_aligned_faces_rise_by_at_least_8_points():
    plain, ours = scores("ORL aligned 32x32")
    assert plain == pytest.approx(64.5, abs=0.1)
    assert ours >= plain + 8


def test_pairs_which_have_no_manifold_stay_with_their_nearest_neighbours():
    X, labels = make_pairs(200, 64)
    plain, ours = (
        mean_average_precision(model.fit(X).search(k=400).ids, labels).value
        for model in (METHODS["knn"](), GradNet(random_state=0))
    )
    assert plain < 99.9
    assert ours >= plain - 0.5


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
