"""Figures 5 and 7: pictures that a query retrieves, framed by whether they are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradnet.arrays import Ints
from gradnet.errors import InputError
from gradnet.experiments.canvas import new_figure
from gradnet.experiments.compare_question import LabelTruth, Question
from gradnet.methods.gradnet_paper import GradNetPaper
from gradnet.methods.knn import KNN
from gradnet.progress import Progress
from gradnet.reproduce.drawing import INK, RIGHT, WRONG, Brief
from gradnet.reproduce.held_out import asking_twice
from gradnet.reproduce.opened import open_network
from gradnet.reproduce.sets import find_set

TOP = 5
EPOCHS = (0, 1, 20, 60)
_USUAL = "digits"
_HEIGHTS = {"digits": 8, "MPEG-7 masks": 32, "COIL-20": 32, "ORL": 112, "ORL aligned": 32}
"""Sets whose descriptors are the pixels of their pictures, and how high these are."""
_SHORT_EPOCHS = (0, 1, 2)


class Row(NamedTuple):
    """What a query finds at some point. name: of that point. ids: (TOP,)."""

    name: str
    ids: Ints


def while_learning(brief: Brief) -> Any:
    """Figure 5: the top five of the query that gains most, after some epochs of training with the paper's settings."""
    question, labels = _pictures(brief)
    epochs = _SHORT_EPOCHS if brief.smoke else EPOCHS
    settings = GradNetPaper(random_state=brief.seed, n_anchors=20 if brief.smoke else 100).get_params()
    opened = open_network(question, settings, brief.listener)
    found = {0: opened.rankings(TOP + 1)}
    per_epoch, last = opened.trainer.steps_per_epoch, epochs[-1]
    for report in opened.trainer.steps(at_once=opened.trainer.steps_per_epoch):
        brief.listener(Progress("training", report.step, last * per_epoch))
        if report.step % per_epoch == 0 and report.epoch in epochs:
            found[report.epoch] = opened.rankings(TOP + 1)
        if report.step == last * per_epoch:
            break
    others = {epoch: _without_self(ids) for epoch, ids in found.items()}
    query = _gains_most(others[0], others[last], labels, np.arange(len(labels)))
    rows = [Row(f"epoch {epoch}", ids[query]) for epoch, ids in others.items()]
    return _draw(question, labels, query, rows, _height(brief))


def unseen_query(brief: Brief) -> Any:
    """Figure 7: an unseen query in the original space, by QFE, and by QFE twice."""
    question, labels = _pictures(brief)
    X = question.descriptors
    out = np.random.default_rng(brief.seed).permutation(len(X))[: len(X) // 5]
    kept = np.setdiff1d(np.arange(len(X)), out)
    short = {"epochs": 2, "n_anchors": 20} if brief.smoke else {}
    model = GradNetPaper(random_state=brief.seed, **short).fit(X[kept], listener=brief.listener)
    found = {
        "original": KNN().fit(X[kept]).search(X[out], k=TOP).ids,
        "QFE": model.search(X[out], k=TOP).ids,
        "QFE x 2": asking_twice(model).search(X[out], TOP).ids,
    }
    named = {name: kept[ids] for name, ids in found.items()}
    place = _gains_most(named["original"], named["QFE x 2"], labels, out)
    rows = [Row(name, ids[place]) for name, ids in named.items()]
    return _draw(question, labels, int(out[place]), rows, _height(brief))


def _pictures(brief: Brief) -> tuple[Question, Ints]:
    name = find_set(brief.on or _USUAL).name
    if name not in _HEIGHTS:
        raise InputError(
            f"on = {name!r}; expected a set whose descriptors are pixels: {', '.join(map(repr, _HEIGHTS))}",
            "choose one of these with --on",
        )
    question = brief.question(_USUAL)
    assert isinstance(question.truth, LabelTruth)  # noqa: S101  all of _HEIGHTS have labels
    return question, question.truth.labels


def _height(brief: Brief) -> int:
    return 4 if brief.smoke else _HEIGHTS[find_set(brief.on or _USUAL).name]


def _without_self(ids: Ints) -> Ints:
    """(n, TOP) what items find besides themselves."""
    return np.array([row[row != item][:TOP] for item, row in enumerate(ids)])


def _gains_most(before: Ints, after: Ints, labels: Ints, queries: Ints) -> int:
    """The row whose first five become right more than any other's; of several the first."""
    own = labels[queries][:, None]
    return int(np.argmax((labels[after] == own).sum(axis=1) - (labels[before] == own).sum(axis=1)))


def _draw(question: Question, labels: Ints, query: int, rows: list[Row], height: int) -> Any:
    X = question.descriptors
    figure = new_figure(1.3 * (TOP + 1) + 0.6, 1.3 * len(rows) + 0.3)
    grid = figure.add_gridspec(len(rows), TOP + 1, left=0.01, right=0.99, top=0.9, bottom=0.02, wspace=0.12)
    _picture(figure.add_subplot(grid[0, 0]), X[query], height, INK, "query")
    for place, row in enumerate(rows):
        for rank, item in enumerate(row.ids):
            colour = RIGHT if labels[item] == labels[query] else WRONG
            _picture(
                figure.add_subplot(grid[place, rank + 1]), X[item], height, colour, "" if rank else row.name
            )
    return figure


def _picture(axes: Any, pixels: NDArray[Any], height: int, colour: str, title: str) -> None:
    axes.imshow(pixels.reshape(height, -1), cmap="gray", interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, fontsize=8, color=INK, loc="left", pad=3)
    frame: Mapping[str, Any] = axes.spines
    for side in frame.values():
        side.set_edgecolor(colour)
        side.set_linewidth(2.5)
