"""Checks the extractors of timm and open_clip with the real libraries, which import torchvision.

Run it in an environment of its own, with ordinary builds of torch and torchvision that fit each other:

    python -m venv /tmp/ordinary && /tmp/ordinary/bin/pip install torch torchvision timm open_clip_torch -e .[pictures]
    /tmp/ordinary/bin/python scripts/check_model_libraries.py

Models are made with random weights, so that nothing is downloaded; --pretrained loads published ones, by name.
"""

import sys
from importlib.metadata import version

import numpy as np

from manifind.images.extractors import Extractor, make_extractor
from manifind.images.model_libraries import open_clip_extractor, timm_extractor

TIMM, OPEN_CLIP = "vit_tiny_patch16_224", "ViT-B-32/laion2b_s34b_b79k"


def check(extractor: Extractor, dimension: int) -> None:
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 255, size=(*size, 3), dtype=np.uint8) for size in ((40, 60), (300, 200), (40, 60))]
    rows = extractor(pictures)
    assert rows.shape == (3, dimension), rows.shape
    np.testing.assert_allclose(extractor(pictures[1:2])[0], rows[1], atol=1e-4)
    assert np.abs(rows[0] - rows[2]).max() > 1e-4, "two pictures have one descriptor"
    if extractor.texts is not None:
        words = extractor.describe_texts(["a red boat", "night"])
        assert words.shape == (2, dimension)
        np.testing.assert_allclose(np.linalg.norm(words, axis=1), 1, atol=1e-4)
    print(f"{extractor.name}: {rows.shape[1]} dimensions, words: {extractor.texts is not None}, as expected")


def main() -> None:
    print(", ".join(f"{name} {version(name)}" for name in ("torch", "torchvision", "timm", "open_clip_torch")))
    if "--pretrained" in sys.argv:
        check(make_extractor(f"timm:{TIMM}"), 192)
        check(make_extractor(f"open_clip:{OPEN_CLIP}"), 512)
        return
    check(timm_extractor(TIMM, 512, False, None, pretrained=False), 192)
    check(open_clip_extractor(OPEN_CLIP, 512, False, None, pretrained=False), 512)


if __name__ == "__main__":
    main()
