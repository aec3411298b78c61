"""Small results that stand in for a whole run."""

import numpy as np
import pytest

from manifind.bench.demo import DemoResult, Example, MethodScore
from manifind.datasets.labelled import Digits


@pytest.fixture
def demo_result():
    """Twelve scans, six 3s and then six 8s; the query is a 3 and every third of its results is wrong."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 17, size=(12, 8, 8)).astype(np.uint8)
    labels = np.repeat([3, 8], 6)
    return DemoResult(
        digits=Digits(images, images.reshape(12, 64).astype(np.float32), labels),
        scores=(
            MethodScore("k-NN", 61.23, 0.4),
            MethodScore("<b>average</b> & more", 71.01, 0.7),
            MethodScore("GRAD-Net", 88.88, 31.6),
        ),
        examples=(Example(0, np.array([1, 2, 6, 3, 4, 7]), np.array([5, 4, 3, 2, 1, 8])),),
        loss_curve=rng.random((30, 3)).astype(np.float32),
        descriptor_map=rng.normal(size=(12, 2)).astype(np.float32),
        feature_map=rng.normal(size=(12, 2)).astype(np.float32),
        settings={"n_neighbors": 15, "preprocess": "unit"},
        versions={"manifind": "9.9.9"},
        seed=41,
    )
