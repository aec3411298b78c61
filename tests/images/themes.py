"""A constructed model with pictures and words in one space: pictures of a theme lie along a curve, words at its end."""

from __future__ import annotations

import numpy as np
from PIL import Image

MODEL = '''
import numpy as np

WIDTH, APART = 24, 1.0
rng = np.random.default_rng(0)
BASES = np.stack([np.linalg.qr(rng.normal(size=(WIDTH, 2)))[0].T for _ in range(8)])
PICTURES, WORDS = np.linalg.qr(rng.normal(size=(WIDTH, 2)))[0].T  # the gap between the two modalities


def along(theme, angle):
    u, v = BASES[theme]
    return np.cos(angle) * u + np.sin(angle) * v


class TwoTowers:
    """A picture of one colour: its red is the theme, its green the place on the curve, its blue some noise."""

    def __call__(self, images):
        rows = []
        for image in images:
            red, green, blue = np.asarray(image)[0, 0].tolist()
            noise = np.random.default_rng(blue).normal(size=WIDTH) * 0.4 / WIDTH**0.5
            rows.append(along(red // 30, green / 255 * ANGLE) + noise + APART * PICTURES)
        return np.array(rows)

    def texts(self, words):
        return np.array([along(int(one.split()[-1]), 0.0) + APART * WORDS for one in words])
'''


def save_model(path, angle):
    """The model as a file. angle: of the arc that pictures of a theme lie on; 0 for a heap."""
    path.write_text(f"ANGLE = {angle}\n{MODEL}")
    return f"{path}:TwoTowers"


def save_pictures(folder, n_themes=6, each=12):
    """Pictures of one colour, named by their theme."""
    folder.mkdir(parents=True, exist_ok=True)
    for theme in range(n_themes):
        for number in range(each):
            colour = (theme * 30, round(255 * number / (each - 1)), theme * each + number)
            Image.new("RGB", (32, 32), colour).save(folder / f"{theme}-{number:02}.png")
    return folder


def mean_average_precision(ranking):
    """Of words "theme 0", "theme 1", ... where items of the theme are right."""
    values = []
    for theme, ids in enumerate(ranking.ids):
        right = np.array([name.startswith(f"{theme}-") for name in ids])
        values.append((np.cumsum(right) / np.arange(1, len(ids) + 1))[right].mean())
    return float(np.mean(values))
