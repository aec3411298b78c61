"""Figures 2 and 3 as drawn diagrams: the way of the data through GRAD-Net, and the sextet of its losses."""

from __future__ import annotations

from typing import Any

from gradnet.experiments.canvas import new_figure
from gradnet.reproduce.drawing import FAINT, INK, RIGHT, WRONG, Brief

_PALE_BLUE, _PALE_GOLD, _PALE_GREY = "#e6f1fb", "#fdf3d6", "#f3f3f5"


def framework(brief: Brief) -> Any:
    """Figure 2: descriptors, two graphs, stacked layers, two losses; at the right one layer in detail."""
    brief.refuse_set("figure2")
    figure = new_figure(12.0, 4.6)
    axes = _blank(figure, 12.0, 4.6)
    _box(axes, 0.2, 1.7, 1.5, 1.2, "descriptors\nX  (N, d)", _PALE_GREY)
    _box(axes, 2.2, 2.8, 1.9, 1.2, "mutual k-NN graph\nA, S  (Eq. 2, 8)", _PALE_BLUE)
    _box(axes, 2.2, 0.6, 1.9, 1.2, "bipartite graph\nto B anchors\nZ  (Eq. 9)", _PALE_GOLD)
    _box(axes, 4.6, 0.6, 1.2, 1.2, "H0 = X || Z\n(Eq. 10)", _PALE_GREY)
    _box(axes, 4.6, 2.8, 2.9, 1.2, "graph diffusion layers\n1024, 256, 128  (Eq. 16)", _PALE_BLUE)
    _box(axes, 6.2, 0.6, 1.3, 1.2, "H = H0 || ... || HL\ncosine\n(Eq. 17, 18)", _PALE_GREY)
    _box(axes, 7.9, 0.6, 1.2, 1.2, "local and\nglobal loss\n(Eq. 19-22)", _PALE_GOLD)
    for start, end in (
        ((1.7, 2.6), (2.2, 3.3)),
        ((1.7, 2.0), (2.2, 1.3)),
        ((4.1, 3.4), (4.6, 3.4)),
        ((4.1, 1.2), (4.6, 1.2)),
        ((5.2, 1.8), (5.2, 2.8)),
        ((6.85, 2.8), (6.85, 1.8)),
        ((7.5, 1.2), (7.9, 1.2)),
    ):
        _arrow(axes, start, end)
    _arrow(axes, (8.5, 1.8), (7.5, 3.2), "gradients")
    _layer_in_detail(axes)
    return figure


def _layer_in_detail(axes: Any) -> None:
    axes.plot([9.35, 9.35], [0.3, 4.3], color=FAINT, linewidth=1)
    axes.text(10.7, 4.25, "one layer", ha="center", fontsize=9, color=INK)
    _box(axes, 10.1, 0.3, 1.2, 0.5, "H", _PALE_GREY)
    _box(axes, 9.6, 1.4, 1.0, 0.8, "first order\n(I + S) H W1", _PALE_BLUE)
    _box(axes, 10.8, 1.4, 1.05, 0.8, "second order\nS (SH * H) W2", _PALE_BLUE)
    _box(axes, 10.0, 2.7, 1.4, 0.5, "+, LeakyReLU", _PALE_GREY)
    _box(axes, 10.0, 3.55, 1.4, 0.5, "unit rows, dropout", _PALE_GREY)
    for start, end in (
        ((10.5, 0.8), (10.1, 1.4)),
        ((10.9, 0.8), (11.3, 1.4)),
        ((10.1, 2.2), (10.5, 2.7)),
        ((11.3, 2.2), (10.9, 2.7)),
        ((10.7, 3.2), (10.7, 3.55)),
    ):
        _arrow(axes, start, end)


_PLACES = {
    "i": (2.0, 3.0),
    "j": (1.2, 1.7),
    "k": (6.0, 3.0),
    "l": (6.8, 1.7),
    "u": (2.6, 0.5),
    "v": (5.4, 0.5),
}


def sextet(brief: Brief) -> Any:
    """Figure 3: neighbours i, j and k, l, their strangers u and v, and which similarities are compared."""
    brief.refuse_set("figure3")
    figure = new_figure(8.0, 4.0)
    axes = _blank(figure, 8.0, 4.0)
    for first, second in ("ij", "kl"):
        _line(axes, first, second, INK, "-", "neighbours")
    for first, second in ("iu", "kv"):
        _line(axes, first, second, WRONG, ":", "strangers")
    for (first, second), name in (("ki", "$s_{ki}$"), ("lj", "$s_{lj}$")):
        _line(axes, first, second, RIGHT, "--", name)
    for name, (x, y) in _PLACES.items():
        axes.scatter(x, y, s=700, c="white", edgecolors=INK, zorder=3)
        axes.text(x, y, f"${name}$", ha="center", va="center", fontsize=13, color=INK, zorder=4)
    axes.text(
        4.0, 3.75, "global order: $s_{ki}$ and $s_{lj}$ should be alike (Eq. 20)", ha="center", color=RIGHT
    )
    axes.text(
        4.0,
        0.05,
        "local smoothness: a neighbour is nearer than a stranger (Eq. 19)",
        ha="center",
        color=WRONG,
    )
    return figure


def _line(axes: Any, first: str, second: str, colour: str, style: str, name: str) -> None:
    (x0, y0), (x1, y1) = _PLACES[first], _PLACES[second]
    axes.plot([x0, x1], [y0, y1], color=colour, linestyle=style, linewidth=1.6, zorder=1)
    middle = ((x0 + x1) / 2, (y0 + y1) / 2 + 0.12)
    axes.text(*middle, name, ha="center", fontsize=8, color=colour, backgroundcolor="white", zorder=2)


def _blank(figure: Any, width: float, height: float) -> Any:
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.set_axis_off()
    return axes


def _box(axes: Any, x: float, y: float, width: float, height: float, text: str, colour: str) -> None:
    axes.bar(x + width / 2, height, width, bottom=y, color=colour, edgecolor=INK, linewidth=1)
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=8, color=INK)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], name: str = "") -> None:
    axes.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "->", "color": INK})
    if name:
        axes.text((start[0] + end[0]) / 2 + 0.15, (start[1] + end[1]) / 2, name, fontsize=8, color=INK)
