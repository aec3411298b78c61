"""The toy example: does a query in one letter find that letter, and not what lies nearby?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradnet.arrays import Doubles, Floats, Ints
from gradnet.config import PAPER
from gradnet.data.letters import WORD, Letters, make_letters
from gradnet.experiments.maps import before_and_after
from gradnet.methods.gradnet import GradNet
from gradnet.methods.knn import KNN
from gradnet.progress import Listener, Progress, ignore

# The paper's graph, inputs and losses: the figure is about what its network learns from them.
_OF_THE_PAPER = ("graph", "similarity", "inputs", "positives", "walk_weight", "global_weight", "guard")
SETTINGS: dict[str, Any] = {
    **{name: PAPER[name] for name in _OF_THE_PAPER},
    "preprocess": "none",  # on unit rows only the direction of a point would be left of it
    "n_neighbors": 20,  # with 10 a letter falls into pieces, with 30 two letters are joined
    "temperature": 3.0,  # the pull on a pair fades less once it is in order; at 1, M is found to about 60%
    "dropout": 0.0,  # a chain along a stroke has no second way round a broken link; at 0.3, M to about 50%
    "learning_rate": 1e-3,
    "milestones": (),  # a constant rate, so that a short training is the beginning of a long one
    "max_steps": 300,
}
_NEIGHBORS_PER_LETTER = 80  # 1,500 points in each letter lie four times as dense; the same reach

BLUE = WORD.index("M")
_MOST_ON_MAP = 1500


@dataclass(frozen=True)
class Snapshot:
    """What the blue query finds after some steps of training. ids: (n,) its ranking."""

    steps: int
    ids: Ints
    precision: float


@dataclass(frozen=True)
class LettersResult:
    """Rankings of the four queries under both measures, how good they are, and how one came about.

    euclidean, learned: (4, n). The precisions: (4,). snapshots: of the blue query, before, early in
    and after training. shown: positions of the points on the maps, which are (s, 2).
    """

    letters: Letters
    euclidean: Ints
    learned: Ints
    euclidean_precision: Doubles
    gradnet_precision: Doubles
    snapshots: tuple[Snapshot, ...]
    shown: Ints
    original_map: Floats
    learned_map: Floats


def run_letters(
    n_points: int = 1500,
    count: str = "word",
    seed: int = 0,
    listener: Listener = ignore,
    max_steps: int = SETTINGS["max_steps"],
) -> LettersResult:
    """Fit GRAD-Net to the letters with the queries in the graph, and compare with plain distance."""
    letters = make_letters(n_points, count, seed)
    n = len(letters.points)
    euclidean = KNN(preprocess="none").fit(letters.points, queries=letters.queries).search(k=n).ids
    # The same seed draws the same sextets, so a short training is the beginning of the long one.
    lengths = {"initial": 0, "intermediate": max_steps // 10, "final": max_steps}
    fitted = [
        _fit(letters, settings(count, seed) | {"max_steps": steps}, _named(state, listener))
        for state, steps in lengths.items()
    ]
    rankings = [model.search(k=n).ids for model in fitted]
    shown = _spread(n, _MOST_ON_MAP)
    return LettersResult(
        letters,
        euclidean,
        rankings[-1],
        letter_precision(euclidean, letters.labels),
        letter_precision(rankings[-1], letters.labels),
        tuple(
            _snapshot(steps, ids, letters.labels)
            for steps, ids in zip(lengths.values(), rankings, strict=True)
        ),
        shown,
        *before_and_after(letters.points[shown], fitted[-1].features_[shown], seed, listener),
    )


def settings(count: str, seed: int) -> dict[str, Any]:
    """The settings of GRAD-Net for letters counted this way."""
    dense = {"n_neighbors": _NEIGHBORS_PER_LETTER} if count == "letter" else {}
    return SETTINGS | dense | {"random_state": seed}


def retrieved(ids: Ints, label: int, labels: Ints) -> Ints:
    """The head of a query's ranking: as many points as its letter has. ids: (n,)."""
    return ids[: np.count_nonzero(labels == label)]


def letter_precision(ids: Ints, labels: Ints) -> Doubles:
    """(4,) share of the query's own letter in what it retrieves; row i of ids is of the query in letter i."""
    return np.array([(labels[retrieved(row, i, labels)] == i).mean() for i, row in enumerate(ids)])


def _fit(letters: Letters, parameters: dict[str, Any], listener: Listener) -> GradNet:
    return GradNet(**parameters).fit(letters.points, queries=letters.queries, listener=listener)


def _snapshot(steps: int, ids: Ints, labels: Ints) -> Snapshot:
    return Snapshot(steps, ids[BLUE], float(letter_precision(ids, labels)[BLUE]))


def _spread(n: int, most: int) -> Ints:
    """Evenly spaced positions, at most so many; they lie along the strokes."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def _named(state: str, listener: Listener) -> Listener:
    """A listener that hears which of the three trainings a stage belongs to."""
    return lambda p: listener(Progress(f"{state} state: {p.stage}", p.done, p.total, p.note))
