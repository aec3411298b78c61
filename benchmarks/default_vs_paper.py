"""Benchmark: the default settings against the paper's on labelled sets, score and time of a fit."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measuring import QUICK, Case
from warm_up import load_libraries

if TYPE_CHECKING:
    import numpy as np

    from manifind.model.estimator import GradNet

POINTS_BELOW = 0.3  # that the default may score less than the paper's settings
TIMES_FASTER = 20  # that the default must at least be


@dataclass(frozen=True)
class Set:
    """A labelled set. file: under MANIFIND_DATA, None for digits. window: of the bullseye, None for mAP."""

    title: str
    file: str | None
    name: str
    preprocess: str
    window: int | None


SETS = {
    "digits": Set("digits", None, "", "unit", None),
    "orl": Set("ORL aligned", "orl/orl_aligned_32x32.npz", "orl_aligned_32x32: images", "center", 15),
    "mpeg7": Set("MPEG-7, EfficientNet-Lite0", "mpeg7/mpeg7.npz", "mpeg7: efficientnet_lite0_gem", "center", 40),
}


def cases(quick: bool) -> list[Case]:
    """Each set that is there: the default with three seeds, the paper's settings, which take long, with one."""
    found = []
    for name in ["digits"] if quick else available():
        for kind, seeds in (("default", (0,) if quick else (0, 1, 2)), ("paper", (0,))):
            settings = QUICK if quick else {}
            found.append(Case(f"{name} {kind}", {"dataset": name, "kind": kind, "settings": settings}, seeds))
    return found


def available() -> list[str]:
    """The names of the sets whose files are there; the others are named on the screen."""
    folder = os.environ.get("MANIFIND_DATA")
    missing = {
        name: one.file
        for name, one in SETS.items()
        if one.file and not (folder and (Path(folder) / one.file).is_file())
    }
    for name, file in missing.items():
        print(f"default_vs_paper: {name} is left out, {file} is not under MANIFIND_DATA")
    return [name for name in SETS if name not in missing]


def run(dataset: str, kind: str, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Seconds of the fit, and the score with every item as a query."""
    from manifind.settings import PAPER

    return fit_and_score(dataset, (PAPER if kind == "paper" else {}) | settings, seed)[1]


def fit_and_score(dataset: str, settings: dict[str, Any], seed: int) -> tuple[GradNet, dict[str, float]]:
    """A model fitted to a set, and its seconds, score and number of steps."""
    from manifind.evaluation.protocols import bullseye, mean_average_precision
    from manifind.model.estimator import GradNet

    one = SETS[dataset]
    X, labels = _load(one)
    load_libraries()
    started = time.perf_counter()
    model = GradNet(**settings | {"preprocess": one.preprocess}, random_state=seed).fit(X)
    seconds = time.perf_counter() - started
    ids = model.search(k=len(X)).ids
    score = mean_average_precision(ids, labels) if one.window is None else bullseye(ids, labels, one.window)
    return model, {"score": float(score.value), "seconds": seconds, "steps": model.info_["steps"]}


def _load(one: Set) -> tuple[np.ndarray, np.ndarray]:
    from manifind.datasets.labelled import load_digits, read_labelled

    if one.file is None:
        digits = load_digits()
        return digits.descriptors, digits.labels
    arrays = {labelled.name: labelled for labelled in read_labelled(Path(os.environ["MANIFIND_DATA"]) / one.file)}
    return arrays[one.name].descriptors, arrays[one.name].labels
