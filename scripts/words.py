"""Measures searches by words in a constructed model, into docs/results/words.json; renders a table and a figure.

No text tower is at hand, so this measures what can be known by construction: pictures of a theme lie along an arc, the
words for it near a place on the arc, with noise, and both modalities are apart by constant offsets, as CLIP's are. It
compares ways to bridge that gap. `--render` renders what is known; without it everything is run: a minute.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np

import manifind
from manifind.arrays import Floats, Ints
from manifind.bench.html import markdown_table, put_between
from manifind.bench.results import versions
from manifind.graph.preprocess import unit_rows
from manifind.search.feature_model import weighted_features

ROOT = Path(__file__).resolve().parent.parent
RESULTS, FIGURE = ROOT / "docs" / "results" / "words.json", ROOT / "docs" / "images" / "words.png"
PAGE = ROOT / "docs" / "pictures.md"
N_THEMES, EACH, WIDTH = 24, 40, 96
PICTURE_NOISE, WORD_NOISE, APART = 0.7, 2.5, 1.0  # lengths, beside points of length 1
ARCS = (0, 45, 90, 135, 180)  # degrees
SEEDS = range(5)
TEMPERATURE = 100.0  # CLIP's


class TwoTowers(NamedTuple):
    """pictures: (n, d) unit rows. themes: (n,) of the pictures. words: (N_THEMES, d) unit rows, one for each theme."""

    pictures: Floats
    themes: Ints
    words: Floats


def make(arc: float, seed: int) -> TwoTowers:
    """arc: in degrees; 0 for themes that are heaps."""
    rng = np.random.default_rng(seed)
    pictures, words = [], []
    for _ in range(N_THEMES):
        u, v = np.linalg.qr(rng.normal(size=(WIDTH, 2)))[0].T
        places = np.radians(arc) * rng.uniform(0, 1, EACH + 1)[:, None]
        points = np.cos(places) * u + np.sin(places) * v
        noise = rng.normal(size=points.shape) / WIDTH**0.5
        pictures.append(points[1:] + PICTURE_NOISE * noise[1:])
        words.append(points[0] + WORD_NOISE * noise[0])
    of_pictures, of_words = APART * np.linalg.qr(rng.normal(size=(WIDTH, 2)))[0].T
    themes = np.repeat(np.arange(N_THEMES), EACH)
    return TwoTowers(unit_rows(np.concatenate(pictures) + of_pictures), themes, unit_rows(np.array(words) + of_words))


class Fitted:
    """The default, fitted on the pictures of a model, and ways to search it by words: (N_THEMES, n) scores."""

    def __init__(self, towers: TwoTowers) -> None:
        self._towers, self._model = towers, manifind.GradNet(random_state=0).fit(towers.pictures)

    def plain(self) -> Floats:
        return self._towers.words @ self._towers.pictures.T

    def through_neighbours(self) -> Floats:
        learned = self._model.contents().learned
        found = learned.features_of(learned.prepared(self._towers.words), apart=True)
        return np.asarray(found.features @ self._model.features_.T)

    def weighted_alike(self) -> Floats:
        return self._neighbours(self._towers.words, self._towers.pictures, 0.0)

    def by_temperature(self) -> Floats:
        return self._neighbours(self._towers.words, self._towers.pictures, TEMPERATURE)

    def mean_of_pictures_removed(self) -> Floats:
        mean = self._towers.pictures.mean(axis=0)
        words, pictures = unit_rows(self._towers.words - mean), unit_rows(self._towers.pictures - mean)
        return self._neighbours(words, pictures, 0.0)

    def own_means_removed(self) -> Floats:
        words, pictures = (unit_rows(rows - rows.mean(axis=0)) for rows in (self._towers.words, self._towers.pictures))
        return self._neighbours(words, pictures, 0.0)

    def _neighbours(self, words: Floats, pictures: Floats, temperature: float) -> Floats:
        """By the features of the nearest pictures, weighed by exp(temperature * cosine)."""
        cosines, k = words @ pictures.T, self._model.n_query_neighbors
        ids = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        near = np.take_along_axis(cosines, ids, axis=1)
        weights = np.exp(temperature * (near - near.max(axis=1, keepdims=True))).astype(np.float32)
        return np.asarray(weighted_features(self._model.features_, ids, weights) @ self._model.features_.T)


WAYS: dict[str, Callable[[Fitted], Floats]] = {
    "plain cosine": Fitted.plain,
    "**through neighbours**": Fitted.through_neighbours,
    "neighbours weighed alike": Fitted.weighted_alike,
    "neighbours weighed by CLIP's temperature": Fitted.by_temperature,
    "the pictures' mean removed from the words, too": Fitted.mean_of_pictures_removed,
    "each side's own mean removed": Fitted.own_means_removed,
}


def mean_average_precision(scores: Floats, themes: Ints) -> float:
    """In per cent."""
    right = themes[np.argsort(-scores, axis=1, kind="stable")] == np.arange(len(scores))[:, None]
    precision = np.cumsum(right, axis=1) / np.arange(1, right.shape[1] + 1)
    return float(100 * (precision * right).sum(axis=1).mean() / EACH)


def run() -> Iterator[tuple[int, int, dict[str, float]]]:
    """Arc, seed, and the score of every way."""
    for arc in ARCS:
        for seed in SEEDS:
            towers = make(arc, seed)
            fitted = Fitted(towers)
            yield (
                arc,
                seed,
                {way: mean_average_precision(scores(fitted), towers.themes) for way, scores in WAYS.items()},
            )


def words_table(found: list[tuple[int, int, dict[str, float]]]) -> str:
    """A row a way, a column an arc: mean and standard deviation over the seeds."""
    rows = []
    for way in WAYS:
        values = [[scores[way] for at, _, scores in found if at == arc] for arc in ARCS]
        rows.append([way, *(f"{np.mean(each):.1f} ± {np.std(each, ddof=1):.1f}" for each in values)])
    return markdown_table(["mAP", *(f"{arc}°" for arc in ARCS)], rows)


def draw(found: list[tuple[int, int, dict[str, float]]]) -> None:
    """Plain cosine and the learned features, by the arc."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    for way, colour in zip([*WAYS][:2], ("#8a6d3b", "#1f5fae"), strict=True):
        values = np.array([[scores[way] for at, _, scores in found if at == arc] for arc in ARCS])
        axes.plot(ARCS, values.mean(axis=1), color=colour, marker="o", label=way.strip("*"))
        axes.fill_between(ARCS, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel="arc along which the pictures of a theme lie (degrees)", ylabel="mAP by words", ylim=(0, 101))
    axes.set_xticks(ARCS)
    axes.legend(frameon=False, loc="lower left")
    figure.savefig(FIGURE, dpi=150, metadata={"Software": None})


def rendered_pages() -> dict[Path, str]:
    """The page, with its table as it should be; ValueError where it has no marks for one."""
    found = json.loads(RESULTS.read_text())["scores"]
    return {PAGE: put_between(PAGE.read_text(), "words", words_table(found))}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--render", action="store_true", help="render what is known, run nothing")
    if not parser.parse_args().render:
        found = list(run())
        RESULTS.write_text(json.dumps({"versions": versions(), "scores": found}, indent=1) + "\n")
        draw(found)
    for page, text in rendered_pages().items():
        page.write_text(text)


if __name__ == "__main__":
    main()
