"""The toy letters: run, scored and drawn."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manifind.arrays import Doubles, Floats, Ints
from manifind.baselines.query_expansion import KNN
from manifind.bench.html import INK, before_and_after, new_figure, write_figure
from manifind.datasets.synthetic import WORD, Letters, make_letters
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
    """Rankings of the four queries under both measures, how good they are, and how one came about."""

    letters: Letters
    euclidean: Ints  # (4, n)
    learned: Ints  # (4, n)
    euclidean_precision: Doubles  # (4,)
    gradnet_precision: Doubles  # (4,)
    snapshots: tuple[LettersSnapshot, ...]  # of the blue query, before, early in and after training
    shown: Ints  # positions of the points on the maps
    original_map: Floats  # (s, 2)
    learned_map: Floats  # (s, 2)


def run_letters(
    n_points: int = 1500, count: str = "word", seed: int = 0, listener: Listener = ignore, max_steps: int = 300
) -> LettersResult:
    """Fit GRAD-Net to the letters with the queries in the graph, and compare with plain distance."""
    letters = make_letters(n_points, count, seed)
    X, queries, labels, n = letters.points, letters.queries, letters.labels, len(letters.points)
    euclidean = KNN(preprocess="none").fit(X, queries=queries).search(k=n).ids
    # The same seed draws the same sextets, so a short training is the beginning of the long one.
    lengths = {"initial": 0, "intermediate": max_steps // 10, "final": max_steps}
    snapshots = []
    for state, steps in lengths.items():
        model = GradNet(**settings(count, seed) | {"max_steps": steps})
        model.fit(X, queries=queries, listener=_named(state, listener))
        learned = model.search(k=n).ids
        precision = letter_precision(learned, labels)
        snapshots.append(LettersSnapshot(steps, learned[BLUE], float(precision[BLUE])))
    shown = np.linspace(0, n - 1, min(n, _MOST_ON_MAP)).astype(np.int64)  # evenly spaced, so along the strokes
    maps = before_and_after(X[shown], model.features_[shown], seed, listener)
    of_distance = letter_precision(euclidean, labels)
    return LettersResult(letters, euclidean, learned, of_distance, precision, tuple(snapshots), shown, *maps)


def settings(count: str, seed: int) -> dict[str, Any]:
    dense = {"n_neighbors": _NEIGHBORS_PER_LETTER} if count == "letter" else {}
    return SETTINGS | dense | {"random_state": seed}


def retrieved(ids: Ints, label: int, labels: Ints) -> Ints:
    """The head of a query's ranking: as many points as its letter has. ids: (n,)."""
    return ids[: np.count_nonzero(labels == label)]


def letter_precision(ids: Ints, labels: Ints) -> Doubles:
    """(4,) share of the query's own letter in what it retrieves; row i of ids is of the query in letter i."""
    return np.array([(labels[retrieved(row, i, labels)] == i).mean() for i, row in enumerate(ids)])


def _named(state: str, listener: Listener) -> Listener:
    """A listener whose stages say which of the three trainings they belong to."""
    return lambda p: listener(Progress(f"{state} state: {p.stage}", p.done, p.total, p.note))


# Green, gold, blue and purple of clearly different lightness, so that no kind of sight confuses two.
COLOURS = ("#1b9e77", "#e8b000", "#2f86d6", "#6a2c91")
_NOBODY = "#d5d5d8"  # a point that no query retrieves
_BY_NO_QUERY = -1


def draw_letters(result: LettersResult, path: Path) -> None:
    """Write the figure as a PNG: panels a to e of the paper's."""
    figure = new_figure(11.0, 8.1)
    rows = figure.add_gridspec(
        3, 6, height_ratios=(1.75, 2.6, 1.3), left=0.02, right=0.98, top=0.945, bottom=0.02, hspace=0.2, wspace=0.12
    )
    letters, labels = result.letters, result.letters.labels
    draw_retrievals(figure.add_subplot(rows[0, :3]), letters, result.euclidean)
    draw_retrievals(figure.add_subplot(rows[0, 3:]), letters, result.learned)
    _points(figure.add_subplot(rows[1, :3]), result.original_map, labels[result.shown], 6)
    _points(figure.add_subplot(rows[1, 3:]), result.learned_map, labels[result.shown], 6)
    for i, snapshot in enumerate(result.snapshots):
        owner = np.full(len(labels), _BY_NO_QUERY)
        owner[retrieved(snapshot.ids, BLUE, labels)] = BLUE
        axes = figure.add_subplot(rows[2, 2 * i : 2 * i + 2])
        _points(axes, letters.points, owner, 3)
        _queries(axes, letters.queries, (BLUE,), 150)
    for axes, title in zip(figure.axes, titles(result), strict=True):
        axes.set_title(title, fontsize=11, color=INK, loc="center", pad=7)
    write_figure(figure, Path(path))


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
    trained = ((f"after {count(one.steps, 'step')}" if one.steps else "untrained") for one in result.snapshots)
    first, *later = (f"{how}: {one.precision:.0%} right" for how, one in zip(trained, result.snapshots, strict=True))
    return [
        f"(a) Euclidean distance: {result.euclidean_precision.mean():.0%} of what is found is right",
        f"(b) GRAD-Net: {result.gradnet_precision.mean():.0%} of what is found is right",
        "(c) t-SNE of the original coordinates",
        "(d) t-SNE of the learned features",
        f"(e) The blue query, {first}",
        *later,
    ]


def draw_retrievals(axes: Any, letters: Letters, rankings: Ints) -> None:
    """Every point in the colour of the query that retrieves it, the queries as stars. rankings: (4, n)."""
    _points(axes, letters.points, owners(rankings, letters.labels), 7)
    _queries(axes, letters.queries, range(len(WORD)), 260)


def _points(axes: Any, places: Floats, owner: Ints, size: float) -> None:
    for who, colour in ((_BY_NO_QUERY, _NOBODY), *enumerate(COLOURS)):
        axes.scatter(*places[owner == who].T, s=size, c=colour, linewidths=0)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_axis_off()


def _queries(axes: Any, queries: Floats, which: Iterable[int], size: float) -> None:
    for query in which:
        axes.scatter(*queries[query], s=size, marker="*", c=COLOURS[query], edgecolors=INK, linewidths=1.1, zorder=3)
