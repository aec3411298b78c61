"""The demonstration: handwritten digits searched by three methods, with everything its report shows."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from gradnet.arrays import Floats, Ints
from gradnet.config import deciding
from gradnet.data.digits import Digits, load_digits
from gradnet.descriptors.preprocess import unit_rows
from gradnet.evaluation.labels import mean_average_precision
from gradnet.experiments.maps import before_and_after
from gradnet.methods.aqe import AQE
from gradnet.methods.gradnet import GradNet
from gradnet.methods.knn import KNN
from gradnet.progress import Listener, ignore, in_one_piece

N_EXAMPLES = 8
N_KEPT = 100  # results kept of an example; every digit has at least 174 scans, so all could be right


class MethodScore(NamedTuple):
    """mean_average_precision: in percent. seconds: of fitting and of the full search of every item."""

    method: str
    mean_average_precision: float
    seconds: float


@dataclass(frozen=True)
class Example:
    """One query and its best results, itself left out. nearest, learned: (100,) by k-NN and by GRAD-Net."""

    query: int
    nearest: Ints
    learned: Ints


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found.

    loss_curve: (steps, 3) total, local, global. descriptor_map, feature_map: (n, 2), every item.
    settings: of GRAD-Net. versions: of what it ran with.
    """

    digits: Digits
    scores: tuple[MethodScore, ...]
    examples: tuple[Example, ...]
    loss_curve: Floats
    descriptor_map: Floats
    feature_map: Floats
    settings: dict[str, Any]
    versions: dict[str, str]
    seed: int


def run_demo(seed: int = 0, listener: Listener = ignore) -> DemoResult:
    """Search the digits by k-NN, by average query expansion and by GRAD-Net; every item is a query."""
    digits = load_digits()
    model = GradNet(preprocess="unit", random_state=seed)
    nearest, nearest_score = _plain("k-NN", KNN(preprocess="unit"), digits, listener)
    _, expansion_score = _plain("average query expansion", AQE(preprocess="unit"), digits, listener)
    learned, learned_score = _timed(
        "GRAD-Net",
        lambda: model.fit(digits.descriptors, listener=listener).search(k=len(digits.labels)).ids,
        digits,
    )
    return DemoResult(
        digits,
        (nearest_score, expansion_score, learned_score),
        tuple(_example(i, nearest, learned) for i in example_queries(len(digits.labels))),
        model.loss_curve_,
        *before_and_after(unit_rows(digits.descriptors), model.features_, seed, listener),
        deciding(model.get_params()),
        _versions(),
        seed,
    )


def example_queries(n_items: int) -> list[int]:
    """Eight positions, evenly spaced: a rule that cannot know which method wins on them."""
    return [n_items * i // N_EXAMPLES for i in range(N_EXAMPLES)]


def others(ids: Ints, query: int) -> Ints:
    """A query's ranking without itself, wherever it stands."""
    return np.asarray(ids[ids != query])


def _example(query: int, nearest: Ints, learned: Ints) -> Example:
    return Example(query, others(nearest[query], query)[:N_KEPT], others(learned[query], query)[:N_KEPT])


def _plain(name: str, method: Any, digits: Digits, listener: Listener) -> tuple[Ints, MethodScore]:
    with in_one_piece(name, listener):
        return _timed(name, lambda: method.fit(digits.descriptors).search(k=len(digits.labels)).ids, digits)


def _timed(name: str, rank_all: Callable[[], Ints], digits: Digits) -> tuple[Ints, MethodScore]:
    """Full rankings, (n, n), and their score; only the ranking is timed. The digits are few enough."""
    started = time.perf_counter()
    ids = rank_all()
    seconds = time.perf_counter() - started
    return ids, MethodScore(name, mean_average_precision(ids, digits.labels).value, seconds)


def _versions() -> dict[str, str]:
    packages = ("gradnet", "torch", "faiss-cpu", "scikit-learn", "numpy")
    return {"Python": platform.python_version()} | {name: version(name) for name in packages}
