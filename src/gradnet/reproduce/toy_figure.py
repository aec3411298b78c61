"""Figure 1: four letters of 1,500 points each, retrieved by plain distance and by a diffusion."""

from __future__ import annotations

from typing import Any

from gradnet.data.letters import make_letters
from gradnet.experiments.canvas import new_figure
from gradnet.experiments.letters import letter_precision, settings
from gradnet.experiments.letters_figure import draw_retrievals
from gradnet.methods.knn import KNN
from gradnet.methods.mr import ManifoldRanking
from gradnet.progress import Progress
from gradnet.reproduce.drawing import INK, Brief

_POINTS, _FEW_POINTS = 1500, 200


def toy(brief: Brief) -> Any:
    """Figure 1: each point in the colour of the query that retrieves it."""
    brief.refuse_set("figure1")
    letters = make_letters(_FEW_POINTS if brief.smoke else _POINTS, "letter", brief.seed)
    n = len(letters.points)
    k = 10 if brief.smoke else settings("letter", brief.seed)["n_neighbors"]
    methods: dict[str, KNN | ManifoldRanking] = {
        "(a) Euclidean distance": KNN(preprocess="none"),
        "(b) diffusion": ManifoldRanking(
            preprocess="none", n_neighbors=k, graph="mutual", similarity="euclidean"
        ),
    }
    figure = new_figure(11.0, 3.0)
    for place, (name, method) in enumerate(methods.items(), start=1):
        brief.listener(Progress("letters", place - 1, len(methods)))
        ids = method.fit(letters.points, queries=letters.queries).search(k=n).ids
        axes = figure.add_subplot(1, len(methods), place)
        draw_retrievals(axes, letters, ids)
        right = 100 * letter_precision(ids, letters.labels).mean()
        axes.set_title(f"{name}: {right:.0f}% of what is found is right", fontsize=11, color=INK)
    brief.listener(Progress("letters", len(methods), len(methods)))
    return figure
