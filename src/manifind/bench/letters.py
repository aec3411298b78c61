"""The toy letters: run, scored and drawn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manifind.arrays import Doubles, Floats, Ints
from manifind.baselines.query_expansion import KNN
from manifind.bench.html import as_png, before_and_after, new_figure
from manifind.datasets.synthetic import WORD, Letters, make_letters
from manifind.files import write_file
from manifind.model.estimator import GradNet
from manifind.progress import Listener, Progress, ignore
from manifind.settings import PAPER
from manifind.text import count

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
class LettersSnapshot:
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
    snapshots: tuple[LettersSnapshot, ...]
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
        tuple(_snapshot(steps, ids, letters.labels) for steps, ids in zip(lengths.values(), rankings, strict=True)),
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


def _snapshot(steps: int, ids: Ints, labels: Ints) -> LettersSnapshot:
    return LettersSnapshot(steps, ids[BLUE], float(letter_precision(ids, labels)[BLUE]))


def _spread(n: int, most: int) -> Ints:
    """Evenly spaced positions, at most so many; they lie along the strokes."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def _named(state: str, listener: Listener) -> Listener:
    """A listener that hears which of the three trainings a stage belongs to."""
    return lambda p: listener(Progress(f"{state} state: {p.stage}", p.done, p.total, p.note))


# Green, gold, blue and purple of clearly different lightness, so that no kind of sight confuses two.
COLOURS = ("#1b9e77", "#e8b000", "#2f86d6", "#6a2c91")
_NOBODY = "#d5d5d8"  # a point that no query retrieves
_INK = "#1f2328"
_DOTS_PER_INCH = 150
_BY_NO_QUERY = -1


def draw_letters(result: LettersResult, path: Path) -> None:
    """Write the figure as a PNG: panels a to e of the paper's."""
    figure = new_figure(11.0, 8.1)
    rows = figure.add_gridspec(
        3, 6, height_ratios=(1.75, 2.6, 1.3), left=0.02, right=0.98, top=0.945, bottom=0.02, hspace=0.2, wspace=0.12
    )
    draw_retrievals(figure.add_subplot(rows[0, :3]), result.letters, result.euclidean)
    draw_retrievals(figure.add_subplot(rows[0, 3:]), result.letters, result.learned)
    _map(figure.add_subplot(rows[1, :3]), result, result.original_map)
    _map(figure.add_subplot(rows[1, 3:]), result, result.learned_map)
    for i, snapshot in enumerate(result.snapshots):
        _blue_query(figure.add_subplot(rows[2, 2 * i : 2 * i + 2]), result, snapshot)
    for axes, title in zip(figure.axes, titles(result), strict=True):
        axes.set_title(title, fontsize=11, color=_INK, loc="center", pad=7)
    write_file(Path(path), as_png(figure, _DOTS_PER_INCH))


def owners(rankings: Ints, labels: Ints) -> Ints:
    """(n,) the query that retrieves each point, the one that ranks it best of several, or -1 for none."""
    best = np.full(len(labels), len(labels))
    owner = np.full(len(labels), _BY_NO_QUERY)
    for query, ids in enumerate(rankings):
        mine = retrieved(ids, query, labels)
        rank = np.arange(len(mine))
        better = rank < best[mine]
        owner[mine[better]] = query
        best[mine[better]] = rank[better]
    return owner


def titles(result: LettersResult) -> list[str]:
    """What stands above each panel; the shares are means over the four queries, in (e) the blue one's."""

    def percent(share: float) -> str:
        return f"{100 * share:.0f}%"

    first, *later = (
        f"after {count(s.steps, 'step')}: {percent(s.precision)} right"
        if s.steps
        else f"untrained: {percent(s.precision)} right"
        for s in result.snapshots
    )
    return [
        f"(a) Euclidean distance: {percent(result.euclidean_precision.mean())} of what is found is right",
        f"(b) GRAD-Net: {percent(result.gradnet_precision.mean())} of what is found is right",
        "(c) t-SNE of the original coordinates",
        "(d) t-SNE of the learned features",
        f"(e) The blue query, {first}",
        *later,
    ]


def draw_retrievals(axes: Any, letters: Letters, rankings: Ints) -> None:
    """Every point in the colour of the query that retrieves it, the queries as stars. rankings: (4, n)."""
    owner = owners(rankings, letters.labels)
    _points(axes, letters.points, owner, size=7)
    _queries(axes, letters.queries, range(len(WORD)), size=260)
    _bare(axes)


def _blue_query(axes: Any, result: LettersResult, snapshot: LettersSnapshot) -> None:
    labels = result.letters.labels
    owner = np.full(len(labels), _BY_NO_QUERY)
    owner[retrieved(snapshot.ids, BLUE, labels)] = BLUE
    _points(axes, result.letters.points, owner, size=3)
    _queries(axes, result.letters.queries, (BLUE,), size=150)
    _bare(axes)


def _map(axes: Any, result: LettersResult, places: Floats) -> None:
    labels = result.letters.labels[result.shown]
    _points(axes, places, labels, size=6)
    _bare(axes)


def _points(axes: Any, places: Floats, owner: Ints, size: float) -> None:
    for who, colour in ((_BY_NO_QUERY, _NOBODY), *enumerate(COLOURS)):
        x, y = places[owner == who].T
        axes.scatter(x, y, s=size, c=colour, linewidths=0)


def _queries(axes: Any, queries: Floats, which: Any, size: float) -> None:
    for query in which:
        x, y = queries[query]
        axes.scatter(x, y, s=size, marker="*", c=COLOURS[query], edgecolors=_INK, linewidths=1.1, zorder=3)


def _bare(axes: Any) -> None:
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_axis_off()
