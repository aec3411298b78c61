"""The pictures of the page on performance, as PNG; the docstring of each is its description on the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import default_vs_paper
import growth

from manifind.bench.html import as_png, new_figure

Cases = dict[str, Any]

_OURS, _OTHER = "#1b6ca8", "#c9822b"
_DOTS_PER_INCH = 130


def growth_plot(cases: Cases) -> bytes:
    """Time and memory against the number of items, both axes logarithmic"""
    figure = new_figure(8, 3.4)
    titles = {"total_seconds": "seconds, fit to answers", "memory_GB": "GB above the libraries'"}
    sizes = [case["parameters"]["n"] for case in cases.values()]
    for axes, (key, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        numbers = [case["numbers"][key] for case in cases.values()]
        medians = [number["median"] for number in numbers]
        below = [number["median"] - number["min"] for number in numbers]
        above = [number["max"] - number["median"] for number in numbers]
        axes.errorbar(sizes, medians, [below, above], color=_OURS, marker="o", capsize=3)
        for size, value in zip(sizes, medians, strict=True):
            axes.annotate(_short(value), (size, value), (4, -12), textcoords="offset points", fontsize=8)
        if len(cases) > 1:
            title += f", power {growth.exponents(cases)[key]:.2f}"
        steepest = [medians[0] * (n / sizes[0]) ** growth.LIMIT for n in sizes]
        axes.plot(sizes, steepest, "--", color="0.5", label=f"power {growth.LIMIT}, the limit")
        axes.set(xscale="log", yscale="log", xlabel="items", title=title)
        axes.set_xticks(sizes, [f"{n:,}" for n in sizes], rotation=30)
        axes.minorticks_off()
        axes.margins(x=0.12, y=0.12)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    figure.tight_layout()
    return as_png(figure, _DOTS_PER_INCH)


def default_vs_paper_plot(cases: Cases) -> bytes:
    """Seconds of a fit with the default and with the paper's settings"""
    names = [name for name in default_vs_paper.SETS if f"{name} default" in cases]
    figure = new_figure(8, 1 + 0.7 * len(names))
    axes = figure.subplots()
    for kind, shift, colour in (("default", -0.2, _OURS), ("paper", 0.2, _OTHER)):
        rows = [row for row, name in enumerate(names) if f"{name} {kind}" in cases]
        seconds = [cases[f"{names[row]} {kind}"]["numbers"]["seconds"]["median"] for row in rows]
        bars = axes.barh([row + shift for row in rows], seconds, 0.38, color=colour, label=kind)
        axes.bar_label(bars, [_short(value) for value in seconds], padding=3)
    axes.set(xlabel="seconds of a fit")
    axes.set_yticks(range(len(names)), [default_vs_paper.SETS[name].title for name in names])
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    figure.tight_layout()
    return as_png(figure, _DOTS_PER_INCH)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


PLOTS: dict[str, Callable[[Cases], bytes]] = {"growth": growth_plot, "default_vs_paper": default_vs_paper_plot}
