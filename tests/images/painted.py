"""Small pictures, each different from the others."""

from __future__ import annotations

import numpy as np
from PIL import Image

NOTHING = dict.fromkeys(("added", "removed", "changed", "moved", "described", "kept", "unchanged"), 0)
"""What is counted when a folder is indexed."""


def paint(path, seed):
    """A picture of 64 x 48 at a path, whose colours follow from the seed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, size=(6, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((64, 48)).save(path)


def paint_many(folder):
    """Twenty of them in two folders."""
    for number in range(20):
        paint(folder / ("north" if number % 2 else "south") / f"{number:02}.png", number)
    return folder
