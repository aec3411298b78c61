"""Figure 6: t-SNE of the descriptors and of what GRAD-Net learns from them, coloured by what belongs together."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradnet.arrays import Floats, Ints
from gradnet.experiments.canvas import new_figure
from gradnet.experiments.compare_question import LabelTruth, Question
from gradnet.experiments.maps import before_and_after
from gradnet.methods.gradnet_paper import GradNetPaper
from gradnet.reproduce.drawing import FAINT, INK, Brief

_USUAL = "digits"
_OF_NO_QUERY = -1


def feature_maps(brief: Brief) -> Any:
    """Figure 6: two maps of the same items; grey are those that no query looks for."""
    question = brief.question(_USUAL)
    short = {"epochs": 2, "n_anchors": 20} if brief.smoke else {}
    model = GradNetPaper(random_state=brief.seed, **short)
    model.fit(question.descriptors, queries=question.queries, listener=brief.listener)
    maps = before_and_after(question.descriptors, model.features_, brief.seed, brief.listener)
    groups = categories(question)
    figure = new_figure(11.0, 5.4)
    for place, (name, places) in enumerate(
        zip(("descriptors", "learned features"), maps, strict=True), start=1
    ):
        axes = figure.add_subplot(1, 2, place)
        _scatter(axes, places, groups)
        axes.set_title(f"({'ab'[place - 1]}) t-SNE of the {name}", fontsize=11, color=INK)
    return figure


def categories(question: Question) -> Ints:
    """(n,) the class of each item, or the first of the queries whose right images it is among; -1 for none."""
    if isinstance(question.truth, LabelTruth):
        return question.truth.labels
    groups = np.full(len(question.descriptors), _OF_NO_QUERY)
    names: dict[frozenset[int], int] = {}
    lists = {name: of_query for name, of_query in question.truth.lists.lists.items() if name != "junk"}
    for of_query in zip(*lists.values(), strict=True):
        right = np.concatenate(of_query)
        number = names.setdefault(frozenset(right.tolist()), len(names))
        groups[right[groups[right] == _OF_NO_QUERY]] = number
    return groups


def _scatter(axes: Any, places: Floats, groups: Ints) -> None:
    grey = groups == _OF_NO_QUERY
    axes.scatter(*places[grey].T, s=3, c=FAINT, linewidths=0)
    axes.scatter(*places[~grey].T, s=6, c=groups[~grey], cmap="tab20", linewidths=0)
    axes.set_axis_off()
