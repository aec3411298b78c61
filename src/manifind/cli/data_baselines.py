"""What a data set holds and what plain k-NN scores on it, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from manifind.bench.sources import Baseline, label_baselines, landmark_baselines
from manifind.cli.scores import scores_as_dicts
from manifind.cli.terminal import say, show_table
from manifind.datasets.labelled import Labelled
from manifind.datasets.landmarks import LandmarkFiles, Landmarks


class SetContents(NamedTuple):
    """One reading of a set: its facts, and the scores of k-NN."""

    name: str
    facts: dict[str, Any]
    baselines: list[Baseline]

    def as_dict(self) -> dict[str, Any]:
        """Everything, for programs; per-query values by row number."""
        scores = [
            {"preprocess": one.preprocess, **row}
            for one in self.baselines
            for row in scores_as_dicts(one.scores, [str(i) for i in range(len(one.scores[0].per_query))])
        ]
        return {"name": self.name, **self.facts, "knn": scores}

    def show(self) -> None:
        """A line of facts, a table of scores, and the rules they were counted by."""
        say(f"{self.name}: " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.facts.items()))
        if not self.baselines:
            say("no two items share a label, so there is nothing to find")
            return
        scores = [(one.preprocess, score) for one in self.baselines for score in one.scores]
        rules = list(dict.fromkeys(score.rule for _, score in scores))
        rows = [
            (preprocess, score.measure, f"{score.value:.2f}", str(score.n_queries), str(rules.index(score.rule) + 1))
            for preprocess, score in scores
        ]
        columns = ("descriptors", "measure", "score", "queries", "rule")
        show_table(f"plain k-NN on {self.name}", columns, rows, numeric=("score", "queries"))
        for number, rule in enumerate(rules, 1):
            say(f"rule {number}: {rule}")


def labelled(sets: Iterable[Labelled], window: int | None) -> list[SetContents]:
    """Labelled sets with the scores of k-NN on raw, unit and centred descriptors."""
    return [SetContents(one.name, _label_facts(one), list(label_baselines(one, window))) for one in sets]


def landmarks(sets: Iterable[tuple[LandmarkFiles, Landmarks]]) -> list[SetContents]:
    """Landmark sets with the scores of k-NN by cosine."""
    return [
        SetContents(f"{files.vectors.name} with {files.truth.name}", _list_facts(data), list(landmark_baselines(data)))
        for files, data in sets
    ]


def _label_facts(data: Labelled) -> dict[str, Any]:
    sizes = np.bincount(data.labels)
    return {
        "items": len(data.labels),
        "dimension": data.descriptors.shape[1],
        "type": str(data.descriptors.dtype),
        "classes": len(data.classes),
        "smallest_class": int(sizes.min()),
        "largest_class": int(sizes.max()),
    }


def _list_facts(data: Landmarks) -> dict[str, Any]:
    return {
        "items": len(data.descriptors),
        "dimension": data.descriptors.shape[1],
        "queries": len(data.queries),
        "distractors": data.distractors,
        "images_of_the_lists_missing": data.missing[0],
        "queries_of_the_lists_missing": data.missing[1],
    }
