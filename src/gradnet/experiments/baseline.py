"""What plain k-NN scores on a data set: the figure that shows whether data and protocol are the right ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gradnet.data.labels import Labelled
from gradnet.data.landmarks import Landmarks
from gradnet.evaluation import Score, bullseye, evaluate_labels, evaluate_lists
from gradnet.evaluation.judgements import landmark_queries
from gradnet.formats.truth import CLASSIC
from gradnet.methods.knn import KNN

MOST_QUERIES = 2000
"""With labels every item is a query; of larger sets a random part of this size is asked."""


_WORDS = {"none": "raw", "unit": "unit rows", "center": "centred"}


class Baseline(NamedTuple):
    """preprocess: what was done to the descriptors. scores: by the protocols of the set."""

    preprocess: str
    scores: list[Score]


def label_baselines(data: Labelled, window: int | None = None) -> Iterator[Baseline]:
    """k-NN on raw, unit and centred descriptors: mAP, and the bullseye score under its three rules.

    Nothing where no two items share a label.
    """
    n = len(data.labels)
    if np.bincount(data.labels).max() < 2:
        return
    asked = np.arange(n)
    if n > MOST_QUERIES:
        asked = np.sort(np.random.default_rng(0).choice(n, MOST_QUERIES, replace=False))
    for preprocess in _WORDS:
        model = KNN(preprocess=preprocess).fit(data.descriptors)
        ids = model.search(data.descriptors[asked], k=n).ids
        scores = evaluate_labels(ids, data.labels, asked=asked, cutoffs=())
        if window is not None:
            scores += [
                bullseye(ids, data.labels, window, rule, asked=asked)
                for rule in ("counted", "left-out", "left-out-others")
            ]
        yield Baseline(_WORDS[preprocess], scores)


def landmark_baselines(data: Landmarks) -> Iterator[Baseline]:
    """k-NN by cosine: the official protocol where official queries are there, then the landmark protocol."""
    model = KNN().fit(data.descriptors)
    k = len(data.descriptors)
    if len(data.queries):
        ids = model.search(data.queries, k=k).ids
        yield Baseline(
            _WORDS["unit"], evaluate_lists(ids, data.truth, cutoffs=(10,), distractors=data.distractors)
        )
    if set(data.every_list.lists) == set(CLASSIC):
        queries = landmark_queries(data.every_list)
        ids = model.search(data.descriptors[queries], k=k).ids
        yield Baseline(
            _WORDS["unit"],
            evaluate_lists(
                ids, data.every_list, protocol="landmarks", cutoffs=(10,), distractors=data.distractors
            ),
        )
