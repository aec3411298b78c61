"""Small questions with known geometry that stand in for the data sets when an artefact is only tried out."""

from __future__ import annotations

import numpy as np

from gradnet.arrays import Floats, Ints
from gradnet.experiments.compare_question import LabelTruth, ListTruth, Question
from gradnet.formats.truth import CLASSIC, GroundTruth
from gradnet.formats.truth import REVISITED as REVISITED_LISTS
from gradnet.reproduce.sets import LABELS, REVISITED, BenchmarkSet, LabelSource

N_CLASSES, PER_CLASS, DIMENSION = 12, 11, 16


def arcs(seed: int = 0) -> tuple[Floats, Ints]:
    """Descriptors, (132, 16), and classes: each class is an arc in a plane of its own, a little blurred."""
    rng = np.random.default_rng(seed)
    angles = np.linspace(0, 2.0, PER_CLASS)
    arc = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    planes = [np.linalg.qr(rng.normal(size=(DIMENSION, 2)))[0].T for _ in range(N_CLASSES)]
    X = np.concatenate([arc @ plane for plane in planes])
    X += 0.02 * rng.normal(size=X.shape)
    return X.astype(np.float32), np.repeat(np.arange(N_CLASSES), PER_CLASS)


def toy_question(dataset: BenchmarkSet) -> Question:
    """A question of the form of the set: every item asked, or the last item of each class, which then is a query."""
    X, labels = arcs()
    name = f"toy for {dataset.name}"
    if dataset.form == LABELS:
        source = dataset.source
        window = source.window if isinstance(source, LabelSource) else None
        return Question(name, X, None, None, LabelTruth(labels, window))
    is_query = np.arange(len(X)) % PER_CLASS == PER_CLASS // 2
    items, classes = X[~is_query], labels[~is_query]
    lists = _revisited(classes) if dataset.form == REVISITED else _classic(classes)
    names = tuple(f"i{number:03}" for number in range(len(items)))
    truth = GroundTruth(lists, names, tuple(f"q{number:02}" for number in range(N_CLASSES)))
    return Question(name, items, X[is_query], None, ListTruth(truth, "official", 0))


def _classic(classes: Ints) -> dict[str, list[Ints]]:
    members = [np.flatnonzero(classes == one) for one in range(N_CLASSES)]
    return dict(zip(CLASSIC, ([one[1:] for one in members], [one[:1] for one in members]), strict=True))


def _revisited(classes: Ints) -> dict[str, list[Ints]]:
    members = [np.flatnonzero(classes == one) for one in range(N_CLASSES)]
    middle = slice(3, 7)  # next to the query
    parts = {
        "easy": [one[middle] for one in members],
        "hard": [np.delete(one, middle)[1:] for one in members],
        "junk": [one[:1] for one in members],
    }
    return {name: parts[name] for name in REVISITED_LISTS}
