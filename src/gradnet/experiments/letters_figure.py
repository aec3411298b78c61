"""The toy figure: what each query retrieves, maps before and after learning, and how learning went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gradnet.arrays import Floats, Ints
from gradnet.data.letters import WORD, Letters
from gradnet.experiments.canvas import as_png, new_figure
from gradnet.experiments.letters import BLUE, LettersResult, Snapshot, retrieved
from gradnet.whole_files import put_in_place
from gradnet.wording import count

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
        3,
        6,
        height_ratios=(1.75, 2.6, 1.3),
        left=0.02,
        right=0.98,
        top=0.945,
        bottom=0.02,
        hspace=0.2,
        wspace=0.12,
    )
    draw_retrievals(figure.add_subplot(rows[0, :3]), result.letters, result.euclidean)
    draw_retrievals(figure.add_subplot(rows[0, 3:]), result.letters, result.learned)
    _map(figure.add_subplot(rows[1, :3]), result, result.original_map)
    _map(figure.add_subplot(rows[1, 3:]), result, result.learned_map)
    for i, snapshot in enumerate(result.snapshots):
        _blue_query(figure.add_subplot(rows[2, 2 * i : 2 * i + 2]), result, snapshot)
    for axes, title in zip(figure.axes, titles(result), strict=True):
        axes.set_title(title, fontsize=11, color=_INK, loc="center", pad=7)
    put_in_place(Path(path), as_png(figure, _DOTS_PER_INCH))


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


def _blue_query(axes: Any, result: LettersResult, snapshot: Snapshot) -> None:
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
