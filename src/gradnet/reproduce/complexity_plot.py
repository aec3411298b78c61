"""Figure 8 drawn from a results file: memory on the CPU and the GPU, and the time of a pass, against the items."""

from __future__ import annotations

from typing import Any

from gradnet.experiments.canvas import new_figure
from gradnet.experiments.compare_store import Results
from gradnet.reproduce.complexity import GPU, MEMORY, METHODS, PASS
from gradnet.reproduce.declared import Artefact
from gradnet.reproduce.drawing import INK
from gradnet.reproduce.shown import shown_cells

_COLOURS = dict(zip(METHODS, ("#2f86d6", "#1b9e77", "#e8b000", "#6a2c91"), strict=True))
_PANELS = {MEMORY: "(a) memory, MB", GPU: "(b) GPU memory, MB", PASS: "(c) a forward and backward pass, s"}


def draw_complexity(artefact: Artefact, results: Results) -> Any:
    """Three panels with a line for each method; a panel without a number says so."""
    points = _points(artefact, results)
    figure = new_figure(12.0, 3.8)
    for place, (quantity, title) in enumerate(_PANELS.items(), start=1):
        axes = figure.add_subplot(1, 3, place)
        axes.set_title(title, fontsize=10, color=INK)
        _panel(axes, {method: xy for (method, what), xy in points.items() if what == quantity})
    figure.tight_layout()
    return figure


def _points(artefact: Artefact, results: Results) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """By method and quantity: (items, value), rising."""
    points: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for cell in shown_cells(artefact, results):
        if cell.mean is not None:
            method, _, quantity = cell.entry.row.partition(": ")
            items = int(cell.entry.column.split()[0].replace(",", ""))
            points.setdefault((method, quantity), []).append((items, cell.mean))
    return {name: sorted(xy) for name, xy in points.items()}


def _panel(axes: Any, lines: dict[str, list[tuple[int, float]]]) -> None:
    if not lines:
        axes.text(0.5, 0.5, "not run", ha="center", color=INK, transform=axes.transAxes)
        axes.set_axis_off()
        return
    for method, xy in lines.items():
        axes.plot(*zip(*xy, strict=True), marker="o", color=_COLOURS[method], label=method)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("items")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
